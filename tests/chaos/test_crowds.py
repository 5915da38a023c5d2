"""More clients at once than are let in."""

import re
import select
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.chaos.talking import DOORS, Door, RawCall, nothing_left, whole
from tests.serving import PATIENCE, Served, serving_script, until

SLOTS, QUEUE, CLIENTS = 4, 8, 200
SCRIPT = {"slots": SLOTS, "replies": [{"when": "hold", "say": "Held", "hang": True}, {"echo": True}]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_script(tmp_path_factory.mktemp("crowd"), SCRIPT, "--queue", str(QUEUE)) as made:
        assert whole(made, DOORS[0]).status_code == 200
        yield made


def spoken(calls: list[RawCall]) -> list[RawCall]:
    """Wait until one at least of the calls has something to read, and return those that have."""
    ready, _, _ = select.select(calls, [], [], PATIENCE)
    assert ready, f"nobody of {len(calls)} is answered"
    return list(ready)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.path)
def test_as_many_as_there_are_slots_and_places_are_streamed_to_and_the_others_refused(
    served: Served, door: Door
) -> None:
    """Nobody who is let in ends before all others are refused; who waits comes in when one inside leaves."""
    with nothing_left(served), ExitStack() as stack:
        calls = [stack.enter_context(RawCall(served, door, "hold", stream=True)) for _ in range(CLIENTS)]
        answered: list[RawCall] = []
        while len(answered) < CLIENTS - QUEUE:
            for call in spoken(calls):
                calls.remove(call)
                answered.append(call)
                call.read_until("\r\n\r\n")
        inside = [call for call in answered if " 200 " in call.text.partition("\r\n")[0]]
        for call in answered:
            if call not in inside:
                assert_refused(call, door)
        assert len(inside) == SLOTS
        assert len(calls) == QUEUE
        while calls:
            inside.pop(0).socket.close()
            (call,) = spoken(calls)
            calls.remove(call)
            inside.append(call)
            assert "Held" in call.read_until("Held")
        assert len(inside) == SLOTS
    assert_at_rest(served, door)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.path)
def test_as_many_as_there_are_slots_and_places_may_wait_for_a_whole_answer_and_the_others_are_refused(
    served: Served, door: Door
) -> None:
    with nothing_left(served), ExitStack() as stack:
        calls = [stack.enter_context(RawCall(served, door, "hold", stream=False)) for _ in range(CLIENTS)]
        while len(calls) > SLOTS + QUEUE:
            for call in spoken(calls):
                calls.remove(call)
                assert_refused(call, door)
        with RawCall(
            served, door, "Well?", stream=False
        ) as late:  # The same client once more: a new one would be let in.
            assert_refused(late, door)
        assert not select.select(calls, [], [], 0)[0]
    assert_at_rest(served, door)


def assert_refused(call: RawCall, door: Door) -> None:
    """Check that a client is told that it is too many, and when to come back."""
    call.read_until("\0")
    head, _, body = call.text.partition("\r\n\r\n")
    assert " 503 " in head.partition("\r\n")[0]
    assert door.fault(body) == door.busy
    found = re.search(r"^retry-after: (\d+)\r?$", head, re.IGNORECASE | re.MULTILINE)
    assert found
    assert 1 <= int(found[1]) <= 60


def assert_at_rest(served: Served, door: Door) -> None:
    """Check that after all have left, as many as ever can come in at once."""
    until(lambda: whole(served, door, "Well?").status_code == 200)
    with ExitStack() as stack:
        again = [stack.enter_context(RawCall(served, door, "hold", stream=True)) for _ in range(SLOTS)]
        for call in again:
            assert "Held" in call.read_until("Held")
    assert not served.log_has("Traceback")
