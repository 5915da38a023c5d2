"""Retaining: which items stay word for word beside the summary, within the budget.

What is still going on stays: calls without a result, and what just came back. It is abridged only where it would
take more than its share, and, as the last resort, left to the record. Then comes what the model has chosen, the
newest first, as far as it may. Neighbours: `core.compaction.plan` says what is going on, `services.compact`.

Invariant: no call is parted from its result; a call without one always stays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from diglot.core.compaction.abridge import abridged, length_of
from diglot.core.compaction.budget import Budget
from diglot.core.compaction.plan import closed
from diglot.core.items import Item, ToolCall, ToolResult
from diglot.services.tally import Tally

log = logging.getLogger(__name__)

_SHORTEST = 200
_PER_ITEM = 24
_SURE = 0.9


class Retained:
    """Chooses for one conversation. `fixed` tokens are there anyway, with the items `kept`."""

    def __init__(
        self,
        tally: Tally,
        items: tuple[Item, ...],
        *,
        kept: tuple[Item, ...],
        fixed: int,
        budget: Budget,
        density: float,
    ) -> None:
        self._tally = tally
        self._items = items
        self._kept = kept
        self._fixed = fixed
        self._budget = budget
        self._density = density

    async def __call__(self, forced: tuple[int, ...], chosen: tuple[int, ...]) -> dict[int, Item]:
        """Return what stays by its position: items as they were, or abridged."""
        stays = await self._going_on({index: self._items[index] for index in forced})
        wanted = self._wanted(chosen, stays)
        while wanted and await self.taken(stays | wanted) > self._most(await self.taken(stays)):
            gone = closed(self._items, (min(wanted),))
            wanted = {index: item for index, item in wanted.items() if index not in gone}
        return dict(sorted((stays | wanted).items()))

    async def taken(self, stays: dict[int, Item]) -> int:
        """Return how many tokens items take beside what is kept anyway."""
        items = tuple(stays[index] for index in sorted(stays))
        return await self._tally((*self._kept, *items)) - self._fixed if items else 0

    def _most(self, forced: int) -> int:
        return min(self._budget.retained, forced + self._budget.chosen)

    async def _going_on(self, must: dict[int, Item]) -> dict[int, Item]:
        """Return the forced items, abridged as far as they have to be."""
        longest = max(map(length_of, must.values()), default=0)
        whole = dict(must)
        while longest > _SHORTEST and (tokens := await self.taken(must)) > self._budget.retained:
            longest = max(_SHORTEST, min(longest // 2, int(longest * self._budget.retained / tokens)))
            must = {index: abridged(item, longest) for index, item in whole.items()}
        answered = {item.call_id for item in must.values() if isinstance(item, ToolResult)}
        for index in sorted(must):
            item = must.get(index)
            if not isinstance(item, ToolCall) or item.call_id not in answered:
                continue
            if await self.taken(must) <= self._budget.retained:
                break
            log.info("a call and its result have no room beside the summary, and are only in the record")
            gone = closed(self._items, (index,))
            must = {index: item for index, item in must.items() if index not in gone}
        return must

    def _wanted(self, chosen: Iterable[int], stays: dict[int, Item]) -> dict[int, Item]:
        """Return the newest of the chosen that have room, by their length."""
        wanted: dict[int, Item] = {}
        room = self._budget.chosen * _SURE * self._density
        for index in sorted(chosen, reverse=True):
            group = {each: self._items[each] for each in closed(self._items, (index,)) if each not in stays | wanted}
            size = sum(length_of(item) + _PER_ITEM for item in group.values())
            if size <= room:
                room -= size
                wanted |= group
        return wanted
