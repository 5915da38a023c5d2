"""The composition root: the one place where real things are handed to those who need them.

Everything else in the house names ports and tables; here they get names. It has no logic of its own.
Neighbours: `cli` calls `serve`, tests call `build`.
"""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import socket
import time

from diglot import __version__
from diglot.core.allowance import Allowance
from diglot.core.ports import Clock, EngineLoader, Ids, ModelStore, Pictures
from diglot.core.request import LoadOptions
from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.openai import DIALECT as OPENAI
from diglot.engines.llamacpp.loader import LlamaLoader
from diglot.engines.llamacpp.sizing import Limits as EngineLimits
from diglot.engines.scripted.loader import ScriptedLoader
from diglot.engines.scripted.models import ScriptedModels
from diglot.engines.scripted.script import Script, load_script
from diglot.http.application import Access, Application, Fallback, build_application
from diglot.http.body import Limits
from diglot.http.journal import naming
from diglot.http.serve import World
from diglot.http.server import Listening, run
from diglot.pictures.fetching import Fetcher
from diglot.pictures.gallery import Gallery
from diglot.pictures.studio import Studio
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
from diglot.settings import Settings, environment_of_children
from diglot.state.responses import Scratch, StoredResponses
from diglot.state.seal import FileSeal
from diglot.store.elsewhere import stores_elsewhere
from diglot.store.local import LocalStore
from diglot.store.supply import Reach, StoreSupply

_DIALECTS = (OLLAMA, OPENAI)


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
        return secrets.token_hex(12)


def memory_of(settings: Settings) -> int:
    """Return the bytes that loaded models may take together."""
    return settings.memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4


def pictures_of(settings: Settings) -> Gallery:
    """Return what looks at pictures before an engine does."""
    studio = Studio(pixels=settings.max_pixels, patience=settings.image_timeout, environment=environment_of_children())
    fetcher = Fetcher(limit=settings.fetch_size, patience=settings.image_timeout) if settings.fetch_images else None
    return Gallery(studio, pixels=settings.max_pixels, fetcher=fetcher)


def engine_limits_of(settings: Settings) -> EngineLimits:
    """Return what a model may take of this machine."""
    cache = settings.cache or memory_of(settings) // 4
    return EngineLimits(slots=settings.slots, cache=cache, cores=os.cpu_count() or 1)


def engines_of(
    settings: Settings, ids: Ids, *, pictures: Pictures | None = None
) -> tuple[EngineLoader, tuple[ModelStore, ...]]:
    """Return what runs the models, and where there are more of them than in the store. Raises InvalidScript."""
    if settings.engine == "scripted":
        script = load_script(settings.script) if settings.script else Script()
        return ScriptedLoader(script), (ScriptedModels(script),)
    limits = engine_limits_of(settings)
    program = str(settings.llama_server) if settings.llama_server else None
    loader: EngineLoader = LlamaLoader(
        ids=ids,
        limits=limits,
        program=program,
        environment=environment_of_children(),
        patience=settings.hang_timeout,
        pictures=pictures,
    )
    if not settings.remotes:
        return loader, ()
    # The HTTP client that they bring is a fifth of a start, and most servers have no use for it.
    from diglot.engines.remote.loader import RemoteLoader  # noqa: PLC0415
    from diglot.engines.remote.models import RemoteModels  # noqa: PLC0415

    models = RemoteModels(settings.remotes, key=settings.remote_key)
    return RemoteLoader(models, otherwise=loader, ids=ids), (models,)


def reach_of(settings: Settings) -> Reach:
    """Return how other machines are reached."""
    return Reach(
        identity=settings.state_folder / "id_ed25519",
        agent=f"diglot/{__version__}",
        hub=settings.hub,
        hub_token=settings.hub_token,
        connections=settings.connections,
    )


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
    pictures = pictures_of(settings)
    loader, stores = engines_of(settings, ids, pictures=pictures)
    residency = Residency(loader, clock=clock, policy=_policy(settings))
    keep = LocalStore(settings.model_folder, in_use=residency.uses)
    stores = (keep, *stores_elsewhere(settings), *stores)
    catalog = Catalog(stores, embedding_model=settings.embedding_model)
    envelopes = Envelopes(FileSeal(settings.state_folder / "seal.key"), sealing=settings.sealed)
    fold = Fold(envelopes, Compact(envelopes), always=settings.on_overflow == "compact")
    generate = Generate(catalog, residency, fold, pictures=pictures, clock=clock)
    holdings = Holdings(keep, catalog, residency)
    supply = StoreSupply(keep, reach_of(settings), clock=clock)
    stored = StoredResponses(
        settings.state_folder / "responses.sqlite", clock=clock, age=settings.response_age, size=settings.response_size
    )
    stored.look()
    return Desk(
        catalog=catalog,
        residency=residency,
        presence=Presence(catalog, residency, clock=clock),
        generate=generate,
        responses=Responses(generate, stored, clock=clock, totals=residency.totals),
        embed=Embed(catalog, residency, clock=clock, limit=settings.max_inputs),
        holdings=holdings,
        transfer=Transfer(supply, holdings, catalog),
    )


def serve(settings: Settings, sockets: list[socket.socket]) -> int:
    """Serve on sockets that listen until told to stop. Returns the exit code, or raises KeyboardInterrupt after a signal."""
    clock, ids = SystemClock(), RandomIds()
    desk = build_desk(settings, clock=clock, ids=ids)
    application = assemble(settings, desk, clock=clock, ids=ids)
    listening = Listening(
        sockets=sockets,
        drain=settings.drain,
        stall=settings.stall_timeout,
        max_message=settings.max_body,
        max_head=settings.max_head,
        head_timeout=settings.head_timeout,
        max_connections=settings.max_connections,
        refusal=naming(Fallback(_DIALECTS).render, ids),
    )
    return run(application, listening, call_off=desk.close)


def build(settings: Settings) -> Application:
    """Return the application as an ASGI server runs it."""
    clock, ids = SystemClock(), RandomIds()
    return assemble(settings, build_desk(settings, clock=clock, ids=ids), clock=clock, ids=ids)


def assemble(settings: Settings, desk: Desk, *, clock: Clock, ids: Ids) -> Application:
    """Return the application that stands before a desk."""
    limits = Limits(
        max_body=settings.max_body,
        max_unpacked=settings.max_unpacked,
        max_depth=settings.max_depth,
        max_values=settings.max_values,
        body_timeout=settings.body_timeout,
        heartbeat=settings.heartbeat,
        allowance=Allowance(
            messages=settings.max_messages,
            parts=settings.max_parts,
            images=settings.max_images,
            tools=settings.max_tools,
            links=settings.fetch_images,
        ),
    )
    return build_application(
        _DIALECTS,
        World(desk=desk, clock=clock, ids=ids, limits=limits, scratch=Scratch),
        access=Access(hosts=(*settings.hosts, socket.gethostname()), origins=settings.origins, key=settings.key),
        close=desk.close,
    )
