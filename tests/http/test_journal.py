"""The journal: a name for every request, in every reply, and one line in the log at its end."""

import asyncio
import logging
from typing import Any

import pytest

from diglot.core.errors import AnyFault, Busy, EngineCrashed
from diglot.core.events import Finished, Started, TextDelta, Usage
from diglot.dialects.operation import Rendered
from diglot.http.application import Access
from diglot.http.journal import caller_of, naming
from tests.http.talk import Talk
from tests.http.test_websocket import served
from tests.http.world import Ids, World
from tests.services.world import settle, until

STREAM = b'{"stream": true}'


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return what the lines of the journal hold."""
    return [vars(record)["fields"] for record in caplog.records if record.name == "diglot.http.journal"]


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/say", b"", 200),
        ("POST", "/say", STREAM, 200),
        ("POST", "/say", b"{", 400),
        ("POST", "/say", b'{"text": "bug"}', 500),
        ("POST", "/say", b"x" * 2000, 413),
        ("GET", "/say", b"", 405),
        ("GET", "/nothing/here", b"", 404),
        ("GET", "/health", b"", 200),
        ("HEAD", "/metrics", b"", 200),
        ("GET", "/openapi.json", b"", 200),
        ("OPTIONS", "/say", b"", 204),
        ("GET", "/models/none", b"", 404),
    ],
)
async def test_every_reply_carries_the_name_of_its_request(method: str, path: str, body: bytes, status: int) -> None:
    world = World()
    own = await world.get(method, path, body)
    given = await world.get(method, path, body, headers={"x-request-id": "req-1:a.B_2"})
    assert (own.status, given.status) == (status, status)
    assert len(own.headers["x-request-id"]) == 24
    assert given.headers["x-request-id"] == "req-1:a.B_2"


async def test_who_is_refused_gets_a_name_too() -> None:
    world = World(access=Access(key="secret"))
    for headers in ({}, {"host": "evil.example"}, {"origin": "https://evil.example"}):
        reply = await world.get("POST", "/say", headers={**headers, "x-request-id": "mine"})
        assert reply.status in (401, 403)
        assert reply.headers["x-request-id"] == "mine"


@pytest.mark.parametrize("name", ["", "a" * 101, "two words", "newline\\n", "<script>", "-rf", "gr\u00fcn"])
async def test_a_name_that_is_not_fit_for_a_log_is_not_taken(name: str) -> None:
    reply = await World().get("POST", "/say", headers={"x-request-id": name})
    assert reply.headers["x-request-id"].startswith("id0000")


async def test_a_request_leaves_one_line_with_what_came_of_it(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    await world.get("POST", "/say", STREAM)
    (line,) = lines(caplog)
    assert line == {
        "id": "id0000000000000000000001",
        "dialect": "tiny",
        "operation": "POST /say",
        "model": "chat:latest",
        "status": 200,
        "outcome": "ok",
        "input_tokens": 2,
        "cached_tokens": 0,
        "output_tokens": 2,
        "compactions": 0,
        "queue_seconds": 0.0,
        "load_seconds": 0.0,
        "first_token_seconds": 0.0,
        "seconds": 0.0,
    }


async def test_the_times_say_what_was_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.loader.gate.clear()
    exchange = world.ask("POST", "/say", STREAM)
    await until(lambda: world.loader.begun)
    await world.clock.advance(2)
    world.loader.gate.set()
    await until(lambda: world.loader.engines)
    world.engine.gate.clear()
    await settle()
    await world.clock.advance(3)
    world.engine.gate.set()
    await exchange.task
    (line,) = lines(caplog)
    assert (line["queue_seconds"], line["load_seconds"], line["first_token_seconds"], line["seconds"]) == (0, 2, 5, 5)


@pytest.mark.parametrize(
    ("path", "body", "outcome"),
    [
        ("/say", b"{", "malformed_body"),
        ("/say", b'{"text": "wrong"}', "invalid_field"),
        ("/say", b'{"text": "bug"}', "engine_failed"),
        ("/models/none", b"", "wrong_method"),
        ("/nothing", b"", "unknown_path"),
    ],
)
async def test_a_fault_is_named_by_its_kind(
    path: str, body: bytes, outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    await World().get("POST", path, body)
    assert [line["outcome"] for line in lines(caplog)] == [outcome]


async def test_a_stream_that_breaks_says_so(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    await world.warm()
    world.engine.events = [Started(2), TextDelta("a"), EngineCrashed("chat")]
    await world.get("POST", "/say", STREAM)
    (line,) = lines(caplog)
    assert (line["status"], line["outcome"], line["stage"]) == (200, "engine_crashed", "decode")
    assert line["input_tokens"] == 2


@pytest.mark.parametrize("body", [b"", STREAM])
async def test_a_client_that_leaves_is_told_from_a_fault_and_where_it_was(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    exchange = world.ask("POST", "/say", body)
    await until(lambda: world.busy)
    exchange.leave()
    await exchange.task
    (line,) = lines(caplog)
    assert (line["outcome"], line["stage"]) == ("left", "prefill")


async def test_a_full_queue_is_an_outcome_of_the_model(caplog: pytest.LogCaptureFixture) -> None:
    world = World(queue=0)
    await world.warm()
    world.engine.gate.clear()
    busy = [world.ask("POST", "/say") for _ in range(2)]
    await until(lambda: world.busy == 2)
    refused = await world.get("POST", "/say")
    assert refused.status == 503
    (line,) = lines(caplog)
    assert (line["outcome"], line["stage"], line["model"]) == ("busy", "queue", "chat:latest")
    world.engine.gate.set()
    for each in busy:
        await each.task


async def test_no_word_of_a_client_stands_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    for path, body in (("/s3cret", b""), ("/models/s3cret", b""), ("/say?s3cret", b'{"text": "s3cret"}')):
        await world.get("POST", path, body, query="s3cret", headers={"user-agent": "s3cret", "x-request-id": "s3 cret"})
    journal = [record for record in caplog.records if record.name == "diglot.http.journal"]
    assert len(journal) == 3
    assert not any("cret" in record.getMessage() or "cret" in str(vars(record)) for record in journal)


async def test_what_is_polled_leaves_lines_at_debug_only(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    for path in ("/", "/health", "/metrics"):
        await world.get("GET", path)
    assert not lines(caplog)
    with caplog.at_level(logging.DEBUG):
        await world.get("GET", "/health")
    assert [line["operation"] for line in lines(caplog)] == ["GET /health"]


async def test_each_message_of_a_connection_is_a_request_and_the_connection_one_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    talk = Talk(served(world), headers={"x-request-id": "conn"})
    talk.say(["hi", None])
    talk.say(["ho", None])
    await until(lambda: talk.lines.count(" end") == 2)
    assert dict(talk.sent[0]["headers"])[b"x-request-id"] == b"conn"
    await talk.leave()
    told = [(line["id"], line["operation"], line["outcome"], line.get("status")) for line in lines(caplog)]
    where = "WebSocket /talk"
    assert told == [("conn.1", where, "ok", 0), ("conn.2", where, "ok", 0), ("conn", where, "ok", 101)]


async def test_whoever_leaves_a_connection_in_the_middle_of_an_answer_has_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    talk = Talk(served(world))
    talk.say(["hi", None])
    await until(lambda: world.busy)
    await talk.leave()
    assert [line["outcome"] for line in lines(caplog)] == ["left", "ok"]


async def test_a_handshake_that_is_refused_is_answered_with_a_name_where_the_server_can() -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/talk", "query_string": b"", "headers": [(b"host", b"evil.example")]}
    app = served(World())
    await app(scope, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
    sent.clear()
    await app({**scope, "extensions": {"websocket.http.response": {}}}, receive, send)
    assert sent[0]["status"] == 403
    assert dict(sent[0]["headers"])[b"x-request-id"]


def test_callers_are_told_apart_by_key_address_and_program() -> None:
    def scope(host: str = "127.0.0.1", **headers: str) -> dict[str, Any]:
        named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        return {"type": "http", "client": (host, 1), "headers": named}

    callers = [
        scope(),
        scope("10.0.0.1"),
        scope(authorization="Bearer a"),
        scope(authorization="Bearer b"),
        scope(user_agent="codex"),
        scope(x_forwarded_for="192.0.2.7"),
    ]
    assert len({caller_of(each) for each in callers}) == len(callers)
    assert caller_of({**scope(), "client": ("127.0.0.1", 2)}) == caller_of(scope())
    assert not any("Bearer" in caller_of(each) for each in callers)


async def test_a_batch_of_one_caller_does_not_keep_another_waiting() -> None:
    world = World(queue=40)
    world.loader.slots = lambda model: 1  # type: ignore[method-assign]  # noqa: ARG005
    await world.warm()
    world.engine.gate.clear()
    ended: list[str] = []
    batch = [world.ask("POST", "/say", headers={"user-agent": "batch"}) for _ in range(30)]
    await until(lambda: sum(each.waiting for each in world.residency.occupancy()) == 29)
    person = world.ask("POST", "/say", headers={"user-agent": "person"})
    await until(lambda: sum(each.waiting for each in world.residency.occupancy()) == 30)
    for exchange in batch:
        exchange.task.add_done_callback(lambda _: ended.append("batch"))
    person.task.add_done_callback(lambda _: ended.append("person"))
    world.engine.events = [Started(2), Finished("stop", Usage(2, 1))]
    world.engine.gate.set()
    await asyncio.gather(person.task, *(each.task for each in batch))
    await settle()
    assert ended.index("person") <= 2
    assert all(each.status == 200 for each in batch)


def test_a_connection_that_is_refused_before_it_is_a_request_gets_a_name_too(caplog: pytest.LogCaptureFixture) -> None:
    def refusal(_path: str, _fault: AnyFault) -> Rendered:
        return Rendered(b"no", 503, headers={"retry-after": "1"})

    reply = naming(refusal, Ids())("/s3cret", Busy(retry_after=1))
    assert reply.headers == {"retry-after": "1", "x-request-id": "id0000000000000000000001"}
    assert caplog.messages == ["refused a connection id=id0000000000000000000001 outcome=busy"]
