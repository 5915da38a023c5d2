"""A model in a child process: what becomes of it when something dies, and what it tells nobody."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path

import msgspec
import psutil
import pytest
from blockbuster import BlockBuster

from diglot.core.errors import Cancelled, EngineCrashed, InvalidField, LoadFailed, ModelIncapable
from diglot.core.events import Event, Finished, TextDelta
from diglot.core.items import Image, Message
from diglot.core.model import Model
from diglot.core.request import Conversation, Embedding, LoadOptions, Residence, Sampling
from diglot.engines.llamacpp.engine import LlamaEngine
from diglot.engines.llamacpp.launch import Launch, Ready, Report
from diglot.engines.llamacpp.loader import LlamaLoader
from diglot.engines.llamacpp.process import ChildProcess
from diglot.engines.llamacpp.sizing import Limits, sizes_of
from diglot.engines.peer.transport import read_all
from diglot.engines.peer.wire import Wire
from diglot.settings import environment_of_children
from tests.engines.asking import CountingIds, asked, events_of, raw, result_of
from tests.engines.conftest import LIMITS, WINDOW, nothing

pytestmark = pytest.mark.timeout(180)
ROOT = Path(__file__).parent.parent.parent
ORPHAN = """
import asyncio, sys
from diglot.core.model import ModelRef
from diglot.store.local import LocalStore
from tests.engines.conftest import KEPT, LIMITS, WINDOW, nothing
from tests.engines.asking import CountingIds
from diglot.engines.llamacpp.loader import LlamaLoader

async def main():
    model = LocalStore(KEPT).resolve(ModelRef.parse("smollm2:135m"))
    engine = await LlamaLoader(ids=CountingIds(), limits=LIMITS).load(model, WINDOW, nothing)
    print(engine.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def children() -> set[int]:
    """The processes that this one has started and that run."""
    found = psutil.Process().children(recursive=True)
    return {child.pid for child in found if child.status() != psutil.STATUS_ZOMBIE}


@contextlib.asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """Check that no child is left behind."""
    before = children()
    yield
    assert children() <= before


async def first_text(stream: AsyncIterable[Event]) -> None:
    """Read an answer up to its first text."""
    async for event in stream:
        if isinstance(event, TextDelta):
            return


async def test_a_child_that_is_killed_ends_its_answer_and_nothing_else(llama_engine: LlamaEngine) -> None:
    stream = llama_engine.generate(asked("Count for ever.", most=None))
    await first_text(stream)
    os.kill(llama_engine.pid, signal.SIGKILL)
    with pytest.raises(EngineCrashed) as caught:
        await events_of(stream)
    assert "-9" in caught.value.detail
    assert not llama_engine.alive
    with pytest.raises(EngineCrashed):
        await events_of(llama_engine.generate(asked("Hello?")))


async def test_a_model_is_loaded_anew_after_a_crash(llama: LlamaLoader, chat_model: Model) -> None:
    first = await llama.load(chat_model, WINDOW, nothing)
    os.kill(first.pid, signal.SIGKILL)
    with pytest.raises(EngineCrashed):
        await events_of(first.generate(asked("Hello?")))
    await first.close()
    second = await llama.load(chat_model, WINDOW, nothing)
    assert (await result_of(second.generate(asked("Hello?", most=2)))).usage.output
    await second.close()


async def test_closing_ends_answers_under_way(llama_engine: LlamaEngine) -> None:
    async with nothing_left():
        pid = llama_engine.pid
        stream = llama_engine.generate(asked("Count for ever.", most=None))
        await first_text(stream)
        await llama_engine.close()
        with pytest.raises(Cancelled):
            await events_of(stream)
        assert not psutil.pid_exists(pid)
        await llama_engine.close()


LOUD = """
import os
from diglot.engines.llamacpp import child

def serve(launch):
    os.write(1, b"x" * 200_000)
    return 1, None

child.serve_library = serve
child.main()
"""


def test_what_a_library_prints_is_no_report_and_keeps_nothing_from_going_on() -> None:
    launch = Launch(model="m", key="k", window=8, pool=8, slots=1, threads=1, batch_threads=1, batch=8)
    said = msgspec.json.encode(launch) + b"\n"
    done = subprocess.run([sys.executable, "-c", LOUD], input=said, capture_output=True, check=False, timeout=60)
    assert msgspec.json.decode(done.stdout, type=Report) == Ready(1)
    assert len(done.stderr) == 200_000


def test_a_child_does_not_outlive_a_parent_that_is_killed(chat_model: Model) -> None:
    parent = subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, cwd=ROOT)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    gone, alive = psutil.wait_procs([child], timeout=20)
    assert gone == [child]
    assert alive == []


