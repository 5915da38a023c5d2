"""Engines to test: the scripted one, a model in a child process, the same model as a remote server.

Loading takes seconds, so an engine is shared by a module, on a loop that the module shares. The starter models
are fetched once for each checkout and kept beside its tools.
"""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from diglot.core.model import Model
from diglot.core.ports import Engine
from diglot.core.request import LoadOptions
from diglot.engines.llamacpp.engine import LlamaEngine
from diglot.engines.llamacpp.launch import Launch
from diglot.engines.llamacpp.loader import LlamaLoader
from diglot.engines.llamacpp.process import ChildProcess
from diglot.engines.llamacpp.sizing import Limits
from diglot.engines.remote.loader import RemoteLoader
from diglot.engines.remote.models import RemoteModels
from diglot.engines.scripted.loader import ScriptedLoader
from diglot.engines.scripted.models import ScriptedModels
from diglot.engines.scripted.script import Reply, Script
from diglot.store.local import LocalStore
from diglot.store.starter import fetch_starter
from tests.engines.asking import CountingIds

KEPT = Path(__file__).parent.parent.parent / ".tools" / "models"
LIMITS = Limits(slots=2, cache=256 * 1024**2, cores=1)  # A second thread would spin against the other tests.
WINDOW = LoadOptions(window=2048)


@pytest.fixture(scope="session")
def starters() -> dict[str, Model]:
    """The starter models by name."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / "tests.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        return {model.name: model for model in fetch_starter(LocalStore(KEPT))}


@pytest.fixture(scope="session")
def chat_model(starters: dict[str, Model]) -> Model:
    return starters["smollm2:135m"]


@pytest.fixture(scope="session")
def embedding_model(starters: dict[str, Model]) -> Model:
    return starters["all-minilm:l6-v2"]


def nothing(done: int, total: int) -> None:
    """Take a load's progress."""


@pytest.fixture(scope="session")
def llama() -> LlamaLoader:
    return LlamaLoader(ids=CountingIds(), limits=LIMITS)


@pytest.fixture(scope="session")
def spoken() -> Script:
    """What the scripted engine says where a real one makes something up."""
    return Script(
        replies=(
            Reply(when="Count", say="1, 2, 3, 4, 5, 6, 7, 8, 9, 10", prefill=2),
            Reply(when="party", say="Party: \N{PARTY POPPER}\N{ROCKET}日本語", prefill=2),
            Reply(when="for ever", say="On and on", hang=True, prefill=2),
            Reply(say="Well, that is a question that I can say quite a lot about.", prefill=2),
        ),
        slots=2,
        window=2048,
    )


async def scripted_engine(script: Script, *, name: int) -> Engine:
    """Load a model of the scripted store."""
    return await ScriptedLoader(script).load(ScriptedModels(script).list()[name], LoadOptions(), nothing)


@asynccontextmanager
async def somebody_elses(model: Model) -> AsyncIterator[str]:
    """Run a llama.cpp server that is not ours, whose key is `theirs`, and give its address."""
    launch = Launch(
        model=str(model.weights), key="theirs", window=2048, pool=4096, slots=2, threads=1, batch_threads=1, batch=128
    )
    child = await ChildProcess.start(launch, name="theirs", progress=nothing)
    try:
        yield f"http://127.0.0.1:{child.port}/v1/"
    finally:
        await child.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["scripted", "llamacpp", "remote"])
async def engine(
    request: pytest.FixtureRequest, llama: LlamaLoader, spoken: Script, chat_model: Model
) -> AsyncIterator[Engine]:
    """A model that chats, on each kind of engine."""
    async with AsyncExitStack() as stack:
        match request.param:
            case "scripted":
                made = await scripted_engine(spoken, name=0)
            case "llamacpp":
                made = await llama.load(chat_model, WINDOW, nothing)
            case _:
                address = await stack.enter_async_context(somebody_elses(chat_model))
                models = RemoteModels([address], key="theirs")
                loader = RemoteLoader(models, otherwise=llama, ids=CountingIds())
                found = await asyncio.to_thread(models.list)
                made = await loader.load(found[0], LoadOptions(), nothing)
        yield made
        await made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["scripted", "llamacpp"])
async def embedder(
    request: pytest.FixtureRequest, llama: LlamaLoader, spoken: Script, embedding_model: Model
) -> AsyncIterator[Engine]:
    """A model that embeds."""
    if request.param == "scripted":
        made: Engine = await scripted_engine(spoken, name=1)
    else:
        made = await llama.load(embedding_model, LoadOptions(), nothing)
    yield made
    await made.close()


@pytest_asyncio.fixture
async def llama_engine(llama: LlamaLoader, chat_model: Model) -> AsyncIterator[LlamaEngine]:
    """An engine of one's own, to be mistreated."""
    made = await llama.load(chat_model, WINDOW, nothing)
    yield made
    await made.close()
