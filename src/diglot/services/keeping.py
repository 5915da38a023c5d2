"""Keeping: which of the messages that outlive a compaction still fit.

What a person said is kept as it was written, the newest first within a share of the window, and the first
message always, for it holds the task. Only when even these would fill the window are they abridged, which is the
last resort. The choice depends on nothing but the messages, so that it is the same at every request and the KV
cache holds. Neighbours: `services.compact`, `services.fold`.

Invariant: a system or developer message is never left out, and the order never changes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from diglot.core.compaction.abridge import abridged, length_of
from diglot.core.items import Item, Message
from diglot.services.tally import Tally, at_most

log = logging.getLogger(__name__)

_SHARE = 0.35
_MOST = 0.75
_SHORTEST = 200


async def kept_within(tally: Tally, kept: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the kept messages, less what does not fit a share of the window."""
    users = [index for index, item in enumerate(kept) if _is_user(item)]
    share = int(tally.window * _SHARE)
    bound = at_most(kept[index] for index in users)
    if bound is not None and bound <= share:
        return kept
    limit = await tally(_without(kept, users)) + share
    if await tally(kept) <= limit:
        return kept
    fewer = kept
    if len(users) > 2:  # noqa: PLR2004  the first and the last
        low, high = 1, len(users) - 2  # How many of the oldest, but the first, go; the last stays.
        while low < high:
            middle = (low + high) // 2
            fits = await tally(_without(kept, users[1 : 1 + middle])) <= limit
            low, high = (low, middle) if fits else (middle + 1, high)
        fewer = _without(kept, users[1 : 1 + low])
        log.info("left out %d of %d user messages that were older than there is room for", low, len(users))
    characters = max((length_of(item) for item in fewer), default=0)
    most = int(tally.window * _MOST)
    while characters > _SHORTEST and await tally(fewer) > most:
        characters //= 2
        fewer = tuple(abridged(item, characters) if _is_user(item) else item for item in fewer)
    return fewer


def _without(kept: tuple[Item, ...], gone: Iterable[int]) -> tuple[Item, ...]:
    gone = set(gone)
    return tuple(item for index, item in enumerate(kept) if index not in gone)


def _is_user(item: Item) -> bool:
    return isinstance(item, Message) and item.role == "user"
