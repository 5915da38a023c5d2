"""Admission: who may use a model now, who waits, and who is sent away.

A turnstile has a number of slots and a bounded line before them, in which callers take turns (`services.waiting`). Who
works in the background lets the others go first, but not for ever. Of a full line, whoever has most of it yields a
place to somebody who has less: he is sent away as he would have been had he come later. A slot that is held for long
can be given up between two pieces of work, for as long as it takes the others to have their turn.

Neighbours: `services.residency` keeps a turnstile for each loaded model; `services.sharing` gives way.

Invariants: never more than `slots` inside; never more than `queue` waiting, but for those who were let in before and
those in the background, whose number is bounded where they come from (`services.respond`); whoever leaves, however it
ends, frees what he holds; no slot is free while somebody waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from diglot.core.errors import Busy
from diglot.core.ports import Clock
from diglot.services.waiting import Line, Place

_FIRST_GUESS = 5.0
_LONGEST = 60.0
_WEIGHT = 0.2
_PATIENCE = 8
"""So many go before one who waits in the background, then it is his turn."""


class Turn:
    """A slot that is held, until the turn ends or is given up for a while."""

    def __init__(self, turnstile: Turnstile, line: Line, caller: str) -> None:
        self._turnstile = turnstile
        self.line = line
        self.caller = caller
        self.held = True
        self.since = turnstile.now()

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for a slot."""
        return self._turnstile.waiting > 0

    async def give_way(self) -> None:
        """Let those go first whose turn it is, and come back. Cancelled meanwhile, nothing is held."""
        self.held = False
        await self._turnstile.step_aside(self)
        self.held = True
        self.since = self._turnstile.now()


class Turnstile:
    """`slots` at a time, `queue` waiting, everybody else gets `Busy` with a guess of when to come back."""

    def __init__(self, *, slots: int, queue: int, clock: Clock) -> None:
        self.slots = slots
        self.inside = 0
        self._queue = queue
        self._clock = clock
        self._line = Line()
        self._behind = Line()
        self._passed = 0
        self._typical = _FIRST_GUESS

    @property
    def idle(self) -> bool:
        """Nobody is inside and nobody waits."""
        return not self.inside and not self.waiting

    @property
    def waiting(self) -> int:
        """How many wait, in the background too."""
        return len(self._line) + len(self._behind)

    @asynccontextmanager
    async def turn(self, caller: str = "", *, background: bool = False) -> AsyncIterator[Turn]:
        """Hold a slot for a caller. Waits for one; raises `Busy` when the queue is full, or his place is yielded."""
        line = self._behind if background else self._line
        await self._enter(line, caller, bounded=not background)
        turn = Turn(self, line, caller)
        try:
            yield turn
        finally:
            if turn.held:
                self._learn(turn)
                self._leave()

    async def step_aside(self, turn: Turn) -> None:
        """Give a slot up and wait for the next, as one who was let in before. For `Turn`."""
        place = turn.line.join(turn.caller, spared=True)
        self._learn(turn)
        self._leave()
        await self._wait(turn.line, place)

    def now(self) -> float:
        """Return seconds of a clock that never goes back."""
        return self._clock.monotonic_ns() / 1e9

    async def _enter(self, line: Line, caller: str, *, bounded: bool) -> None:
        if self.inside < self.slots:  # Then nobody waits.
            self.inside += 1
            return
        if bounded and line.counted >= self._queue:
            place = line.yielded_to(caller)
            if place is None:
                raise Busy(retry_after=self._wait_estimate())
            if not place.ready.done():  # Else he has just given up by himself.
                place.ready.set_exception(Busy(retry_after=self._wait_estimate()))
        await self._wait(line, line.join(caller, spared=not bounded))

    async def _wait(self, line: Line, place: Place) -> None:
        try:
            await place.ready
        except asyncio.CancelledError:
            if place.ready.done() and not place.ready.cancelled() and not place.ready.exception():
                self._leave()  # The slot was ours already: hand it on.
            line.drop(place)
            raise

    def _leave(self) -> None:
        place = self._next()
        if place is None:
            self.inside -= 1
        else:
            place.ready.set_result(None)  # The slot passes on without being free in between.

    def _next(self) -> Place | None:
        """Return whose turn it is: somebody in the background after so many others, or where there is nobody else."""
        if self._passed >= _PATIENCE and (place := self._behind.serve()):
            self._passed = 0
            return place
        if place := self._line.serve():
            self._passed = self._passed + 1 if len(self._behind) else 0
            return place
        self._passed = 0
        return self._behind.serve()

    def _learn(self, turn: Turn) -> None:
        self._typical += _WEIGHT * (self.now() - turn.since - self._typical)

    def _wait_estimate(self) -> float:
        rounds = (self._line.counted + 1) / self.slots
        return min(_LONGEST, max(1.0, rounds * self._typical))
