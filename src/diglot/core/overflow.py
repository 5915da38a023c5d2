"""Overflow: what may be left out of a conversation that does not fit its window.

Pure arithmetic over items; who counts tokens is the caller's business. Nothing here is done unless the
client asked for it: leaving out is losing. Neighbour: `services.generate`.

Invariant: system and developer messages and the last item always stay, and a result never stays without its
call, so that the call of a last result stays too.
"""

from __future__ import annotations

from diglot.core.items import Item, Message, ToolCall, ToolResult


def removable(items: tuple[Item, ...]) -> int:
    """Return how many items, oldest first, could be left out."""
    return len(items) - sum(_fixed(items))


def without_oldest(items: tuple[Item, ...], count: int) -> tuple[Item, ...]:
    """Return the items without the `count` oldest removable ones, and without results that lost their call."""
    kept: list[Item] = []
    lost: set[str] = set()
    left = count
    for item, fixed in zip(items, _fixed(items), strict=True):
        if left and not fixed:
            left -= 1
            if isinstance(item, ToolCall):
                lost.add(item.call_id)
            continue
        if isinstance(item, ToolCall):
            lost.discard(item.call_id)
        if fixed or not (isinstance(item, ToolResult) and item.call_id in lost):
            kept.append(item)
    return tuple(kept)


def _fixed(items: tuple[Item, ...]) -> list[bool]:
    """Say of each item whether it must stay."""
    fixed = [isinstance(item, Message) and item.role in {"system", "developer"} for item in items]
    if items:
        fixed[-1] = True
        last = items[-1]
        if isinstance(last, ToolResult):
            calls = [at for at, item in enumerate(items) if isinstance(item, ToolCall) and item.call_id == last.call_id]
            fixed[calls[-1] if calls else -1] = True
    return fixed
