"""Residency: which models are in memory, and for how long.

    absent ── load ──► loading ── ready ──► resident ── last user leaves, time is up, or room is needed ──► absent
                          │                    │
                          └── fails ──► absent └── its process dies, or other load options are asked for ──► draining ──► absent

A model is loaded once however many ask for it, stays while somebody uses it, and goes when its time is up
or when another needs its memory: of those that nobody uses, the one used longest ago. Residency
deliberately knows no request: it lends engines.

Invariants: an engine that is lent is never closed by us; memory estimates of what is resident stay within the
budget unless a single model alone exceeds it; after `close` nothing is left.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from diglot.core.errors import Cancelled
from diglot.core.model import Model, ModelRef
from diglot.core.ports import Clock, Engine, EngineLoader
from diglot.core.request import LoadOptions
from diglot.core.result import Running
from diglot.services.admission import Turnstile

log = logging.getLogger(__name__)


class Resident:
    """One model in memory, or on its way there."""

    loading: asyncio.Task[Engine]

    def __init__(self, model: Model, options: LoadOptions, *, memory: int, keep_alive: float) -> None:
        self.model = model
        self.options = options
        self.memory = memory
        self.keep_alive = keep_alive
        self.used_at = 0
        self.users = 0
        self.loaded = 0.0
        self.draining = False
        self.expires_at = math.inf
        self.engine: Engine | None = None
        self.timer: asyncio.Task[None] | None = None

    def serves(self, model: Model, options: LoadOptions) -> bool:
        """Whether this is that model, loaded in that way. What the request leaves open fits anything."""
        if model.digest != self.model.digest or self.failed:
            return False
        return options.over(self.options) == self.options

    @property
    def failed(self) -> bool:
        """Whether it never came up, or has died."""
        if self.engine is not None:
            return not self.engine.alive
        return self.loading.done() and (self.loading.cancelled() or self.loading.exception() is not None)

    def progress(self, done: int, total: int) -> None:
        """Note how far the loading is."""
        self.loaded = done / total if total else 0.0


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator allows.

    `budget` is in bytes, `keep_alive` in seconds (`inf` for ever), `queue` is how many requests may wait for
    one model. `defaults` are the load options where neither the request nor the model says anything.
    """

    budget: int
    keep_alive: float
    queue: int
    defaults: LoadOptions = LoadOptions()


