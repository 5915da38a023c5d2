"""Residency: which models are in memory, and for how long.

    absent ── load ──► loading ── ready ──► resident ── last user leaves, time is up, or room is needed ──► ending ──► absent
                          │                    │                                                              ▲
                          └── fails ──► ending └── it died, other load options, or all are used and room is needed ──► draining

A model is loaded once however many ask for it, stays while somebody uses it, and goes when its time is up
or when another needs its memory: first of those that nobody uses, the one used longest ago. A draining one
takes no new users and ends with its last. Residency deliberately knows no request: it lends engines.

Every change of state happens between two awaits, so that a request that is cancelled anywhere leaves nothing
half done; only the ending of an engine takes time, in a task of its own.

It also knows which files are in use: by what is in memory, and by whoever waits for it, so that a model can be
removed under them.

Invariants: an engine that is lent is never closed but by `close`; memory estimates of what is in memory, until
it has ended, stay within the budget unless a single model alone exceeds it; after `close` nothing is left.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import msgspec

from diglot.core.errors import Cancelled, Fault
from diglot.core.model import Model, ModelRef
from diglot.core.ports import Clock, Engine, EngineLoader
from diglot.core.request import LoadOptions
from diglot.core.result import Running
from diglot.services.admission import Turnstile
from diglot.services.sharing import SharedEngine
from diglot.services.totals import Occupancy, Totals
from diglot.services.visit import Visit, kind_of

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
        self.awaited = 0  # How many let others in between, and come back.
        self.loaded = 0.0
        self.draining = False
        self.mourned = False
        self.leaves_at = math.inf  # In seconds of the monotonic clock: the other one jumps.
        self.engine: Engine | None = None
        self.timer: asyncio.Task[None] | None = None
        self.ending: asyncio.Task[None] | None = None
        self.files = ExitStack()

    def serves(self, model: Model, options: LoadOptions) -> bool:
        """Whether this is that model, loaded in that way. What the request leaves open fits anything."""
        if self.draining or self.failed or model.digest != self.model.digest:
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
        self.totals = Totals()
        self._loader = loader
        self._clock = clock
        self._policy = policy
        self._residents: dict[ModelRef, Resident] = {}
        self._turnstiles: dict[ModelRef, Turnstile] = {}
        self._room = asyncio.Lock()
        self._gone = asyncio.Event()
        self._files: Counter[Path] = Counter()
        self._let_go = asyncio.Event()
        self._closed = False

    @asynccontextmanager
    async def turn(
        self, model: Model, options: LoadOptions, keep_alive: float | None = None, *, visit: Visit | None = None
    ) -> AsyncIterator[Engine]:
        """Wait for a slot of the model and lend its engine for one answer. `Busy` when the queue is full.

        Between two pieces of work that the engine is given, others are let in.
        """
        visit = visit or Visit()
        turnstile = self._turnstiles.get(model.ref)
        if turnstile is None:
            turnstile = self._turnstiles[model.ref] = Turnstile(
                slots=self._loader.slots(model), queue=self._policy.queue, clock=self._clock
            )
        visit.reach("queue", self._clock.monotonic_ns())
        try:
            with self._using(model):
                async with (
                    turnstile.turn(visit.caller, background=visit.background) as turn,
                    SharedEngine(
                        turn,
                        lambda: self.lease(model, options, keep_alive),
                        away=lambda: self._held_over(model),
                        visit=visit,
                        clock=self._clock,
                    ) as engine,
                ):
                    yield engine
        finally:
            # Who gave up while he waited may come here after the last one left, and find the next one's.
            if turnstile.idle and self._turnstiles.get(model.ref) is turnstile:
                del self._turnstiles[model.ref]

    @asynccontextmanager
    async def lease(self, model: Model, options: LoadOptions, keep_alive: float | None = None) -> AsyncIterator[Engine]:
        """Lend the engine of the model, loading it first where it is absent. It stays for `keep_alive` seconds after.

        Raises what loading raises.
        """
        with self._using(model):
            resident = await self._resident(model, options)
            if keep_alive is not None:
                resident.keep_alive = keep_alive
            try:
                yield await self._ready(resident)
            finally:
                self._release(resident)

    def uses(self, path: Path) -> bool:
        """Whether a file is in use. May be asked in any thread."""
        return self._files[path] > 0

    @property
    def let_go(self) -> asyncio.Event:
        """What is set when the next file is no longer in use. Taken before one asks which are, it misses none."""
        return self._let_go

    def retire(self, ref: ModelRef, *, current: str | None) -> None:
        """Let go of what is in memory under a name, unless it has the digest `current`, which the name stands for now.

        Nobody new is lent it, and it ends with its last user.
        """
        resident = self._residents.get(ref)
        if resident is not None and resident.model.digest != current:
            self._drain(resident)

    @contextmanager
    def _using(self, model: Model) -> Iterator[None]:
        self._files.update(model.files)
        try:
            yield
        finally:
            self._files.subtract(model.files)
            self._files += Counter()  # Forgets those that nobody uses.
            self._let_go.set()
            self._let_go = asyncio.Event()

    def running(self) -> tuple[Running, ...]:
        """Return what is in memory or on its way there, what stays longest first."""
        now, clock = self._clock.now(), self._seconds()
        shown = [
            Running(
                model=each.model,
                memory=each.engine.memory if each.engine else each.memory,
                accelerator_memory=each.engine.accelerator_memory if each.engine else 0,
                expires_at=now + (each.keep_alive if math.isinf(each.leaves_at) else each.leaves_at - clock),
                window=each.engine.window if each.engine else each.options.window or 0,
                loaded=1.0 if each.engine else each.loaded,
            )
            for each in self._residents.values()
            if each.ending is None and not each.failed
        ]
        return tuple(sorted(shown, key=lambda each: -each.expires_at))

    def window(self, model: Model) -> int:
        """Return the context window that a request for the model would meet, in tokens."""
        resident = self._residents.get(model.ref)
        if resident is not None and resident.engine is not None:
            return resident.engine.window
        return self._loader.window(model, model.defaults.load.over(self._policy.defaults))

    async def unload(self, model: Model) -> None:
        """Let the model go once nobody uses it; returns at once where that is not yet, else when it is gone."""
        resident = self._residents.get(model.ref)
        if resident is None:
            return
        resident.keep_alive = 0.0
        if not resident.users:
            await asyncio.wait({self._end(resident)})

    async def close(self) -> None:
        """End every engine, also those in use."""
        self._closed = True
        endings = {self._end(resident) for resident in self._residents.values()}
        if endings:
            await asyncio.wait(endings)

    async def _resident(self, model: Model, options: LoadOptions) -> Resident:
        """Return the resident to use, counted as its user from here on."""
        while True:
            resident = self._residents.get(model.ref) or await self._admit(model, options)
            if resident.serves(model, options):
                resident.users += 1
                self._touch(resident)
                return resident
            self._drain(resident)
            await self._gone.wait()

    async def _admit(self, model: Model, options: LoadOptions) -> Resident:
        """Make room and begin to load, unless somebody else was quicker."""
        async with self._room:
            options = options.over(self._policy.defaults)
            memory = self._loader.estimate(model, options)
            while (resident := self._residents.get(model.ref)) is None and not self._has_room(memory):
                await self._gone.wait()
            if resident is not None:
                return resident
            if self._closed:
                raise Cancelled("the server is going down")
            if memory > self._policy.budget:
                log.warning("%s wants %d bytes, the budget is %d", model.name, memory, self._policy.budget)
            resident = Resident(model, options, memory=memory, keep_alive=self._policy.keep_alive)
            resident.files.enter_context(self._using(model))
            resident.loading = asyncio.create_task(self._load(resident), name=f"load {model.name}")
            resident.loading.add_done_callback(lambda _: self._settle(resident))
            self._residents[model.ref] = resident
            return resident

    async def _load(self, resident: Resident) -> Engine:
        begun, outcome = self._clock.monotonic_ns(), "cancelled"
        try:
            resident.engine = await self._loader.load(resident.model, resident.options, resident.progress)
            outcome = "ok"
        except Fault as fault:
            outcome = kind_of(fault)
            raise
        finally:
            self.totals.loaded(resident.model.name, self._clock.monotonic_ns() - begun, outcome)
        return resident.engine

    def _settle(self, resident: Resident) -> None:
        """Let go of a load that failed after everybody who waited for it has left."""
        if resident.failed and not resident.users:
            self._end(resident)

    async def _ready(self, resident: Resident) -> Engine:
        await asyncio.wait({resident.loading})  # Whoever leaves here does not end the loading for the others.
        if self._closed:
            raise Cancelled("the server is going down")
        return resident.loading.result()

    def _release(self, resident: Resident) -> None:
        resident.users -= 1
        if resident.users or resident.ending is not None:
            return
        if resident.draining or resident.failed or not (resident.keep_alive or resident.awaited):
            self._end(resident)
            return
        self._touch(resident)
        if resident.keep_alive and not math.isinf(resident.keep_alive):
            resident.leaves_at = self._seconds() + resident.keep_alive
            resident.timer = asyncio.create_task(self._expire(resident), name=f"expire {resident.model.name}")

    def _touch(self, resident: Resident) -> None:
        resident.used_at = self._clock.monotonic_ns()
        resident.leaves_at = math.inf
        if resident.timer is not None:
            resident.timer.cancel()
            resident.timer = None

    def _seconds(self) -> float:
        return self._clock.monotonic_ns() / 1e9

    async def _expire(self, resident: Resident) -> None:
        await self._clock.sleep(resident.keep_alive)
        resident.timer = None
        log.info("unloading %s: its time is up", resident.model.name)
        self._end(resident)

    def _has_room(self, memory: int) -> bool:
        """Whether `memory` more bytes fit. Where they do not, as many models begin to go as it takes."""
        missing = sum(each.memory for each in self._residents.values()) + memory - self._policy.budget
        if missing <= 0 or not self._residents:
            return True
        missing -= sum(each.memory for each in self._residents.values() if each.draining)
        # Those in use come last. They end with their users, and new ones wait: nobody waits for ever.
        staying = [each for each in self._residents.values() if not each.draining]
        for each in sorted(staying, key=lambda each: (each.users > 0, each.used_at)):
            if missing <= 0:
                break
            log.info("unloading %s: its memory is needed", each.model.name)
            missing -= each.memory
            self._drain(each)
        return False

    def occupancy(self) -> tuple[Occupancy, ...]:
        """Return how much of each model is taken that is loaded, loading, or waited for."""
        for resident in self._residents.values():
            if resident.ending is None:
                self._notice_death(resident)
        return tuple(
            Occupancy(
                model=str(ref),
                slots=turnstile.slots if turnstile else self._loader.slots(resident.model) if resident else 0,
                busy=turnstile.inside if turnstile else 0,
                waiting=turnstile.waiting if turnstile else 0,
                memory=resident.engine.memory if resident and resident.engine else 0,
            )
            for ref in {**self._residents, **self._turnstiles}
            for turnstile, resident in [(self._turnstiles.get(ref), self._residents.get(ref))]
        )

    def _notice_death(self, resident: Resident) -> None:
        """Count an engine that has died by itself, once."""
        if resident.engine is not None and not resident.engine.alive and not resident.mourned:
            resident.mourned = True
            self.totals.of(resident.model.name).crashes += 1

    @contextmanager
    def _held_over(self, model: Model) -> Iterator[None]:
        """Keep what goes with its last user while he lets others in between. It still makes room where that is needed."""
        resident = self._residents.get(model.ref)
        if resident is None:
            yield
            return
        resident.awaited += 1
        try:
            yield
        finally:
            resident.awaited -= 1
            if not (resident.users or resident.awaited or resident.keep_alive):
                self._end(resident)

    def _drain(self, resident: Resident) -> None:
        """Let nobody new in, and end it with its last user."""
        resident.draining = True
        if not resident.users:
            self._end(resident)

    def _end(self, resident: Resident) -> asyncio.Task[None]:
        """Begin to end a resident and its engine. Idempotent."""
        if resident.ending is None:
            resident.draining = True
            if resident.timer is not None:
                resident.timer.cancel()
            resident.loading.cancel()
            resident.ending = asyncio.create_task(self._ended(resident), name=f"unload {resident.model.name}")
        return resident.ending

    async def _ended(self, resident: Resident) -> None:
        try:
            await asyncio.wait({resident.loading})
            if resident.engine is not None:
                self._notice_death(resident)
                await resident.engine.close()
        finally:
            del self._residents[resident.model.ref]
            resident.files.close()
            self._gone.set()  # Wakes all who wait now; who comes later waits for the next.
            self._gone = asyncio.Event()
