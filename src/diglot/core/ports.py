"""Ports: what the services need of the world, as protocols.

The composition root hands real ones in, tests hand in others. Nothing here is implemented.
Neighbours: `engines` and `store` implement these, `services` call them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Protocol

from diglot.core.digest import Digest
from diglot.core.events import Event, Step
from diglot.core.items import Image
from diglot.core.model import Capabilities, Model, ModelCard, ModelRef
from diglot.core.recipe import Recipe
from diglot.core.request import Embedding, Generation, LoadOptions, Rerank
from diglot.core.result import Embedded, Ranked, Stored
from diglot.core.source import Source

LoadProgress = Callable[[int, int], None]
"""Called with bytes done and bytes in all while a model loads; must not block."""


class Engine(Protocol):
    """A loaded model that answers."""

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""

    @property
    def window(self) -> int:
        """The context window that is really served, in tokens, prompt and answer together."""

    @property
    def slots(self) -> int:
        """How many answers it makes at the same time."""

    @property
    def alive(self) -> bool:
        """Whether it can still answer; once false it never becomes true again."""

    @property
    def memory(self) -> int:
        """Bytes that it takes up, all together."""

    @property
    def accelerator_memory(self) -> int:
        """Bytes of it that are on an accelerator."""

    def generate(self, request: Generation) -> AsyncGenerator[Event]:
        """Answer `request` (one choice, index 0).

        Closing the generator cancels and frees the slot. Faults that a status code can still tell are
        raised before `Started`; `ContextExceeded` is one of them.
        """

    async def count(self, request: Generation) -> int:
        """Return how many tokens the prompt has, rendered in the same way as `generate` does."""

    async def embed(self, request: Embedding) -> Embedded:
        """Return one vector for each input. `ContextExceeded` unless the request says to truncate."""

    async def rerank(self, request: Rerank) -> Ranked:
        """Return one score for each document. `ContextExceeded` where it does not fit the window with the query."""

    async def close(self) -> None:
        """End it and return all of its memory. Answers under way end with `Cancelled`. Idempotent."""


class EngineLoader(Protocol):
    """Turns a model of the store into an engine."""

    def estimate(self, model: Model, options: LoadOptions) -> int:
        """Return the bytes of memory that loading would take."""

    def window(self, model: Model, options: LoadOptions) -> int:
        """Return the context window that the model will have once it is loaded, in tokens."""

    def slots(self, model: Model) -> int:
        """Return how many answers the model will make at the same time once it is loaded."""

    async def load(self, model: Model, options: LoadOptions, progress: LoadProgress) -> Engine:
        """Load. `ModelBroken` and `LoadFailed` say why not; cancelling leaves nothing behind."""


class ModelStore(Protocol):
    """The models on disk. Methods block: callers run them in a thread."""

    def list(self) -> tuple[Model, ...]:
        """Return all models, the newest first."""

    def resolve(self, ref: ModelRef) -> Model:
        """Return the model of that name, in any case of letters. `ModelNotFound` if there is none."""

    def card(self, ref: ModelRef, *, verbose: bool = False) -> ModelCard:
        """Return all there is to know of a model."""


class Intake(Protocol):
    """A content on its way into a store. Methods block: callers run them in a thread."""

    def write(self, data: bytes) -> None:
        """Take more of it. `NoSpace` when the disk is full."""

    def settle(self) -> None:
        """Put it in its place, now that it has all come. `WrongDigest` if it is another content."""

    def close(self) -> None:
        """Leave nothing behind of a content that was not settled. Idempotent."""


class ModelKeep(ModelStore, Protocol):
    """The models on disk that are ours to change. Methods block: callers run them in a thread.

    Contents that nothing names any more stay as long as they are in use, until `tidy`.
    """

    def copy(self, source: ModelRef, target: ModelRef) -> Model:
        """Give a model a second name, which is replaced if it is taken. `ModelNotFound`."""

    def remove(self, ref: ModelRef) -> None:
        """Remove a name, and the contents that no other name needs. `ModelNotFound`."""

    def holds(self, digest: Digest) -> bool:
        """Whether that content is there."""

    def intake(self, digest: Digest, *, size: int = 0) -> Intake:
        """Begin to take in a content of `size` bytes (0: unknown). `NoSpace` when it will not fit."""

    def tidy(self) -> bool:
        """Remove what stayed because it was in use. Returns whether nothing is left of that."""


class Supply(Protocol):
    """Where models come from and go to. Closing a generator gives up; what has come stays for the next time."""

    def pull(self, source: Source, *, insecure: bool) -> AsyncGenerator[Step]:
        """Get a model into the store."""

    def push(self, ref: ModelRef, *, insecure: bool) -> AsyncGenerator[Step]:
        """Bring a model of the store to its registry."""

    def make(self, ref: ModelRef, recipe: Recipe, *, base: ModelCard | None) -> AsyncGenerator[Step]:
        """Make a model in the store, of which `base` is what the recipe's base turned out to be."""


class ResponseStore(Protocol):
    """Responses that can be taken up again. Methods block: callers run them in a thread.

    All raise `ResponsesUnavailable` where the disk or another process stands in the way.
    """

    def put(self, response: Stored) -> None:
        """Remember a response, or what has become of it. `NoSpace` when the disk is full."""

    def get(self, response: str) -> Stored:
        """Return a response. `UnknownResponse` if it was never stored, was deleted, or is too old."""

    def forget(self, response: str) -> None:
        """Delete a response. `UnknownResponse` if there is none."""


class Pictures(Protocol):
    """Looks at pictures before an engine does."""

    async def fetched(self, images: Sequence[Image]) -> tuple[Image, ...]:
        """Return pictures in the same order, those behind links fetched. `InvalidField`, which counts them, if one cannot be."""

    async def check(self, images: Sequence[Image]) -> None:
        """See that pictures can be decoded. `InvalidField`, which counts them, if one cannot."""

    async def readable(self, images: Sequence[Image]) -> tuple[Image, ...]:
        """Return pictures in forms that every engine reads, in the same order. Raises as `check`."""


class Seal(Protocol):
    """Makes text unreadable and unchangeable for everybody else, with a key that outlives the process."""

    def knows(self, text: str) -> bool:
        """Whether the text looks like something sealed here."""

    def close(self, text: str) -> str:
        """Return the text, sealed."""

    def open(self, sealed: str) -> str:
        """Return what was sealed. `BrokenCompaction` if it was changed, or sealed with another key."""


class Clock(Protocol):
    """The time. Injected, so that tests own it."""

    def now(self) -> float:
        """Return seconds since the epoch."""

    def monotonic_ns(self) -> int:
        """Return nanoseconds of a clock that never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


class Ids(Protocol):
    """Fresh names. Injected, so that tests own them."""

    def new(self) -> str:
        """Return 24 letters and digits that were never returned before."""
