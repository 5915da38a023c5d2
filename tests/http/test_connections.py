"""Connections to a real server: what clients really do, and what nobody should."""

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from diglot.http.body import until_gone
from tests.http.world import Plain, World, post, serving
from tests.services.world import settle, until

CLOSE = "Connection: close\r\n"
STREAM = b'{"stream":true}'


class Hasty(Plain):
    """Bounds that a test can reach."""

    head_limit = 2000
    patience = 0.25  # More than a busy machine takes to send what was written.
    most_connections = 20
    most_pipelined = 3


class Stern(Plain):
    """Does not wait long for a client that takes nothing."""

    longest_stall = 0.05


class Narrow(Hasty):
    """The same, with patience."""

    patience = 60.0


async def test_a_stream_comes_in_chunks_and_a_whole_answer_with_its_length() -> None:
    async with serving(World().application) as served:
        assert (await served.talk(post(STREAM, headers=CLOSE))).endswith(
            b"\r\n\r\n1\r\na\r\n1\r\nb\r\n5\r\n end\n\r\n0\r\n\r\n"
        )
        assert (await served.talk(post(b"{}", headers=CLOSE))).endswith(
            b"content-length: 2\r\nconnection: close\r\n\r\nab"
        )


async def test_requests_share_a_connection_also_when_they_come_all_at_once() -> None:
    async with serving(World().application) as served:
        reply = await served.talk(post(b"{}") + post(STREAM) + post(b"{}", headers=CLOSE))
    assert reply.count(b"HTTP/1.1 200") == 3
    assert reply.index(b"ab") < reply.index(b" end\n")


async def test_a_client_of_the_old_protocol_is_answered_and_let_go() -> None:
    async with serving(World().application) as served:
        reply = await served.talk(b"GET / HTTP/1.0\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in reply


async def endless(_: Scope, receive: Receive, send: Send) -> None:
    """Send without end, until the client has left."""
    gone = asyncio.create_task(until_gone(receive))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while not gone.done():
        await send({"type": "http.response.body", "body": bytes(65536), "more_body": True})
        await asyncio.sleep(0)


async def test_a_client_that_takes_nothing_of_a_stream_is_let_go() -> None:
    async with serving(endless, Stern) as served:
        line = await served.line()
        await line.send(post(b"{}"))
        await line.until(b"\r\n\r\n")
        await until(lambda: not served.server.server_state.connections)


async def test_head_has_no_body() -> None:
    async with serving(World().application) as served:
        reply = await served.talk(b"HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 200")
    assert b"content-length: 15" in reply
    assert reply.endswith(b"\r\n\r\n")


async def test_a_body_in_pieces_and_one_that_waits_to_be_asked_for_are_read() -> None:
    async with serving(World().application) as served:
        chunked = b"POST /say HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        assert (await served.talk(chunked + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n")).endswith(b"ab")
        line = await served.line()
        await line.send(post(b"{}", headers=CLOSE + "Expect: 100-continue\r\n")[:-2])
        assert await line.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await line.send(b"{}")
        assert (await line.rest()).endswith(b"ab")


