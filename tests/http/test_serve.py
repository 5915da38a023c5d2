"""Serving over ASGI: headers, faults, beats, and clients that leave at any moment."""

import asyncio
import logging
from collections.abc import AsyncGenerator

import pytest

from diglot.core.errors import EngineFailed, LoadFailed
from diglot.core.events import Event, Progress, Started, TextDelta
from diglot.core.request import Generation
from tests.http.world import Exchange, World
from tests.services.world import settle, until

STREAM = b'{"stream":true}'


async def test_a_whole_answer_goes_out_at_once_with_its_length() -> None:
    reply = await World().get("POST", "/say")
    assert (reply.status, reply.text) == (200, "ab")
    headers = reply.headers
    assert headers.pop("x-request-id")
    assert headers == {"content-type": "text/plain; charset=utf-8", "content-length": "2"}
    assert len(reply.sent) == 2


async def test_a_stream_and_a_whole_answer_say_the_same() -> None:
    world = World()
    reply = await world.get("POST", "/say", STREAM)
    assert (reply.status, reply.text, reply.ended) == (200, "ab end\n", True)
    assert "content-length" not in reply.headers
    assert world.is_at_rest()


async def test_headers_go_out_with_the_first_bytes_and_not_before() -> None:
    world = World()
    await world.warm()
    world.engine.events = [Progress(), Started(2), TextDelta("a")]
    world.engine.gate.clear()
    reply = world.ask("POST", "/say", STREAM)
    await until(lambda: world.busy)
    await settle()
    assert reply.sent == []
    world.engine.gate.set()
    await reply.task
    assert [message["type"] for message in reply.sent[:2]] == ["http.response.start", "http.response.body"]


@pytest.mark.parametrize("body", [b"{}", STREAM])
async def test_a_fault_before_the_first_bytes_is_a_status(body: bytes) -> None:
    world = World()
    world.loader.fault = LoadFailed("chat", reason="no memory")
    reply = await world.get("POST", "/say", body)
    assert (reply.status, reply.text) == (400, "LoadFailed: model 'chat' could not be loaded: no memory")
    assert world.is_at_rest()


async def test_a_fault_after_the_first_bytes_ends_the_stream_in_its_own_way() -> None:
    world = World()
    await world.warm()
    world.engine.events = [Started(2), TextDelta("a"), EngineFailed("no")]
    reply = await world.get("POST", "/say", STREAM)
    assert (reply.status, reply.text, reply.ended) == (200, "a broke: EngineFailed\n", True)
    assert world.is_at_rest()