class Residency:
    """Lends engines and sees to it that the memory suffices."""

    def __init__(self, loader: EngineLoader, *, clock: Clock, policy: Policy) -> None:
        self._loader = loader
        self._clock = clock
        self._policy = policy
        self._residents: dict[ModelRef, Resident] = {}
        self._turnstiles: dict[ModelRef, Turnstile] = {}
        self._room = asyncio.Lock()
        self._changed = asyncio.Condition()
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    @asynccontextmanager
    async def turn(self, model: Model, options: LoadOptions, keep_alive: float | None = None) -> AsyncIterator[Engine]:
        """Wait for a slot of the model and lend its engine for one answer. `Busy` when the queue is full."""
        turnstile = self._turnstiles.get(model.ref)
        if turnstile is None:
            turnstile = self._turnstiles[model.ref] = Turnstile(
                slots=self._loader.slots(model), queue=self._policy.queue, clock=self._clock
            )
        try:
            async with turnstile.turn(), self.lease(model, options, keep_alive) as engine:
                yield engine
        finally:
            if turnstile.idle:
                self._turnstiles.pop(model.ref, None)

    @asynccontextmanager
    async def lease(self, model: Model, options: LoadOptions, keep_alive: float | None = None) -> AsyncIterator[Engine]:
        """Lend the engine of the model, loading it first where it is absent. It stays for `keep_alive` seconds after.

        Raises what loading raises.
        """
        resident = await self._resident(model, options)
        if keep_alive is not None:
            resident.keep_alive = keep_alive
        try:
            yield await self._ready(resident)
        finally:
            await asyncio.shield(self._release(resident))

    def running(self) -> tuple[Running, ...]:
        """Return what is in memory or on its way there, what stays longest first."""
        now = self._clock.now()
        shown = [
            Running(
                model=each.model,
                memory=each.engine.memory if each.engine else each.memory,
                accelerator_memory=each.engine.accelerator_memory if each.engine else 0,
                expires_at=now + each.keep_alive if math.isinf(each.expires_at) else each.expires_at,
                window=each.engine.window if each.engine else each.options.window or 0,
                loaded=1.0 if each.engine else each.loaded,
            )
            for each in self._residents.values()
        ]
        return tuple(sorted(shown, key=lambda each: -each.expires_at))

    async def unload(self, model: Model) -> None:
        """Let the model go once nobody uses it; returns at once where that is not yet."""
        resident = self._residents.get(model.ref)
        if resident is not None:
            resident.keep_alive = 0.0
            if not resident.users:
                await self._drop(resident)

    async def close(self) -> None:
        """End every engine, also those in use."""
        self._closed = True
        for resident in list(self._residents.values()):
            await self._drop(resident)
        if self._closing:
            await asyncio.gather(*self._closing, return_exceptions=True)

    async def _resident(self, model: Model, options: LoadOptions) -> Resident:
        """Return the resident to use, counted as its user from here on."""
        while True:
            if self._closed:
                raise Cancelled("the server is going down")
            resident = self._residents.get(model.ref)
            if resident is None:
                resident = await self._admit(model, options)
            if resident is not None and not resident.draining and resident.serves(model, options):
                resident.users += 1
                self._touch(resident)
                return resident
            if resident is not None:
                await self._gone(resident)

    async def _admit(self, model: Model, options: LoadOptions) -> Resident | None:
        """Make room and begin to load. None when somebody else was quicker."""
        async with self._room:
            if model.ref in self._residents:
                return None
            options = options.over(self._policy.defaults)
            memory = self._loader.estimate(model, options)
            await self._make_room(memory)
            resident = Resident(model, options, memory=memory, keep_alive=self._policy.keep_alive)
            resident.loading = asyncio.create_task(self._load(resident), name=f"load {model.name}")
            self._residents[model.ref] = resident
            return resident

    async def _load(self, resident: Resident) -> Engine:
        resident.engine = await self._loader.load(resident.model, resident.options, resident.progress)
        return resident.engine

    async def _ready(self, resident: Resident) -> Engine:
        if resident.engine is not None:
            return resident.engine
        try:
            # Shielded: whoever leaves must not end the loading for the others.
            return await asyncio.shield(resident.loading)
        except asyncio.CancelledError:
            if resident.loading.cancelled():  # The loading was given up, not this request.
                raise Cancelled("the model was unloaded while it loaded") from None
            raise

    async def _release(self, resident: Resident) -> None:
        resident.users -= 1
        if resident.users:
            return
        if resident.draining or resident.failed or not resident.keep_alive:
            await self._drop(resident)
            return
        self._touch(resident)
        if not math.isinf(resident.keep_alive):
            resident.expires_at = self._clock.now() + resident.keep_alive
            resident.timer = asyncio.create_task(self._expire(resident), name=f"expire {resident.model.name}")
        await self._announce()

    def _touch(self, resident: Resident) -> None:
        resident.used_at = self._clock.monotonic_ns()
        resident.expires_at = math.inf
        if resident.timer is not None:
            resident.timer.cancel()
            resident.timer = None

    async def _expire(self, resident: Resident) -> None:
        await self._clock.sleep(resident.keep_alive)
        resident.timer = None
        if not resident.users:
            log.info("unloading %s: its time is up", resident.model.name)
            await self._drop(resident)

    async def _gone(self, resident: Resident) -> None:
        """Let go of a resident that does not fit a request, and wait until it is gone."""
        resident.draining = True
        if not resident.users:
            await self._drop(resident)
            return
        async with self._changed:
            await self._changed.wait_for(lambda: self._residents.get(resident.model.ref) is not resident)

    async def _make_room(self, memory: int) -> None:
        """Let models go, the one used longest ago first, until `memory` more bytes fit."""
        while self._residents and self._taken() + memory > self._policy.budget:
            idle = [each for each in self._residents.values() if not each.users]
            if idle:
                oldest = min(idle, key=lambda each: each.used_at)
                log.info("unloading %s: its memory is needed", oldest.model.name)
                await self._drop(oldest)
                continue
            async with self._changed:
                await self._changed.wait_for(lambda: any(not each.users for each in self._residents.values()))
        if memory > self._policy.budget:
            log.warning("the model wants %d bytes, the budget is %d", memory, self._policy.budget)

    def _taken(self) -> int:
        return sum(each.memory for each in self._residents.values())

    async def _drop(self, resident: Resident) -> None:
        """Take a resident out and end its engine. Idempotent."""
        if self._residents.get(resident.model.ref) is not resident:
            return
        del self._residents[resident.model.ref]
        if resident.timer is not None and resident.timer is not asyncio.current_task():
            resident.timer.cancel()
        resident.loading.cancel()
        ending = asyncio.create_task(self._end(resident), name=f"unload {resident.model.name}")
        self._closing.add(ending)
        ending.add_done_callback(self._closing.discard)
        await asyncio.shield(ending)
        await self._announce()

    async def _end(self, resident: Resident) -> None:
        await asyncio.wait({resident.loading})
        if resident.engine is not None:
            await resident.engine.close()

    async def _announce(self) -> None:
        async with self._changed:
            self._changed.notify_all()
