"""Engines that hang, take too much memory, crash or do not load: who waits is told, and the next request begins anew.

A stand-in for llama.cpp runs in the child, which does each of these on demand. The real one is stopped, killed and
starved in `test_dying_engines`.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from tests.chaos.talking import (
    ALL,
    RESPONSES,
    Door,
    heard,
    nothing_left,
    say,
    socket_to,
    streaming,
    waiting,
    whole,
)
from tests.serving import CHAT, Served, serving, starter_folder, until

pytestmark = pytest.mark.timeout(240)  # Many processes, on whatever machine this is.

STAND_IN = Path(__file__).parent / "llama"
LOADING = {
    "missing": "the engine refused its files or the options",
    "refuses": "the engine refused its files or the options",
    "aborts": "its engine process ended while loading",
    "is killed": "its engine process ended while loading",
    "hangs": "its engine process was ended, for it gave no sign of life for 1 seconds while loading",
}
DOORED = pytest.mark.parametrize("door", ALL, ids=lambda door: door.path)


@contextmanager
def standing_in(home: Path, misfortune: str = "") -> Iterator[Served]:
    """Run a server whose children have the stand-in instead of llama.cpp."""
    env = {"PYTHONPATH": str(STAND_IN), "FAKE_LLAMA": misfortune}
    with serving(home, "--models", str(starter_folder()), "--hang-timeout", "1", env=env) as served:
        yield served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with standing_in(tmp_path_factory.mktemp("standing-in")) as made:
        for door in ALL:
            assert whole(made, door, model=CHAT).status_code == 200
        yield made


@pytest.fixture
def loaded(served: Served) -> Served:
    """The same, with the model in memory, whatever the test before has done to it."""
    assert whole(served, RESPONSES, model=CHAT).status_code == 200
    return served


@DOORED
@pytest.mark.parametrize("misfortune", ["memory", "crash", "hang"])
def test_in_the_middle_of_an_answer(loaded: Served, door: Door, misfortune: str) -> None:
    (victim,) = loaded.children()
    with nothing_left(loaded):
        with streaming(loaded, door, misfortune, model=CHAT) as stream:
            assert door.fault(stream.rest()) == door.streamed(told(door, misfortune))
            assert "two " in stream.text
            assert not door.is_complete(stream.text)
        assert not victim.is_running() or victim.status() == psutil.STATUS_ZOMBIE
        assert whole(loaded, door, model=CHAT).status_code == 200
    assert loaded.children() != [victim]


@DOORED
@pytest.mark.parametrize("misfortune", ["memory", "hang"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_before_the_first_word(loaded: Served, door: Door, misfortune: str, *, stream: bool) -> None:
    with nothing_left(loaded):
        if stream:
            with streaming(loaded, door, f"{misfortune} at once", model=CHAT) as broken:
                status, text = broken.response.status_code, broken.rest()
        else:
            answer = whole(loaded, door, f"{misfortune} at once", model=CHAT)
            status, text = answer.status_code, answer.text
        assert status == 500
        assert door.fault(text) == told(door, misfortune)
        assert whole(loaded, door, model=CHAT).status_code == 200


@pytest.mark.parametrize("misfortune", ["memory", "hang"])
def test_over_a_websocket(loaded: Served, misfortune: str) -> None:
    with nothing_left(loaded), socket_to(loaded) as connection:
        say(connection, misfortune)
        failed = heard(connection, "response.failed")["response"]
        assert failed["error"]["code"] == "server_error"
        assert [item["status"] for item in failed["output"]] == ["incomplete"]
        assert failed["output"][0]["content"][0]["text"] == "One two "
        say(connection, "And now?")
        assert heard(connection, "response.completed")


def test_all_who_wait_for_one_that_hangs_are_told(loaded: Served, aside: ThreadPoolExecutor) -> None:
    with nothing_left(loaded), ExitStack() as stack:
        streams = {door: stack.enter_context(streaming(loaded, door, "hang", model=CHAT)) for door in ALL}
        for stream in streams.values():
            stream.read_until("two ")
        answers = {door: waiting(aside, loaded, door, "hang", model=CHAT) for door in ALL}
        for door, stream in streams.items():
            assert door.fault(stream.rest()) == door.streamed(told(door, "hang"))
        for door, answer in answers.items():
            assert answer.result().status_code == 500  # Who was let in after the end has begun anew, and hung again.
            assert door.fault(answer.result().text) == told(door, "hang")
        assert whole(loaded, RESPONSES, model=CHAT).status_code == 200


def test_what_had_come_of_a_response_is_stored_with_its_failure(loaded: Served) -> None:
    with streaming(loaded, RESPONSES, "memory", model=CHAT) as stream:
        stream.rest()
    name = stream.text.partition('"id":"')[2].partition('"')[0]
    with loaded.http() as client:
        shown = client.get(f"/v1/responses/{name}").json()
    assert (shown["status"], shown["error"]["code"]) == ("failed", "server_error")
    assert [(item["status"], item["content"][0]["text"]) for item in shown["output"]] == [("incomplete", "One two ")]


@pytest.mark.parametrize("misfortune", LOADING)
def test_while_it_loads(tmp_path: Path, misfortune: str) -> None:
    """Each that asks is told, in the form of its dialect; the server goes on, and no child stays."""
    with standing_in(tmp_path, misfortune) as served:
        assert whole(served, RESPONSES, model=CHAT).status_code == 500
        with nothing_left(served):
            for door in ALL:
                answer = whole(served, door, model=CHAT)
                assert answer.status_code == 500
                assert door.fault(answer.text) in {"model_load_failed", loading(misfortune)}
                assert loading(misfortune) in answer.text.replace("\\u0027", "'")
            with served.http() as client:
                assert client.get("/health").status_code == 200
                assert client.get("/api/ps").json() == {"models": []}
        until(lambda: not served.children())


def told(door: Door, misfortune: str) -> str:
    """Return how a door tells of a misfortune."""
    if misfortune == "hang" and door.path.startswith("/api"):
        return f"the engine of model {CHAT!r} was ended, for it gave no sign of life for 1 seconds"
    return door.crashed


def loading(misfortune: str) -> str:
    """Return what everybody is told of a misfortune while a model loads."""
    return f"model {CHAT!r} could not be loaded: {LOADING[misfortune]}"
