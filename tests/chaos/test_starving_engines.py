"""llama.cpp itself, stopped in the middle, out of memory, and with weights that only it can tell are bad."""

import resource
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from diglot.core.model import ModelRef
from diglot.store.local import LocalStore
from tests.chaos.talking import ALL, DOORS, OPENAI, RESPONSES, Door, nothing_left, streaming, whole
from tests.serving import CHAT, Served, serving, serving_starters, starter_folder, until

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

STORY = "Tell me a long story."
HUNG = "gave no sign of life for 10 seconds"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that waits not long for its engines, which compute on one thread."""
    home = tmp_path_factory.mktemp("starving")
    with serving_starters(home, "--window", "2048", "--hang-timeout", "10") as made:
        for door in ALL:
            assert whole(made, door, model=CHAT, most=1).status_code == 200
        yield made


@pytest.fixture
def child(served: Served) -> psutil.Process:
    """The process of the model, loaded anew where the test before has ended it."""
    assert whole(served, OPENAI, model=CHAT, most=1).status_code == 200
    (child,) = served.children()
    return child


def test_an_engine_that_is_stopped_is_ended_and_all_who_wait_are_told(served: Served, child: psutil.Process) -> None:
    with nothing_left(served):
        with ExitStack() as stack:
            streams = {door: stack.enter_context(streaming(served, door, STORY, model=CHAT)) for door in ALL}
            for door, stream in streams.items():
                stream.read_until("}\n\n" if door is not DOORS[0] else "}\n")
            child.send_signal(signal.SIGSTOP)
            for door, stream in streams.items():
                assert told(door, stream.rest())
                assert not door.is_complete(stream.text)
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
        assert served.log_has(HUNG)
        for door in ALL:
            assert whole(served, door, model=CHAT, most=1).status_code == 200


def told(door: Door, text: str) -> bool:
    """Whether a door says at the end of a stream that the engine hung."""
    fault = door.fault(text)
    return fault.endswith(HUNG) if door.path.startswith("/api") else fault == door.streamed(door.crashed)


def test_an_engine_that_is_slow_is_not_ended(served: Served, child: psutil.Process) -> None:
    """It is stopped again and again, but never for as long as it has; its answer comes whole."""
    before = served.log_count(HUNG)
    with nothing_left(served), streaming(served, OPENAI, STORY, model=CHAT, most=40) as stream:
        for _ in range(8):
            stream.read_until("}\n\n")
            child.send_signal(signal.SIGSTOP)
            until(lambda: child.status() == psutil.STATUS_STOPPED)
            child.send_signal(signal.SIGCONT)
        assert OPENAI.is_complete(stream.rest())
    assert child.is_running()
    assert served.log_count(HUNG) == before


def test_an_engine_that_gets_no_more_memory_fails_alone(served: Served, child: psutil.Process) -> None:
    """Whether it answers all the same, says that it cannot, or dies: who asked is told, and who comes after is served."""
    with nothing_left(served):
        taken = child.memory_info().vms
        resource.prlimit(child.pid, resource.RLIMIT_AS, (taken, taken))
        answer = whole(served, OPENAI, "word " * 300, model=CHAT, most=2)
        assert answer.status_code == 200 or OPENAI.fault(answer.text) in {OPENAI.crashed, "engine_failed"}
        if child.is_running():
            child.kill()
        until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
        assert whole(served, OPENAI, model=CHAT, most=1).status_code == 200


def test_a_model_that_does_not_fit_into_memory_is_told_and_the_server_goes_on(tmp_path: Path) -> None:
    """Eight gigabytes of cache, where the system gives two to a process."""
    limit = ("--window", "8192", "--cache", str(8 << 30), "--slots", "64")
    with serving_starters(tmp_path, *limit) as served:
        server = psutil.Process(served.process.pid)
        resource.prlimit(server.pid, resource.RLIMIT_AS, (2 << 30, 2 << 30))
        assert (
            whole(served, RESPONSES, model=CHAT, most=1).status_code == 500
        )  # Its failure is stored: the file is open now.
        with nothing_left(served):
            for door in ALL:
                answer = whole(served, door, model=CHAT, most=1)
                assert answer.status_code == 500
                assert "could not be loaded" in answer.text
            with served.http() as client:
                assert client.get("/health").status_code == 200
        assert not served.children()


def test_weights_whose_header_is_well_and_whose_tensors_are_not_are_told(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "models")
    weights = LocalStore(starter_folder()).resolve(ModelRef.parse(CHAT)).weights
    store.add_file(weights, ModelRef.parse("well"))
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(weights.read_bytes().replace(b"blk.0.attn_q.weight", b"blk.0.attn_x.weight", 1))
    store.add_file(bad, ModelRef.parse("bad"))
    with serving(tmp_path, "--window", "2048", "--threads", "1") as served:
        assert whole(served, RESPONSES, model="well", most=1).status_code == 200
        with nothing_left(served):
            for door in ALL:
                answer = whole(served, door, model="bad", most=1)
                assert answer.status_code == 500
                assert "the engine refused its files or the options" in answer.text
            assert whole(served, OPENAI, model="well", most=1).status_code == 200
        assert served.log_has("attn_q")
        assert served.loaded() == {"well:latest"}