@pytest.mark.parametrize("body", [b'{"text":"bug"}', b'{"text":"whole"}', b'{"text":"render","stream":true}'])
async def test_an_unknown_exception_is_answered_with_an_id_that_finds_the_log_line(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    reply = await world.get("POST", "/say", body)
    assert reply.status == 500
    (line,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    name = reply.text.split()[3].rstrip(",")
    assert name.startswith("id0")
    assert name in line.getMessage()
    assert line.exc_info
    assert "bug" not in reply.text
    assert world.is_at_rest()


async def test_an_unknown_exception_in_mid_stream_breaks_the_stream_in_the_dialects_way() -> None:
    world = World()
    await world.warm()
    world.engine.events = [Started(2), TextDelta("a"), KeyError("a bug")]
    reply = await world.get("POST", "/say", STREAM)
    assert reply.status == 200
    assert reply.text.startswith("a")
    assert "broke: EngineFailed" in reply.text


async def test_a_stream_of_no_bytes_is_still_a_reply() -> None:
    world = World()
    await world.warm()
    world.engine.events = [Started(2)]
    reply = await world.get("POST", "/say", b'{"text":"mute","stream":true}')
    assert (reply.status, reply.text, reply.ended) == (200, "", True)


async def test_a_silent_stream_shows_life_and_a_lively_one_does_not() -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    reply = world.ask("POST", "/say", STREAM)
    await until(lambda: world.busy)
    await world.clock.advance(9)
    assert reply.sent == []
    await world.clock.advance(1)
    assert (reply.status, reply.text) == (200, "(beat)")
    await world.clock.advance(10)
    assert reply.text == "(beat)(beat)"
    world.engine.gate.set()
    await reply.task
    assert reply.text == "(beat)(beat)ab end\n"
    for _ in range(3):
        await world.clock.advance(10)
    assert reply.text.count("beat") == 2


@pytest.mark.parametrize("body", [b"{}", STREAM, b'{"stream":true,"choices":3}'])
async def test_a_client_that_leaves_while_the_answer_is_made_frees_the_slot(body: bytes) -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    reply = world.ask("POST", "/say", body)
    await until(lambda: world.busy)
    reply.leave()
    await reply.task
    assert world.is_at_rest()
    world.engine.gate.set()
    assert (await world.get("POST", "/say")).text == "ab"


async def test_a_client_that_leaves_in_mid_stream_frees_the_slot() -> None:
    world = World()
    await world.warm()
    world.engine.events = [Started(2), TextDelta("a"), *[TextDelta("b")] * 10]
    world.engine.breath = True
    reply = world.ask("POST", "/say", STREAM)
    await until(lambda: reply.text)
    assert world.busy
    reply.leave()
    await reply.task
    assert world.is_at_rest()


async def test_clients_that_leave_the_queue_or_a_load_free_their_place() -> None:
    world = World(queue=1)
    world.loader.gate.clear()
    replies = [world.ask("POST", "/say", STREAM) for _ in range(3)]
    await until(lambda: world.loader.begun)
    refused = await world.get("POST", "/say")
    assert refused.status == 503
    for reply in replies:
        reply.leave()
        await reply.task
    world.loader.gate.set()
    await settle()
    assert world.is_at_rest()
    assert (await world.get("POST", "/say")).text == "ab"


async def test_a_client_that_leaves_while_its_texts_are_embedded_frees_the_slot() -> None:
    world = World()
    assert (await world.get("POST", "/embed")).status == 200
    world.engine.gate.clear()
    reply = world.ask("POST", "/embed")
    await until(lambda: world.busy)
    reply.leave()
    await reply.task
    assert world.is_at_rest()


async def test_a_client_that_leaves_while_its_body_is_read_starts_nothing() -> None:
    world = World()
    reply = world.ask("POST", "/say", b'{"text":', unfinished=True)
    await settle()
    reply.leave()
    await reply.task
    assert world.loader.begun == []


async def test_a_bug_that_shows_when_the_client_leaves_is_still_logged(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    await world.warm()

    async def buggy(request: Generation) -> AsyncGenerator[Event]:
        try:
            await asyncio.Event().wait()
            yield Started(0)
        finally:
            raise KeyError("a bug")

    world.engine.generate = buggy  # type: ignore[method-assign]
    reply = world.ask("POST", "/say")
    await until(lambda: world.residency._turnstiles)  # noqa: SLF001
    await settle()
    reply.leave()
    await reply.task
    assert any(record.exc_info for record in caplog.records)
    assert world.is_at_rest()


async def test_a_server_that_goes_down_cancels_and_frees() -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    for body in (b"{}", STREAM):
        reply = world.ask("POST", "/say", body)
        await until(lambda: world.busy)
        reply.task.cancel()
        await asyncio.wait({reply.task})
        assert reply.task.cancelled()
        await settle()
        assert world.is_at_rest()


@pytest.mark.parametrize(
    ("headers", "parts", "status"),
    [
        ({"content-length": "1001"}, [b""], 413),
        ({"content-length": "9" * 5000}, [b""], 413),
        ({"content-length": "²"}, [b"{}"], 200),
        ({}, [b" " * 600, b" " * 600], 413),
        ({}, [b" " * 998, b"{}"], 200),
        ({"content-encoding": "gzip"}, [b"{}"], 400),
        ({"content-encoding": "identity"}, [b"{}"], 200),
    ],
)
async def test_a_body_within_the_limits_is_read_and_no_other(
    headers: dict[str, str], parts: list[bytes], status: int
) -> None:
    world = World()

    reply = Exchange(world.application, "POST", "/say", parts, headers=headers)
    await reply.task
    assert reply.status == status


async def test_a_body_that_does_not_come_is_given_up() -> None:
    reply = await World(patience=0.02).get("POST", "/say", b'{"text":', unfinished=True)
    assert (reply.status, reply.text) == (408, "TooSlow: the body of the request did not arrive within 0.02 seconds")


async def test_nothing_blocks_the_loop(no_blocking: object) -> None:
    world = World()
    for body in (b"{}", STREAM):
        assert (await world.get("POST", "/say", body)).status == 200
