"""Admission: who may use a model now, who waits, and who is sent away.

A turnstile has a number of slots and a bounded queue before them. It is deliberately no scheduler: first
come, first served. Neighbours: `services.residency` keeps one for each loaded model.

Invariant: never more than `slots` inside and `queue` waiting; whoever leaves, however it ends, frees its place.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from diglot.core.errors import Busy
from diglot.core.ports import Clock

_FIRST_GUESS = 5.0
_LONGEST = 60.0
_WEIGHT = 0.2


class Turnstile:
    """`slots` at a time, `queue` waiting, everybody else gets `Busy` with a guess of when to come back."""

    def __init__(self, *, slots: int, queue: int, clock: Clock) -> None:
        self._slots = slots
        self._queue = queue
        self._clock = clock
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._typical = _FIRST_GUESS

    @property
    def idle(self) -> bool:
        """Nobody is inside and nobody waits."""
        return not self._inside and not self._waiting

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold a slot. Waits for one in the order of arrival; raises `Busy` when the queue is full."""
        await self._enter()
        begun = self._clock.monotonic_ns()
        try:
            yield
        finally:
            self._learn((self._clock.monotonic_ns() - begun) / 1e9)
            self._leave()

    async def _enter(self) -> None:
        if self._inside < self._slots and not self._waiting:
            self._inside += 1
            return
        if len(self._waiting) >= self._queue:
            raise Busy(retry_after=self._wait_estimate())
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave()  # The slot was ours already: hand it on.
            elif place in self._waiting:  # Whoever left at the same moment may have passed it over.
                self._waiting.remove(place)
            raise

    def _leave(self) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)  # The slot passes on without being free in between.
                return
        self._inside -= 1

    def _learn(self, seconds: float) -> None:
        self._typical += _WEIGHT * (seconds - self._typical)

    def _wait_estimate(self) -> float:
        rounds = (len(self._waiting) + 1) / self._slots
        return min(_LONGEST, max(1.0, rounds * self._typical))