@pytest.mark.parametrize("upgrade", ["h2c", "websocket"])
async def test_an_upgrade_that_is_not_known_is_passed_over(upgrade: str, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(World().application) as served:
        asks = f"Connection: Upgrade\r\nUpgrade: {upgrade}\r\n"
        for request in (post(b'{"text":"x"}', headers=asks), post(b"", "/nothing", headers=asks)):
            line = await served.line()
            await line.send(request)
            reply = await line.until(b"\r\n\r\n")
            assert reply.startswith(b"HTTP/1.1 200" if b"/say" in request else b"HTTP/1.1 404")
            line.abort()
    assert "Upgrade" not in caplog.text
    assert "WebSocket" not in caplog.text


@pytest.mark.parametrize("body", [b"{}", STREAM])
@pytest.mark.parametrize("ahead", [0, 1])
async def test_a_client_that_hangs_up_frees_the_slot(body: bytes, ahead: int) -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    async with serving(world.application) as served:
        line = await served.line()
        await line.send(post(body) + post(b"{}") * ahead)
        await until(lambda: world.busy)
        line.abort()
        if ahead:  # A server that reads no further sees it when it writes.
            world.engine.gate.set()
        await until(world.is_at_rest)


async def test_a_client_that_hangs_up_in_mid_stream_frees_the_slot() -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    async with serving(world.application) as served:
        line = await served.line()
        await line.send(post(STREAM))
        await until(lambda: world.busy)
        await world.clock.advance(10)
        assert b"(beat)" in await line.until(b"(beat)")
        line.close()
        await until(world.is_at_rest)


async def test_a_client_that_hangs_up_while_it_sends_its_body_starts_nothing() -> None:
    world = World()
    async with serving(world.application) as served:
        line = await served.line()
        await line.send(post(b"{}")[:-1])
        await settle()
        line.abort()
    assert world.loader.begun == []


async def test_a_body_over_the_limit_is_refused_and_the_connection_goes_on_once_it_is_through() -> None:
    async with serving(World(max_body=10).application) as served:
        line = await served.line()
        await line.send(post(b" " * 100_000) + post(b"{}", headers=CLOSE))
        reply = await line.rest()
    assert reply.startswith(b"HTTP/1.1 413")
    assert reply.count(b"HTTP/1.1 200") == 1


async def test_an_endless_body_is_refused_and_dropped_and_not_for_ever() -> None:
    async with serving(World(max_body=10).application, Hasty) as served:
        line = await served.line()
        await line.send(b"POST /say HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        reply = asyncio.create_task(line.rest())
        chunk = b"2710\r\n" + b" " * 10_000 + b"\r\n"
        while not reply.done():
            try:
                await line.send(chunk)
            except ConnectionError:
                break
            await asyncio.sleep(0)
        assert (await reply).startswith(b"HTTP/1.1 413") or not reply.result()


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n" % (b"x" * 3000), b"431"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: %s" % (b"x" * 3000), b"431"),
        (b"GET /%s" % (b"x" * 3000), b"431"),
        (b"x" * 3000, b"400"),
        (b"\x00\x01\x02\x03", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400"),
        (b"GET http://[::1 HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"400"),
        (b"POST /say HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n", b"400"),
        (b"POST /say HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST /say HTTP/1.1\r\nHost: localhost\r\nContent-Length: %s\r\n\r\n" % (b"9" * 30), b"400"),
        (b"POST /say HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        (b"POST /say HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nBad Header: x\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n", b"400"),
    ],
)
async def test_a_head_that_is_too_large_or_makes_no_sense_is_refused(request_head: bytes, status: bytes) -> None:
    world = World()
    async with serving(world.application, Narrow) as served:
        reply = await served.talk(request_head)
    assert reply.split(b" ")[1] == status
    assert reply.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "beginning",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        post(STREAM, headers="Transfer-Encoding: chunked\r\n").replace(b"Content-Length: 15\r\n", b"").split(b"{")[0]
        + b"0\r\n",
    ],
)
async def test_headers_and_trailers_without_end_are_refused(beginning: bytes) -> None:
    async with serving(World().application, Narrow) as served:
        line = await served.line()
        await line.send(beginning)
        reply = asyncio.create_task(line.rest())
        while not reply.done():
            try:
                await line.send(b"X-More: and more\r\n" * 10)
            except ConnectionError:
                break
            await asyncio.sleep(0)
        assert (await reply).startswith(b"HTTP/1.1 431") or not reply.result()


@pytest.mark.parametrize("half", [b"", b"G", b"GET / HTTP/1.1\r\nHost: local"])
async def test_a_connection_that_asks_nothing_is_given_up(half: bytes) -> None:
    async with serving(World().application, Hasty) as served:
        reply = await served.talk(half)
        assert reply.startswith(b"HTTP/1.1 408")
        line = await served.line()
        await line.send(post(b"{}"))
        await line.until(b"ab")
        await line.send(half or b"P")
        assert (await line.rest()).startswith(b"HTTP/1.1 408")


async def test_an_answer_that_takes_long_is_not_given_up() -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    async with serving(world.application, Hasty) as served:
        slow = await served.line()
        await slow.send(post(b"{}", headers=CLOSE))
        await until(lambda: world.busy)
        assert (await served.talk(b"")).startswith(b"HTTP/1.1 408")  # So the patience is over for the first one too.
        world.engine.gate.set()
        assert (await slow.rest()).endswith(b"ab")


async def test_silent_connections_are_bounded_in_number_and_the_others_are_served() -> None:
    async with serving(World().application, Narrow) as served:
        lines = [await served.line() for _ in range(100)]
        replies = await asyncio.gather(*(line.rest() for line in lines[20:]))
        assert all(reply.startswith(b"HTTP/1.1 503") or not reply for reply in replies)
        assert len(served.server.server_state.connections) == 20
        for line in lines[:20]:
            line.abort()
        await until(lambda: not served.server.server_state.connections)
        assert (await served.talk(post(b"{}", headers=CLOSE))).endswith(b"ab")


async def test_a_flood_of_requests_in_one_pipeline_is_cut_off() -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    async with serving(world.application, Narrow) as served:
        line = await served.line()
        await line.send(post(b"{}") * 50)
        assert await line.rest() == b""
        await until(world.is_at_rest)
