"""WebSockets over ASGI: one request after the other, remembered for the connection, and an end to all when it ends."""

import json
import logging
from typing import Any, Final

import pytest
from msgspec.structs import replace
from starlette.types import ASGIApp

from diglot.core.errors import AnyFault, EngineCrashed, InvalidField
from diglot.core.events import Started, TextDelta
from diglot.core.items import said
from diglot.core.request import Conversation, Respond
from diglot.dialects.operation import Parsed, Socket, Wire
from diglot.http.application import Access, build_application
from diglot.state.responses import Scratch
from tests.http.talk import Talk
from tests.http.world import OTHER, TINY, Lines, World
from tests.services import world as services
from tests.services.world import settle, until


def _parse(wire: Wire) -> Parsed:
    body = json.loads(wire.body)
    if body == "bug":
        raise KeyError("a bug of the parser")
    if body == "wrong":
        raise InvalidField("text", "it is wrong")
    text, previous = body
    generation = replace(services.generation(), prompt=Conversation((said("user", text),)))
    return Parsed(Respond(generation, previous=previous), view="", stream=True, notes=("a note",))


def _error(fault: AnyFault) -> bytes:
    return f"refused: {type(fault).__name__}".encode()


class _Said(Lines):
    def feed(self, event: Any, now: float) -> bytes:
        return super().feed(event, now) + (b"\n" if isinstance(event, TextDelta) else b"")


SOCKET: Final = Socket(path="/talk", parse=_parse, stream=lambda view, _: _Said(view), error=_error)


def served(world: World, access: Access | None = None) -> ASGIApp:
    """Return an application with a socket."""
    dialect = replace(TINY, sockets=(SOCKET,))
    return build_application((dialect, OTHER), replace(world.http, scratch=Scratch), access=access or Access())


async def test_each_line_of_an_answer_is_a_message() -> None:
    world = World()
    talk = Talk(served(world))
    talk.say(["hi", None])
    await until(lambda: " end" in talk.lines)
    assert talk.sent[0]["type"] == "websocket.accept"
    assert talk.lines == ["a", "b", " end"]
    await talk.leave()
    assert world.is_at_rest()


async def test_bytes_are_a_message_too() -> None:
    talk = Talk(served(World()))
    talk._inbox.put_nowait({"type": "websocket.receive", "bytes": b'["hi",null]'})  # noqa: SLF001  As ASGI may have it.
    await until(lambda: " end" in talk.lines)
    await talk.leave()


async def test_requests_of_one_connection_are_answered_in_order_one_at_a_time() -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    talk = Talk(served(world))
    talk.say(["one", None])
    talk.say(["two", None])
    await until(lambda: world.busy)
    await settle()
    assert world.busy == 1
    world.engine.gate.set()
    await until(lambda: len(talk.lines) == 6)
    asked = [request.prompt.items[-1].text for request in world.engine.seen[1:]]  # type: ignore[union-attr]
    assert asked == ["one", "two"]
    await talk.leave()


async def test_what_was_said_is_remembered_for_the_connection_alone() -> None:
    world = World()
    app = served(world)
    talk = Talk(app)
    talk.say(["one", None])
    await until(lambda: " end" in talk.lines)
    name = next(reversed(_ids(world)))
    talk.say(["two", name])
    await until(lambda: len(talk.lines) == 6)
    told = [item.text for item in world.engine.seen[-1].prompt.items]  # type: ignore[union-attr]
    assert told == ["one", "ab", "two"]
    stranger = Talk(app)
    stranger.say(["three", name])
    await until(lambda: stranger.lines)
    assert stranger.lines == ["refused: UnknownResponse"]
    assert not world.responses.responses
    await talk.leave()
    await stranger.leave()


def _ids(world: World) -> list[str]:
    return [f"id{number:022}" for number in range(1, world.http.ids.given + 1)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("body", "fault"), [("wrong", "InvalidField"), ("bug", "EngineFailed")])
async def test_a_request_that_is_refused_leaves_the_connection_open(body: str, fault: str) -> None:
    talk = Talk(served(World()))
    talk.say(body)
    talk.say(["hi", None])
    await until(lambda: " end" in talk.lines)
    assert talk.lines == [f"refused: {fault}", "a", "b", " end"]
    await talk.leave()


