"""A server that is told to stop: what becomes of answers in flight, of those who wait, and of its children."""

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.chaos.talking import DOORS, OLLAMA, OPENAI, Door, streaming, waiting, whole
from tests.serving import CHAT, serving_script, serving_starters, until

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

ENDLESS = {"slots": 2, "replies": [{"say": ["One ", "two "], "hang": True}]}
LONG = {"replies": [{"say": "word " * 400_000}], "window": 10_000_000}


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_answers_that_take_too_long_end_with_an_error_in_their_dialect(
    tmp_path: Path, aside: ThreadPoolExecutor, stop: signal.Signals
) -> None:
    """Two stream, two wait for them. Not one is cut off without a word."""
    with serving_script(tmp_path, ENDLESS, "--drain", "0.5") as served, ExitStack() as stack:
        streams = {door: stack.enter_context(streaming(served, door)) for door in DOORS}
        for stream in streams.values():
            stream.read_until("two")
        queued = {door: waiting(aside, served, door) for door in DOORS}
        served.process.send_signal(stop)
        for door, stream in streams.items():
            assert door.fault(stream.rest()) == door.cancelled
            assert not door.is_complete(stream.text)
        refused = {door: answer.result() for door, answer in queued.items()}
        code, log = served.ended()
    assert {door: door.fault(answer.text) for door, answer in refused.items()} == {
        door: door.cancelled for door in DOORS
    }
    assert {door.path: answer.status_code for door, answer in refused.items()} == {OLLAMA.path: 499, OPENAI.path: 503}
    assert code == 0
    assert "Traceback" not in log


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.path)
def test_a_stream_that_can_end_in_time_ends_well(tmp_path: Path, door: Door) -> None:
    """The client reads no further until the server goes down: more is to come than the network holds."""
    with serving_script(tmp_path, LONG, "--drain", "60") as served, streaming(served, door) as stream:
        stream.read_until("word")
        served.process.terminate()
        until(lambda: served.log_has("Shutting down"))
        assert door.is_complete(stream.rest())
        code, log = served.ended()
    assert code == 0
    assert "Traceback" not in log


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.path)
def test_a_whole_answer_that_can_end_in_time_ends_well_and_no_child_stays(
    tmp_path: Path, aside: ThreadPoolExecutor, door: Door
) -> None:
    with serving_starters(tmp_path, "--drain", "60", "--log", "debug") as served:
        answer = aside.submit(whole, served, door, "Tell me a story.", model=CHAT, most=60)
        until(lambda: served.log_has("processing task"))
        children = served.children()
        served.process.terminate()
        assert answer.result().status_code == 200
        code, log = served.ended()
        until(lambda: not any(child.is_running() for child in children))
    assert len(children) == 1
    assert code == 0
    assert "Traceback" not in log


def test_a_server_that_is_told_while_it_loads_ends_at_once(tmp_path: Path, aside: ThreadPoolExecutor) -> None:
    with serving_starters(tmp_path, "--drain", "0.1") as served:
        answer = aside.submit(whole, served, OPENAI, model=CHAT)
        until(served.children)
        served.process.terminate()
        assert OPENAI.fault(answer.result().text) == OPENAI.cancelled
        code, log = served.ended()
    assert code == 0
    assert "Traceback" not in log


def test_a_client_that_neither_reads_nor_leaves_does_not_hold_the_server_up(tmp_path: Path) -> None:
    with serving_script(tmp_path, LONG, "--drain", "0.1") as served, streaming(served, OLLAMA) as stream:
        stream.read_until("word")
        served.process.terminate()
        code, log = served.ended()
    assert code == 0
    assert "Traceback" not in log


def test_a_second_ctrl_c_ends_it_at_once_and_quietly(tmp_path: Path) -> None:
    with serving_script(tmp_path, ENDLESS, "--drain", "60") as served, streaming(served, OPENAI) as stream:
        stream.read_until("two")
        served.process.send_signal(signal.SIGINT)
        until(lambda: served.log_has("Shutting down"))
        served.process.send_signal(signal.SIGINT)
        code, log = served.ended()
    assert code == 0
    assert "Traceback" not in log


def test_children_end_with_a_server_that_is_killed(tmp_path: Path) -> None:
    with serving_starters(tmp_path) as served:
        assert whole(served, OLLAMA, model=CHAT, most=1).status_code == 200
        (child,) = served.children()
        served.process.kill()
        served.ended()
        until(lambda: not child.is_running())
