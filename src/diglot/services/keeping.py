"""Keeping: which of the messages that outlive a compaction still fit.

What a person said is kept as it was written, the newest first within a share of the window, and the first
message always, for it holds the task. Only when even these would fill the window are they abridged, which is the
last resort. The choice depends on nothing but the messages, so that it is the same at every request and the KV
cache holds. Neighbours: `services.compact`, `services.fold`.

Invariant: a system or developer message is never left out, and the order never changes.
"""

from __future__ import annotations

import logging

from msgspec.structs import replace

from diglot.core.compaction.abridge import abridged, length_of
from diglot.core.items import Item, Message
from diglot.core.ports import Engine
from diglot.core.request import Conversation, Generation

log = logging.getLogger(__name__)

_SHARE = 0.35
_MOST = 0.75
_SHORTEST = 200


async def kept_within(engine: Engine, request: Generation, kept: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the kept messages, less what does not fit a share of the window. They replace the request's items."""

    async def tokens(items: tuple[Item, ...]) -> int:
        return await engine.count(replace(request, prompt=Conversation(items))) if items else 0

    users = [index for index, item in enumerate(kept) if isinstance(item, Message) and item.role == "user"]
    bare = tuple(item for index, item in enumerate(kept) if index not in users)
    limit = await tokens(bare) + int(engine.window * _SHARE)
    if await tokens(kept) <= limit:
        return kept
    low, high = 1, max(1, len(users) - 2)  # How many of the oldest, but the first, go; the last stays.
    while low < high:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if await tokens(_without(kept, users[1 : 1 + middle])) <= limit else (middle + 1, high)
        )
    fewer = _without(kept, users[1 : 1 + low]) if len(users) > 2 else kept  # noqa: PLR2004  the first and the last
    if gone := len(kept) - len(fewer):
        log.info("left out %d of %d user messages that were older than there is room for", gone, len(users))
    characters = max((length_of(item) for item in fewer), default=0)
    most = int(engine.window * _MOST)
    while characters > _SHORTEST and await tokens(fewer) > most:
        characters //= 2
        fewer = tuple(abridged(item, characters) if _is_user(item) else item for item in fewer)
    return fewer


def _without(kept: tuple[Item, ...], gone: list[int]) -> tuple[Item, ...]:
    return tuple(item for index, item in enumerate(kept) if index not in set(gone))


def _is_user(item: Item) -> bool:
    return isinstance(item, Message) and item.role == "user"