async def test_an_answer_that_breaks_ends_in_its_own_way_and_the_next_one_begins() -> None:
    world = World()
    await world.warm()
    world.engine.events = [Started(2), TextDelta("a"), EngineCrashed("chat")]
    talk = Talk(served(world))
    talk.say(["hi", None])
    talk.say(["wrong"] * 3)
    await until(lambda: len(talk.lines) == 3)
    assert talk.lines == ["a", " broke: EngineCrashed", "refused: EngineFailed"]
    await talk.leave()


async def test_work_ends_when_the_client_leaves() -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    talk = Talk(served(world))
    talk.say(["hi", None])
    await until(lambda: world.busy)
    await talk.leave()
    await settle()
    assert world.is_at_rest()


async def test_what_has_come_is_answered_before_the_server_goes_down_and_nothing_new_is() -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    talk = Talk(served(world))
    talk.say(["hi", None])
    await until(lambda: world.busy)
    talk.say(["and", None])
    talk.go_down()
    talk.say(["too late", None])
    await settle()
    assert [message["type"] for message in talk.sent] == ["websocket.accept"]
    world.engine.gate.set()
    await until(lambda: talk.sent[-1]["type"] == "websocket.close")
    assert talk.lines == ["a", "b", " end"] * 2
    assert talk.sent[-1]["code"] == 1012
    await talk.leave()
    await settle()
    assert world.is_at_rest()


async def test_a_connection_that_rests_is_closed_at_once_when_the_server_goes_down() -> None:
    talk = Talk(served(World()))
    talk.go_down()
    await until(lambda: talk.sent[-1:] and talk.sent[-1]["type"] == "websocket.close")
    await talk.leave()


@pytest.mark.parametrize("then", ["leave", "go down"])
async def test_a_client_that_is_gone_before_it_is_noticed_ends_quietly(
    then: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A server may raise where one sends to a client that has left, before it says so where one receives."""
    world = World()
    await world.warm()
    talk = Talk(served(world))
    await until(lambda: talk.sent)
    talk.gone = True
    talk.say(["hi", None])
    await until(lambda: not world.busy)
    if then == "go down":
        talk.go_down()
    await settle()
    await talk.leave()
    assert not [record for record in caplog.records if record.exc_info]
    assert world.is_at_rest()


async def test_a_client_that_sends_too_much_at_once_is_sent_away() -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    talk = Talk(served(world))
    talk.say(["hi", None])
    await until(lambda: world.busy)
    for _ in range(9):
        talk.say(["more", None])
    await talk.task
    assert talk.sent[-1] == {"type": "websocket.close", "code": 1008, "reason": "too many requests wait"}
    await settle()
    assert world.is_at_rest()


async def test_a_message_over_the_limit_is_refused() -> None:
    talk = Talk(served(World(max_body=20)))
    talk.say(["x" * 30, None])
    await until(lambda: talk.lines)
    assert talk.lines == ["refused: BodyTooLarge"]
    await talk.leave()


async def test_signs_of_life_go_out_while_nothing_else_does() -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    talk = Talk(served(world))
    talk.say(["hi", None])
    await until(lambda: world.busy)
    await world.clock.advance(10.0)
    await world.clock.advance(10.0)
    assert talk.lines == ["(beat)", "(beat)"]
    await talk.leave()


@pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"host": "evil.example"}])
async def test_strangers_do_not_get_in(headers: dict[str, str]) -> None:
    talk = Talk(served(World()), headers=headers)
    await talk.task
    assert [message["type"] for message in talk.sent] == ["websocket.close"]


async def test_who_lacks_the_key_does_not_get_in() -> None:
    app = served(World(), Access(key="secret"))
    talk = Talk(app)
    await talk.task
    assert [message["type"] for message in talk.sent] == ["websocket.close"]
    known = Talk(app, headers={"authorization": "Bearer secret"})
    await until(lambda: known.sent)
    assert [message["type"] for message in known.sent] == ["websocket.accept"]
    await known.leave()


async def test_where_no_socket_is_none_opens() -> None:
    talk = Talk(served(World()), path="/nowhere")
    await talk.task
    assert [message["type"] for message in talk.sent] == ["websocket.close"]


async def test_what_was_left_out_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        talk = Talk(served(World()))
        talk.say(["hi", None])
        await until(lambda: " end" in talk.lines)
    assert "WebSocket /talk: a note" in caplog.messages
    await talk.leave()
