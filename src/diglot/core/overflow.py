"""Overflow: what may be left out of a conversation that does not fit its window.

Pure arithmetic over items; who counts tokens is the caller's business. Nothing here is done unless the
client asked for it: leaving out is losing. Neighbour: `services.generate`.

Invariant: system and developer messages and the last item always stay, and a result never stays without its call.
"""

from __future__ import annotations

from diglot.core.items import Item, Message, ToolCall, ToolResult


def removable(items: tuple[Item, ...]) -> int:
    """Return how many items, oldest first, could be left out."""
    return sum(not _is_fixed(item) for item in items[:-1])


def without_oldest(items: tuple[Item, ...], count: int) -> tuple[Item, ...]:
    """Return the items without the `count` oldest removable ones, and without results that lost their call."""
    kept: list[Item] = []
    left = count
    for index, item in enumerate(items):
        if left and index < len(items) - 1 and not _is_fixed(item):
            left -= 1
        else:
            kept.append(item)
    calls = {item.call_id for item in kept if isinstance(item, ToolCall)}
    made = {item.call_id for item in items if isinstance(item, ToolCall)}
    lost = made - calls
    last = items[-1] if items else None
    return tuple(item for item in kept if not (isinstance(item, ToolResult) and item.call_id in lost) or item is last)


def _is_fixed(item: Item) -> bool:
    return isinstance(item, Message) and item.role in ("system", "developer")
