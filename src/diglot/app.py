"""The composition root: the one place where real things are handed to those who need them.

Everything else in the house names ports and tables; here they get names. It has no logic of its own.
Neighbours: `cli` calls `serve`, tests call `build`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import secrets
import signal
import socket
import string
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp

from diglot.core.ports import Clock, EngineLoader, Ids, ModelStore
from diglot.core.request import LoadOptions
from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.openai import DIALECT as OPENAI
from diglot.engines.llamacpp.loader import LlamaLoader
from diglot.engines.llamacpp.sizing import Limits as EngineLimits
from diglot.engines.remote.loader import RemoteLoader
from diglot.engines.remote.models import RemoteModels
from diglot.engines.scripted.loader import ScriptedLoader
from diglot.engines.scripted.models import ScriptedModels
from diglot.engines.scripted.script import Script, load_script
from diglot.http.application import Access, build_application
from diglot.http.serve import Limits, World
from diglot.services.catalog import Catalog
from diglot.services.compact import Compact
from diglot.services.desk import Desk
from diglot.services.embed import Embed
from diglot.services.envelopes import Envelopes
from diglot.services.fold import Fold
from diglot.services.generate import Generate
from diglot.services.holdings import Holdings
from diglot.services.presence import Presence
from diglot.services.residency import Policy, Residency
from diglot.services.respond import Responses
from diglot.services.transfer import Transfer
from diglot.settings import Settings
from diglot.state.responses import StoredResponses
from diglot.state.seal import FileSeal
from diglot.store.local import LocalStore
from diglot.store.supply import StoreSupply

log = logging.getLogger(__name__)

_LETTERS = string.ascii_letters + string.digits
_LAST_WORDS = 2.0
"""Seconds for clients to take what they are told when their answers are called off."""


class SystemClock:
    """The time of the machine."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    def monotonic_ns(self) -> int:
        """Return nanoseconds of a clock that never goes back."""
        return time.monotonic_ns()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        await asyncio.sleep(seconds)


class RandomIds:
    """Names that cannot be guessed."""

    def new(self) -> str:
        """Return 24 letters and digits."""
        return "".join(secrets.choice(_LETTERS) for _ in range(24))


def memory_of(settings: Settings) -> int:
    """Return the bytes that loaded models may take together."""
    return settings.memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4


def engines_of(settings: Settings, ids: Ids) -> tuple[EngineLoader, tuple[ModelStore, ...]]:
    """Return what runs the models, and where there are more of them than in the store. Raises InvalidScript."""
    if settings.engine == "scripted":
        script = load_script(settings.script) if settings.script else Script()
        return ScriptedLoader(script), (ScriptedModels(script),)
    limits = EngineLimits(
        slots=settings.slots, cache=settings.cache or memory_of(settings) // 4, cores=os.cpu_count() or 1
    )
    program = str(settings.llama_server) if settings.llama_server else None
    loader: EngineLoader = LlamaLoader(ids=ids, limits=limits, program=program)
    if not settings.remotes:
        return loader, ()
    models = RemoteModels(settings.remotes, key=settings.remote_key)
    return RemoteLoader(models, otherwise=loader, ids=ids), (models,)


def _policy(settings: Settings) -> Policy:
    return Policy(
        budget=memory_of(settings),
        keep_alive=settings.keep_alive if settings.keep_alive >= 0 else math.inf,
        queue=settings.queue,
        defaults=LoadOptions(
            window=settings.window or None, threads=settings.threads or None, gpu_layers=settings.gpu_layers
        ),
    )


def build_desk(settings: Settings, *, clock: Clock, ids: Ids) -> Desk:
    """Return the services over the real store and engines."""
    loader, stores = engines_of(settings, ids)
    residency = Residency(loader, clock=clock, policy=_policy(settings))
    keep = LocalStore(settings.model_folder, in_use=residency.uses)
    stores = (keep, *stores)
    catalog = Catalog(stores, embedding_model=settings.embedding_model)
    envelopes = Envelopes(FileSeal(settings.state_folder / "seal.key"), sealing=settings.sealed)
    fold = Fold(envelopes, Compact(envelopes), always=settings.on_overflow == "compact")
    generate = Generate(catalog, residency, fold, clock=clock)
    holdings = Holdings(keep, catalog, residency)
    stored = StoredResponses(
        settings.state_folder / "responses.sqlite", clock=clock, age=settings.response_age, size=settings.response_size
    )
    return Desk(
        catalog=catalog,
        residency=residency,
        presence=Presence(catalog, residency, clock=clock),
        generate=generate,
        responses=Responses(generate, stored, clock=clock),
        embed=Embed(catalog, residency, clock=clock, limit=settings.max_inputs),
        holdings=holdings,
        transfer=Transfer(StoreSupply(keep), holdings),
    )


def build(settings: Settings) -> ASGIApp:
    """Return the application as an ASGI server runs it."""
    application, _ = _built(settings)
    return application


def _built(settings: Settings) -> tuple[ASGIApp, Desk]:
    clock, ids = SystemClock(), RandomIds()
    desk = build_desk(settings, clock=clock, ids=ids)
    limits = Limits(max_body=settings.max_body, body_timeout=settings.body_timeout, heartbeat=settings.heartbeat)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await desk.close()

    application = build_application(
        (OLLAMA, OPENAI),
        World(desk=desk, clock=clock, ids=ids, limits=limits),
        access=Access(hosts=settings.hosts, origins=settings.origins, key=settings.key),
        lifespan=lifespan,
    )
    return application, desk


class DrainingServer(uvicorn.Server):
    """A server that goes down in order: nobody new comes in, and answers in flight get `drain` seconds to end.

    Then the desk is closed, which ends them with a fault, so that each client is told in the form of its dialect.
    What uvicorn would do alone is to cancel them, and their clients would be told nothing.
    """

    def __init__(self, config: uvicorn.Config, *, desk: Desk, drain: float) -> None:
        super().__init__(config)
        self._desk = desk
        self._drain = drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Go down."""
        calling_off = asyncio.create_task(self._call_off())
        try:
            await super().shutdown(sockets)
        finally:
            calling_off.cancel()
        if self.force_exit:  # By a second Ctrl-C, after which uvicorn leaves everything as it lies.
            await self._hang_up()
            await self.lifespan.shutdown()

    async def _call_off(self) -> None:
        await asyncio.sleep(self._drain)
        log.info("answers in flight are called off after %g seconds", self._drain)
        await self._desk.close()
        await asyncio.sleep(_LAST_WORDS)
        await self._hang_up()

    async def _hang_up(self) -> None:
        """End what is left as if the clients had: those who have taken nothing by now never will."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        if tasks := self.server_state.tasks:
            await asyncio.wait(tasks, timeout=_LAST_WORDS)


def serve(settings: Settings) -> int:
    """Serve until told to stop. Returns the exit code, or raises KeyboardInterrupt after SIGINT and SIGTERM."""
    application, desk = _built(settings)
    config = uvicorn.Config(
        application,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
    )
    server = DrainingServer(config, desk=desk, drain=settings.drain)
    # uvicorn raises the signal again once it has ended. As the default that would be a death, and it is none.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server.run()
    return 0 if server.started else 1
