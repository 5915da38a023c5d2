"""Waiting: the line before a turnstile, in which callers take turns.

Each caller's places are served in the order in which they came, and the callers in rounds, so that whoever wants one
thing waits for one thing of each other caller, however many they want. It is deliberately no more than an order: who
may join, and when one is served, is decided by `services.admission`.

Invariants: while a place waits behind `n` others of its caller, no other caller is served more than `n + 1` times; a
place leaves the line once, by being served, dropped or yielded.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque


class Place:
    """Where somebody waits. `ready` is done when it is their turn, and fails when the place went to another.

    A `spared` place belongs to somebody who was let in before: it counts for no bound and is never yielded.
    """

    __slots__ = ("caller", "ready", "spared")

    def __init__(self, caller: str, *, spared: bool) -> None:
        self.caller = caller
        self.spared = spared
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Line:
    """The places of all callers."""

    def __init__(self) -> None:
        self._round: OrderedDict[str, deque[Place]] = OrderedDict()
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many places there are."""
        return sum(map(len, self._round.values()))

    @property
    def counted(self) -> int:
        """How many places there are that are not spared."""
        return self._counts.total()

    def join(self, caller: str, *, spared: bool = False) -> Place:
        """Return a new place behind those of the caller; a caller who had none comes last in the round."""
        place = Place(caller, spared=spared)
        self._round.setdefault(caller, deque()).append(place)
        self._counts[caller] += not spared
        return place

    def serve(self) -> Place | None:
        """Take out the place whose turn it is. Those that were given up just now are passed over."""
        while self._round:
            caller, places = next(iter(self._round.items()))
            place = places[0]
            self.drop(place)
            if not place.ready.done():
                if caller in self._round:
                    self._round.move_to_end(caller)
                return place
        return None

    def drop(self, place: Place) -> None:
        """Take out a place, wherever it stands. Idempotent."""
        places = self._round.get(place.caller)
        if places is None or place not in places:
            return
        places.remove(place)
        self._counts[place.caller] -= not place.spared
        if not self._counts[place.caller]:
            del self._counts[place.caller]
        if not places:
            del self._round[place.caller]

    def yielded_to(self, caller: str) -> Place | None:
        """Take out the newest place of whoever has most, if that leaves them with more than `caller` has."""
        most, count = max(self._counts.items(), key=lambda each: each[1], default=("", 0))
        if count - 1 <= self._counts[caller]:
            return None
        place = next(each for each in reversed(self._round[most]) if not each.spared)
        self.drop(place)
        return place
