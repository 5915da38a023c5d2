"""What the tests of the services stand on: a clock that only the test moves, and engines that do as they are told.

Nothing here waits for real time. `settle` lets everything run that can, so that a test can look at what came of it.
"""

# ruff: noqa: D102, ARG002  the ports say what their methods do, and give them arguments

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from diglot.core.digest import Digest
from diglot.core.errors import ContextExceeded, EngineCrashed, Fault, ModelNotFound, WrongDigest
from diglot.core.events import Event, Finished, Progress, Started, Step, TextDelta, Usage
from diglot.core.model import Anatomy, Capabilities, Defaults, Model, ModelCard, ModelDetails, ModelRef
from diglot.core.ports import LoadProgress, ResponseStore
from diglot.core.recipe import Recipe
from diglot.core.request import Conversation, Embedding, Generation, LoadOptions, Rerank, Residence
from diglot.core.result import Embedded, Ranked
from diglot.core.source import Source
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
from tests.services.memory import Memory
from tests.services.painting import NoSeal, Pictures

_TURNS: Final = 40
NOW: Final = 1_700_000_000.0


async def settle() -> None:
    """Let every task run until it waits for something that only the test can bring."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


async def until(holds: Callable[[], object]) -> None:
    """Let others run until `holds()`; a thread may be among them, so no number of turns would do."""
    while not holds():  # noqa: ASYNC110  any state will do
        await asyncio.sleep(0)


class Clock:
    """Time that stands still until `advance`. The clock on the wall is wrong by `error`, and jumps when that is set."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.error = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return NOW + self.seconds + self.error

    def monotonic_ns(self) -> int:
        return round(self.seconds * 1e9)

    async def sleep(self, seconds: float) -> None:
        alarm: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.seconds + seconds, alarm))
        await alarm

    @property
    def sleepers(self) -> int:
        """How many wait for a time."""
        return sum(not alarm.done() for _, alarm in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Move on, and let those run whose time has come."""
        await settle()
        self.seconds += seconds
        for due, alarm in sorted(self._sleepers, key=lambda each: each[0]):
            if due <= self.seconds and not alarm.done():
                alarm.set_result(None)
        self._sleepers = [each for each in self._sleepers if not each[1].done()]
        await settle()


class Engine:
    """Answers with `events`, stopping before each where `gate` is closed."""

    slots = 2
    window = 100
    memory = 7
    accelerator_memory = 3

    def __init__(self, model: Model, options: LoadOptions) -> None:
        self.model = model
        self.options = options
        self.alive = True
        self.closed = 0
        self.busy = 0
        self.seen: list[Generation | Embedding] = []
        self.events: Sequence[Event | Exception] = (
            Progress(done=1, total=2),
            Started(input_tokens=2),
            TextDelta("a"),
            TextDelta("b"),
            Finished("stop", Usage(input=2, output=2)),
        )
        self.gate = asyncio.Event()
        self.gate.set()
        self.breath = False  # Whether everybody else runs between two events.
        self.count_tokens: Callable[[Generation], int] = lambda _: 2

    @property
    def capabilities(self) -> Capabilities:
        return self.model.capabilities

    async def generate(self, request: Generation) -> AsyncGenerator[Event]:
        self.seen.append(request)
        self.busy += 1
        try:
            for event in self.events:
                await self.gate.wait()
                if self.breath:
                    await asyncio.sleep(0)
                if not self.alive:
                    raise EngineCrashed(self.model.name)
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.busy -= 1

    async def count(self, request: Generation) -> int:
        return self.count_tokens(request)

    async def embed(self, request: Embedding) -> Embedded:
        self.seen.append(request)
        self.busy += 1
        try:
            await self.gate.wait()
            if any(len(each) > self.window for each in request.inputs):
                raise ContextExceeded(tokens=0, window=self.window)
            return Embedded(vectors=tuple((float(len(each)),) for each in request.inputs), input_tokens=5, model="?")
        finally:
            self.busy -= 1

    async def rerank(self, request: Rerank) -> Ranked:
        return Ranked(scores=tuple(float(len(each)) for each in request.documents), input_tokens=5, model="?")

    async def close(self) -> None:
        self.closed += 1
        self.alive = False
        await asyncio.sleep(0)


class Loader:
    """Loads at once, or when `gate` opens; fails with `fault` where there is one."""

    def __init__(self) -> None:
        self.engines: list[Engine] = []
        self.begun: list[str] = []
        self.given_up = 0
        self.fault: Fault | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    @property
    def open(self) -> list[Engine]:
        """The engines that take up memory."""
        return [engine for engine in self.engines if not engine.closed]

    def estimate(self, model: Model, options: LoadOptions) -> int:
        return model.size + (options.window or 0)

    def window(self, model: Model, options: LoadOptions) -> int:
        return options.window or Engine.window

    def slots(self, model: Model) -> int:
        return Engine.slots

    async def load(self, model: Model, options: LoadOptions, progress: LoadProgress) -> Engine:
        self.begun.append(model.name)
        progress(model.size // 2, model.size)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.fault is not None:
            raise self.fault
        engine = Engine(model, options)
        self.engines.append(engine)
        return engine


class Store:
    """Models that exist because a test says so."""

    def __init__(self, *models: Model) -> None:
        self.models = list(models)
        self.blobs: dict[Digest, bytes] = {}
        self.closed = 0
        self.in_use: Callable[[Path], bool] = lambda _: False
        self.left: list[Path] = []
        self.dropped: list[Path] = []

    def list(self) -> tuple[Model, ...]:
        return tuple(self.models)

    def resolve(self, ref: ModelRef) -> Model:
        found = [model for model in self.models if model.ref == ref]
        if not found:
            raise ModelNotFound(str(ref))
        return found[0]

    def copy(self, source: ModelRef, target: ModelRef) -> Model:
        copied = replace(self.resolve(source), ref=target)
        self.models = [model for model in self.models if model.ref != target] + [copied]
        return copied

    def remove(self, ref: ModelRef) -> None:
        self.left += self.resolve(ref).files
        self.models = [model for model in self.models if model.ref != ref]

    def holds(self, digest: Digest) -> bool:
        return digest in self.blobs

    def intake(self, digest: Digest, *, size: int = 0) -> Blob:
        return Blob(self, digest)

    def tidy(self) -> bool:
        kept = [path for path in self.left if self.in_use(path)]
        self.dropped += [path for path in self.left if path not in kept]
        self.left = kept
        return not kept

    def card(self, ref: ModelRef, *, verbose: bool = False) -> ModelCard:
        return ModelCard(model=self.resolve(ref), info={"verbose": verbose}, tensors=())


class Blob:
    """A content that comes in."""

    def __init__(self, store: Store, digest: Digest) -> None:
        self.store = store
        self.digest = digest
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def settle(self) -> None:
        found = f"sha256:{hashlib.sha256(self.data).hexdigest()}"
        if found != str(self.digest):
            raise WrongDigest(expected=str(self.digest), found=found)
        self.store.blobs[self.digest] = self.data

    def close(self) -> None:
        self.store.closed += 1


class Supplies:
    """Takes the steps a test says, each when `gate` is open."""

    def __init__(self) -> None:
        self.steps: list[Step | Exception] = [Step("find"), Step("done")]
        self.gate = asyncio.Event()
        self.gate.set()
        self.begun: list[tuple[object, bool]] = []
        self.then: Callable[[], object] = lambda: None
        self.given_up = 0

    def pull(self, source: Source, *, insecure: bool) -> AsyncGenerator[Step]:
        return self._taken(source, insecure)

    def push(self, ref: ModelRef, *, insecure: bool) -> AsyncGenerator[Step]:
        return self._taken(ref, insecure)

    def make(self, ref: ModelRef, recipe: Recipe, *, base: ModelCard | None) -> AsyncGenerator[Step]:
        return self._taken((ref, base.model.name if base else None), False)

    async def _taken(self, what: object, insecure: bool) -> AsyncGenerator[Step]:  # noqa: FBT001
        self.begun.append((what, insecure))
        try:
            for step in self.steps:
                await self.gate.wait()
                if isinstance(step, Exception):
                    raise step
                if step.stage == "done":
                    self.then()
                yield step
        except (asyncio.CancelledError, GeneratorExit):
            self.given_up += 1
            raise


def model(
    name: str = "chat",
    *,
    size: int = 10,
    digest: str = "",
    able: Capabilities | None = None,
    defaults: Defaults | None = None,
    modified_at: int = 0,
) -> Model:
    """Return a model that chats."""
    return Model(
        ref=ModelRef.parse(name),
        digest=(digest or name).ljust(64, "0"),
        size=size,
        modified_at=modified_at,
        weights=Path("none"),
        details=ModelDetails(),
        capabilities=able or Capabilities(completion=True, tools=True),
        anatomy=Anatomy(architecture="test"),
        defaults=defaults or Defaults(),
    )


def encoder(name: str = "encoder", *, modified_at: int = 0) -> Model:
    """Return a model that embeds."""
    return model(name, able=Capabilities(embedding=True), modified_at=modified_at)


def generation(name: str | None = "chat", *, keep_alive: float | None = None) -> Generation:
    """Return a request that asks nothing much."""
    return Generation(residence=Residence(model=name, keep_alive=keep_alive), prompt=Conversation(()))


class World:
    """The services over engines, a store and a clock of the test's own."""

    def __init__(
        self,
        *models: Model,
        budget: int = 100,
        keep_alive: float = 300.0,
        queue: int = 2,
        embedding_model: str = "",
        responses: ResponseStore | None = None,
    ) -> None:
        self.clock = Clock()
        self.loader = Loader()
        self.store = Store(*(models or (model(), encoder())))
        self.catalog = Catalog([self.store], embedding_model=embedding_model)
        policy = Policy(budget=budget, keep_alive=keep_alive, queue=queue, defaults=LoadOptions(batch=8))
        self.residency = Residency(self.loader, clock=self.clock, policy=policy)
        envelopes = Envelopes(NoSeal())
        self.pictures = Pictures()
        self.generate = Generate(
            self.catalog, self.residency, Fold(envelopes, Compact(envelopes)), pictures=self.pictures, clock=self.clock
        )
        self.embed = Embed(self.catalog, self.residency, clock=self.clock, limit=3)
        self.responses = Memory()
        self.supply = Supplies()
        self.store.in_use = self.residency.uses
        holdings = Holdings(self.store, self.catalog, self.residency)
        self.desk = Desk(
            catalog=self.catalog,
            residency=self.residency,
            presence=Presence(self.catalog, self.residency, clock=self.clock),
            generate=self.generate,
            responses=Responses(
                self.generate, responses or self.responses, clock=self.clock, totals=self.residency.totals
            ),
            embed=self.embed,
            holdings=holdings,
            transfer=Transfer(self.supply, holdings, self.catalog),
        )

    @property
    def engine(self) -> Engine:
        """The engine that was loaded last."""
        return self.loader.engines[-1]

    @property
    def names(self) -> list[str]:
        """What is in memory."""
        return [each.model.name for each in self.residency.running()]


def is_for_ever(expires_at: float) -> bool:
    """Whether a model never goes by itself."""
    return math.isinf(expires_at)