async def test_a_key_is_needed_and_shows_nowhere(chat_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "a-key-that-nobody-knows"
    monkeypatch.setenv("DIGLOT_REMOTE_KEY", "a-key-of-the-server")
    monkeypatch.setenv("DIGLOT_KEY", "a-key-of-the-server")
    launch = Launch(
        model=str(chat_model.weights), key=key, window=256, pool=256, slots=1, threads=1, batch_threads=1, batch=128
    )
    child = await ChildProcess.start(launch, name="x", progress=nothing, environment=environment_of_children())
    shown = psutil.Process(child.pid)
    open_to_see = " ".join([*shown.cmdline(), *shown.environ().values()])
    assert key not in open_to_see
    assert "a-key-of-the-server" not in open_to_see
    for used, status in ((key, 200), ("another", 401)):
        async with Wire(child.port, key=used).send("GET", "/slots") as reply:
            assert reply.status == status
            await read_all(reply, limit=10_000)
    await child.stop()


async def test_a_child_has_a_session_of_its_own(llama_engine: LlamaEngine) -> None:
    assert os.getsid(llama_engine.pid) == llama_engine.pid != os.getsid(0)


async def test_a_file_that_is_no_model_fails_to_load(llama: LlamaLoader, chat_model: Model, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(1000))
    model = msgspec.structs.replace(chat_model, weights=broken)
    async with nothing_left():
        with pytest.raises(LoadFailed) as caught:
            await llama.load(model, LoadOptions(), nothing)
    assert "broken.gguf" in caught.value.detail


async def test_a_load_that_is_cancelled_leaves_nothing(llama: LlamaLoader, chat_model: Model) -> None:
    async with nothing_left():
        seen = asyncio.Event()
        load = asyncio.create_task(llama.load(chat_model, WINDOW, lambda *_: seen.set()))
        await seen.wait()
        load.cancel()
        with pytest.raises(asyncio.CancelledError):
            await load


async def test_a_load_tells_its_progress(llama: LlamaLoader, chat_model: Model) -> None:
    told: list[tuple[int, int]] = []
    engine = await llama.load(chat_model, WINDOW, lambda done, total: told.append((done, total)))
    assert {total for _, total in told} == {chat_model.weights.stat().st_size}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert llama.estimate(chat_model, WINDOW) > engine.memory * 0.5
    await engine.close()


async def test_the_memory_that_is_told_before_is_what_a_loaded_model_holds(chat_model: Model) -> None:
    limits = Limits(slots=4, cache=1 << 29)
    sizes = sizes_of(chat_model, LoadOptions(), limits)
    engine = await LlamaLoader(ids=CountingIds(), limits=limits).load(chat_model, LoadOptions(), nothing)
    assert 0.7 < engine.memory / sizes.fresh < 1.1
    assert sizes.fresh < sizes.memory
    await engine.close()


async def test_answers_that_outgrow_the_shared_cache_wait_for_each_other(chat_model: Model) -> None:
    loader = LlamaLoader(ids=CountingIds(), limits=Limits(slots=3, cache=256 * chat_model.anatomy.kv_bytes_per_token))
    engine = await loader.load(chat_model, LoadOptions(window=256), nothing)
    sampling = Sampling(max_tokens=-1, temperature=0.0, logit_bias={2: -100.0, 0: -100.0})
    asking = [asked(f"{number} " + "word " * 150, sampling=sampling) for number in range(3)]
    results = await asyncio.gather(*(result_of(engine.generate(request)) for request in asking))
    assert [result.usage.total for result in results] == [256] * 3
    assert {result.choices[0].reason for result in results} == {"length"}
    await engine.close()


async def test_an_image_is_refused_by_a_model_that_sees_nothing(llama_engine: LlamaEngine) -> None:
    request = asked("Look")
    seen = Message(role="user", content=(Image(b"\x89PNG", "image/png"),))
    shown = type(request)(residence=request.residence, prompt=Conversation((seen,)))
    with pytest.raises(ModelIncapable, match="vision"):
        await anext(llama_engine.generate(shown))


async def test_numbers_of_any_size_are_taken(llama_engine: LlamaEngine) -> None:
    for sampling in (
        Sampling(max_tokens=2, repeat_penalty=1.1, repeat_last_n=-1, seed=-1),
        Sampling(max_tokens=2, repeat_penalty=1.1, repeat_last_n=2**40, seed=2**64 - 1, temperature=-1.0),
    ):
        result = await result_of(llama_engine.generate(asked("Hi", sampling=sampling)))
        assert result.usage.output == 2
    stream = llama_engine.generate(asked("Hi", sampling=Sampling(max_tokens=10**12)))
    await first_text(stream)
    await stream.aclose()


@pytest.mark.parametrize("token", [-1, 10**7])
async def test_a_token_that_the_model_lacks_is_refused_by_the_name_of_its_field(
    llama_engine: LlamaEngine, token: int
) -> None:
    with pytest.raises(InvalidField, match="prompt"):
        await anext(llama_engine.generate(raw((504, token))))
    with pytest.raises(InvalidField, match="logit_bias"):
        await anext(llama_engine.generate(asked("Hi", sampling=Sampling(logit_bias={token: 1.0}))))


async def test_a_token_that_an_embedding_model_lacks_is_refused(llama: LlamaLoader, embedding_model: Model) -> None:
    engine = await llama.load(embedding_model, LoadOptions(), nothing)
    with pytest.raises(InvalidField, match="input"):
        await engine.embed(Embedding(residence=Residence(), inputs=("fine", (101, 10**7))))
    await engine.close()


async def test_a_gap_is_filled_between_the_marks_of_the_model(
    llama: LlamaLoader, chat_model: Model, llama_engine: LlamaEngine
) -> None:
    gap = raw("def add(a, b):", suffix="return c")
    with pytest.raises(ModelIncapable, match="insert"):
        await anext(llama_engine.generate(gap))
    anatomy = msgspec.structs.replace(chat_model.anatomy, fill=(4, 5, 6))
    engine = await llama.load(msgspec.structs.replace(chat_model, anatomy=anatomy), WINDOW, nothing)
    pieces = [await engine.count(raw(text)) for text in ("def add(a, b):", "return c")]
    assert await engine.count(gap) == sum(pieces) + 3
    assert (await result_of(engine.generate(gap))).usage.input == sum(pieces) + 3
    await engine.close()


async def test_nothing_blocks_the_loop(llama_engine: LlamaEngine, no_blocking: BlockBuster) -> None:
    events = await events_of(llama_engine.generate(asked("Say hello.", most=4)))
    assert isinstance(events[-1], Finished)
    assert await llama_engine.count(asked("Say hello.")) > 0


async def test_a_child_that_hangs_is_ended_and_those_who_wait_are_told(chat_model: Model) -> None:
    loader = LlamaLoader(ids=CountingIds(), limits=LIMITS, patience=2.0)
    async with nothing_left():
        engine = await loader.load(chat_model, WINDOW, nothing)
        stream = engine.generate(asked("Count for ever.", most=None))
        await first_text(stream)
        os.kill(engine.pid, signal.SIGSTOP)
        with pytest.raises(EngineCrashed, match="no sign of life for 2 seconds"):
            await events_of(stream)
        assert not engine.alive
        await engine.close()


async def test_a_child_that_hangs_while_it_loads_is_ended(chat_model: Model) -> None:
    loader = LlamaLoader(ids=CountingIds(), limits=LIMITS, patience=0.5)

    def stop(*_: object) -> None:
        for pid in children() - before:
            os.kill(pid, signal.SIGSTOP)

    before = children()
    async with nothing_left():
        with pytest.raises(LoadFailed, match=r"no sign of life for 0\.5 seconds while loading"):
            await loader.load(chat_model, WINDOW, stop)
