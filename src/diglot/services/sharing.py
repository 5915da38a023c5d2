"""Sharing: an engine that is lent for several pieces of work, and lets others in between two of them.

A batch of texts, a conversation that is folded piece by piece and several answers to one prompt each hold one slot, which
nobody else gets for as long as that takes. So between two pieces slot and engine are given back if somebody waits, and
taken again in turn. Both are: whoever waits for a slot with an engine in hand could be waited for himself, by somebody
who wants that engine gone.

Neighbours: `services.residency` lends; whoever is lent this one knows of nothing.

Invariant: while it waits for its turn it holds neither slot nor engine.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, aclosing
from types import TracebackType
from typing import Self

from diglot.core.events import Event
from diglot.core.model import Capabilities
from diglot.core.ports import Clock, Engine
from diglot.core.request import Embedding, Generation, Rerank
from diglot.core.result import Embedded, Ranked
from diglot.services.admission import Turn
from diglot.services.visit import Visit


class SharedEngine:
    """Whatever engine is lent now. Implements `core.ports.Engine`. `away` lasts while it is given back for a while."""

    def __init__(
        self,
        turn: Turn,
        lend: Callable[[], AbstractAsyncContextManager[Engine]],
        *,
        away: Callable[[], AbstractContextManager[None]],
        visit: Visit,
        clock: Clock,
    ) -> None:
        self._turn = turn
        self._lend = lend
        self._away = away
        self._visit = visit
        self._clock = clock
        self._lease = AsyncExitStack()
        self._used = False
        self._engine: Engine

    async def __aenter__(self) -> Self:
        """Be lent an engine."""
        await self._borrow()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back."""
        await self._lease.__aexit__(kind, error, trace)

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return self._engine.capabilities

    @property
    def window(self) -> int:
        """The context window, in tokens."""
        return self._engine.window

    @property
    def slots(self) -> int:
        """How many answers are made at the same time."""
        return self._engine.slots

    @property
    def alive(self) -> bool:
        """Whether it can still answer."""
        return self._engine.alive

    @property
    def memory(self) -> int:
        """Bytes that it takes up."""
        return self._engine.memory

    @property
    def accelerator_memory(self) -> int:
        """Bytes of it that are on an accelerator."""
        return self._engine.accelerator_memory

    def generate(self, request: Generation) -> AsyncGenerator[Event]:
        """Answer, after others where this is not the first piece of work."""
        if self._is_next():
            return self._engine.generate(request)
        return self._after_others(request)

    async def count(self, request: Generation) -> int:
        """Return the tokens of the prompt. It takes no slot."""
        return await self._engine.count(request)

    async def embed(self, request: Embedding) -> Embedded:
        """Return vectors, after others where this is not the first piece of work."""
        if not self._is_next():
            await self._give_way()
        return await self._engine.embed(request)

    async def rerank(self, request: Rerank) -> Ranked:
        """Return scores, after others where this is not the first piece of work."""
        if not self._is_next():
            await self._give_way()
        return await self._engine.rerank(request)

    async def close(self) -> None:
        """Do nothing: it is not ours to close."""

    def _is_next(self) -> bool:
        first, self._used = not self._used, True
        return first or not self._turn.wanted

    async def _after_others(self, request: Generation) -> AsyncGenerator[Event]:
        await self._give_way()
        async with aclosing(self._engine.generate(request)) as events:
            async for event in events:
                yield event

    async def _give_way(self) -> None:
        with self._away():
            await self._lease.aclose()
            self._visit.reach("queue", self._clock.monotonic_ns())
            await self._turn.give_way()
            await self._borrow()

    async def _borrow(self) -> None:
        self._visit.reach("load", self._clock.monotonic_ns())
        self._engine = await self._lease.enter_async_context(self._lend())
        self._visit.reach("prefill", self._clock.monotonic_ns())
