"""The process of a model is killed in the middle of its answers: who is told, who goes on, and what comes next."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from diglot.core.model import ModelRef
from diglot.store.local import LocalStore
from tests.chaos.talking import DOORS, OLLAMA, Door, nothing_left, streaming, waiting, whole
from tests.serving import CHAT, Served, serving, starter_folder, until

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

OTHER = "other:latest"
STORY = "Tell me a long story."


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with two models that chat."""
    home = tmp_path_factory.mktemp("two")
    store = LocalStore(home / "models")
    weights = LocalStore(starter_folder()).resolve(ModelRef.parse(CHAT)).weights
    for name in (CHAT, OTHER):
        store.add_file(weights, ModelRef.parse(name))
    with serving(home, "--window", "2048", "--threads", "1") as made:
        yield made


def test_a_kill_ends_the_answers_of_that_model_and_nothing_else(served: Served, aside: ThreadPoolExecutor) -> None:
    for child in served.children():
        child.kill()
    until(lambda: not served.children())
    assert whole(served, OLLAMA, model=OTHER, most=1).status_code == 200
    others = {child.pid for child in served.children()}
    assert whole(served, OLLAMA, model=CHAT, most=1).status_code == 200
    (victim,) = (child for child in served.children() if child.pid not in others)
    with nothing_left(served):
        kill_in_the_middle(served, aside, victim)
        for door in DOORS:
            assert whole(served, door, model=CHAT, most=1).status_code == 200
    assert served.loaded() == {CHAT, OTHER}
    assert len(served.children()) == 2


def kill_in_the_middle(served: Served, aside: ThreadPoolExecutor, victim: psutil.Process) -> None:
    """Kill one of two models while both answer, and see who is told."""
    with streaming(served, OLLAMA, STORY, model=OTHER, most=40) as survivor:
        survivor.read_until("}")
        doomed = {door: waiting(aside, served, door, STORY, model=CHAT) for door in DOORS}
        with (
            streaming(served, DOORS[0], STORY, model=CHAT) as one,
            streaming(served, DOORS[1], STORY, model=CHAT) as two,
        ):
            streams = {DOORS[0]: one, DOORS[1]: two}
            for stream in streams.values():
                stream.read_until("}")
            os.kill(victim.pid, signal.SIGKILL)
            for door, stream in streams.items():
                assert door.fault(stream.rest()) == door.crashed
                assert not door.is_complete(stream.text)
        for door, answer in doomed.items():
            assert answer.result().status_code == 500
            assert door.fault(answer.result().text) == door.crashed
        assert OLLAMA.is_complete(survivor.rest())


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.path)
def test_a_model_that_died_while_nobody_looked_is_loaded_anew(served: Served, door: Door) -> None:
    assert whole(served, door, model=CHAT, most=1).status_code == 200
    for child in served.children():
        child.kill()
    until(lambda: not served.loaded())  # A process that is dying still takes connections for a moment.
    assert whole(served, door, model=CHAT, most=1).status_code == 200
