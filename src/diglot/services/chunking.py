"""Chunking: a conversation cut into pieces that a model can read one after the other.

Where all of it fits behind its instruction it is one piece, so that it comes from the KV cache as it stands. Where
not, each piece is as long as the window takes, begins with the system text and the summary of what came before, and
ends where no call is parted from its result. How long is found by the density of the text and put right by counting:
two or three counts a piece, whatever is left. Neighbours: `services.summarise` asks, `core.compaction.plan` says where
may be cut.

Invariant: every item stands in exactly one piece, in order; what is too long for a window alone is abridged.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from itertools import accumulate

import msgspec

from diglot.core.compaction.abridge import abridged, length_of
from diglot.core.compaction.budget import ANSWER_OVERHEAD, Budget
from diglot.core.compaction.envelope import Summary
from diglot.core.compaction.plan import cuts
from diglot.core.compaction.prompt import instruction
from diglot.core.compaction.window import shown
from diglot.core.errors import ContextExceeded
from diglot.core.items import Item, Message
from diglot.services.tally import Tally, at_most

log = logging.getLogger(__name__)

_SYSTEM = ("system", "developer")
_SHORTEST = 200
_SHORTEST_PROSE = 256
_ENOUGH = 0.85  # A piece that fills so much of its room is not made longer.
_AIM = 0.95
_GUESSES = 4
_PER_ITEM = 24
_NARROWER = 0.8


class Chunk(msgspec.Struct, frozen=True):
    """What a model is shown, and before which item it ends.

    `ids` are the positions of the items it may choose, `characters` is how long its answer may be.
    """

    items: tuple[Item, ...]
    end: int
    ids: tuple[int, ...]
    characters: int


class Chunks:
    """Cuts one conversation of `before` tokens, of which each has `density` characters."""

    def __init__(
        self,
        tally: Tally,
        items: tuple[Item, ...],
        *,
        offered: tuple[int, ...],
        budget: Budget,
        before: int,
        density: float,
    ) -> None:
        self._tally = tally
        self._items = items
        self._offered = offered
        self._budget = budget
        self._before = before
        self._density = density
        self._window = tally.window
        self._cuts = cuts(items)
        self._lengths = list(accumulate((length_of(item) + _PER_ITEM for item in items), initial=0))

    async def next(self, start: int, prose: str) -> Chunk:
        """Return the piece that begins at an item, where `prose` tells what came before."""
        if not start and (characters := await self._room_for_all()):
            return Chunk(self._items, len(self._items), self._offered, characters)
        end = await self._end(start, prose)
        prompt = self._prompt(start, end, prose)
        longest = max(map(length_of, self._items[start:end]))
        while longest > _SHORTEST and (tokens := await self._tally(prompt)) > self._room:
            longest = max(_SHORTEST, min(longest // 2, int(longest * self._room / tokens)))
            prompt = self._prompt(start, end, prose, longest=longest)
        while end > start + 1 and await self._tally(prompt) > self._room:  # A turn of very many calls.
            end = (start + end) // 2
            prompt = self._prompt(start, end, prose, longest=longest)
        log.debug("items %d to %d of %d are one piece", start, end, len(self._items))
        return Chunk(prompt[:-1], end, self._ids(start, end), self._budget.prose)

    def narrow(self, fault: ContextExceeded) -> bool:
        """Make pieces shorter for an engine that counts otherwise, or has less room than it says. False if that is no use."""
        told = fault.window / fault.tokens if fault.tokens > fault.window > 0 else 1.0
        self._window = int(self._window * min(_NARROWER, told))
        return self._window > self._budget.answer + _SHORTEST

    async def _room_for_all(self) -> int:
        """Return how long the answer to the whole conversation may be, 0 if it does not fit."""
        question = self._question(self._offered)
        bound = at_most((question,))
        if bound is not None and self._before + bound + self._budget.answer <= self._window:
            return self._budget.prose
        least = min(_SHORTEST_PROSE, self._budget.prose)
        if self._before + least + ANSWER_OVERHEAD > self._window:
            return 0
        room = self._window - ANSWER_OVERHEAD - await self._tally((*self._items, question))
        return min(room, self._budget.prose) if room >= least else 0

    async def _end(self, start: int, prose: str) -> int:
        """Return where the longest piece ends, or nearly: where it may be cut and its room is filled."""
        places = self._cuts[bisect_right(self._cuts, start) :]
        fit, past = 0, len(places) + 1  # So many groups fit, so many do not.
        tried = self._reach(places, start, (self._room - self._before_items(prose)) * _AIM)
        for guess in range(len(places)):
            tokens = await self._tally(self._prompt(start, places[tried - 1], prose))
            if tokens <= self._room:
                fit = tried
            else:
                past = tried
            if past - fit <= 1 or (fit == tried and tokens >= self._room * _ENOUGH):
                break
            done = (self._lengths[places[tried - 1]] - self._lengths[start]) / self._density
            reach = self._reach(places, start, done + self._room * _AIM - tokens)
            tried = min(max(reach, fit + 1), past - 1) if guess < _GUESSES else (fit + past) // 2
        return places[max(fit, 1) - 1]

    def _reach(self, places: tuple[int, ...], start: int, tokens: float) -> int:
        """Return how many groups have so many tokens, by their length; one at least."""
        return max(
            1, bisect_right(places, tokens * self._density, key=lambda at: self._lengths[at] - self._lengths[start])
        )

    def _before_items(self, prose: str) -> float:
        """Return about how many tokens a prompt has besides its items."""
        return (len(prose) + len(self._question(()).text)) / self._density

    @property
    def _room(self) -> int:
        return self._window - self._budget.answer

    def _prompt(self, start: int, end: int, prose: str, *, longest: int | None = None) -> tuple[Item, ...]:
        """Return what the model is asked about items `start` to `end`: system text, summary so far, items, question."""
        chunk = self._items[start:end]
        if longest is not None:
            chunk = tuple(abridged(item, longest) for item in chunk)
        if start:
            system = tuple(item for item in self._items[:start] if isinstance(item, Message) and item.role in _SYSTEM)
            chunk = (*system, *shown(prose, Summary(prose)), *chunk)
        return (*chunk, self._question(self._ids(start, end)))

    def _question(self, ids: tuple[int, ...]) -> Message:
        return instruction(self._items, ids, characters=self._budget.prose)

    def _ids(self, start: int, end: int) -> tuple[int, ...]:
        return tuple(index for index in self._offered if start <= index < end)
