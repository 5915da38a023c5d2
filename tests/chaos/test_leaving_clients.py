"""Clients that leave: whenever it is, and whether they stream or not, their slot is free for the next."""

import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.talking import DOORS, Door, RawCall, nothing_left, settle, streaming, whole
from tests.serving import CHAT, Served, serving_script, serving_starters, until

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

LONG = "The quick brown fox jumps over the lazy dog again. " * 600
ONE_AT_A_TIME = ("--slots", "1", "--queue", "0")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that makes one answer at a time, with a model that is loaded."""
    with serving_starters(tmp_path_factory.mktemp("one"), *ONE_AT_A_TIME) as made:
        assert whole(made, DOORS[0], model=CHAT, most=1).status_code == 200
        yield made


def is_answered(served: Served, door: Door) -> bool:
    """Whether the one slot is free, which is seen by being answered."""
    answer = whole(served, door, "Hi", most=1)
    assert answer.status_code in {200, 503}
    return answer.status_code == 200


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.path)
def test_who_leaves_while_the_prompt_is_read_stops_the_reading(real: Served, door: Door, *, stream: bool) -> None:
    with nothing_left(real):
        before = real.log_count("processing task")
        stopped = real.log_count("cancel task")
        with RawCall(real, door, LONG, stream=stream, model=CHAT):
            until(lambda: real.log_count("processing task") > before)
        until(lambda: is_answered(real, door))
    until(lambda: real.log_count("cancel task") == stopped + 1)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.path)
def test_who_leaves_in_the_middle_of_a_stream_stops_it(real: Served, door: Door) -> None:
    with nothing_left(real):
        with streaming(real, door, "Tell me a long story.", model=CHAT) as stream:
            stream.read_until("}")
        until(lambda: is_answered(real, door))


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.path)
def test_who_leaves_the_queue_gives_up_the_place(tmp_path: Path, door: Door, *, stream: bool) -> None:
    script = {"slots": 1, "replies": [{"when": "hold", "say": "Held", "hang": True}, {"echo": True}]}
    with serving_script(tmp_path, script, "--queue", "1") as served:
        with streaming(served, door, "hold") as held:
            held.read_until("Held")
            with RawCall(served, door, "first", stream=stream):
                settle(served)
                assert whole(served, door, "second").status_code == 503
            last = until(lambda: _queued(served, door, stream=stream))
        with last:
            assert "third" in last.read_until("third")


def _queued(served: Served, door: Door, *, stream: bool) -> RawCall | None:
    """Ask, and return the call unless it was refused."""
    call = RawCall(served, door, "third", stream=stream)
    settle(served)
    if not select.select([call], [], [], 0)[0]:
        return call
    assert " 503 " in call.read_until("\r\n\r\n")
    call.socket.close()
    return None
