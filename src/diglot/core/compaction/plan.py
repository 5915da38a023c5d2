"""The plan: which items of a conversation must stay word for word, and which may.

Every item has a reference, `item_000001` for the first. Calls and their results are the state of a run that
nobody may rewrite or tear apart: what is still going on is forced to stay, what is over may stay whole or go
whole. Neighbours: `prompt` offers what may stay to the model, `services.compact` keeps to the token budget.

Invariant: a selection that comes out of here never holds a call without its result, nor a result without its call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeGuard

import msgspec

from diglot.core.compaction.window import is_kept, is_shown_summary
from diglot.core.items import Compaction, Item, Message, Opaque, Reasoning, ToolCall, ToolResult


class Plan(msgspec.Struct, frozen=True):
    """Positions of items: `forced` must be retained, `optional` may be. Messages that are kept anyway are in neither."""

    forced: tuple[int, ...]
    optional: tuple[int, ...]


def plan_of(items: tuple[Item, ...]) -> Plan:
    """Return the plan for a conversation as a model is shown it."""
    forced = closed(items, _active(items))
    halves = Counter(call_id for _, call_id in {(type(item), item.call_id) for item in items if _is_half(item)})
    optional = tuple(
        index
        for index, item in enumerate(items)
        if index not in forced and _is_retainable(item) and (not _is_half(item) or halves[item.call_id] > 1)
    )
    return Plan(forced=tuple(sorted(forced)), optional=optional)


def cuts(items: tuple[Item, ...]) -> tuple[int, ...]:
    """Return where a conversation may be cut, its end among these: nowhere between a call and its result."""
    ends: dict[int, int] = {}
    next_result: dict[str, int] = {}
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, ToolResult):
            next_result[item.call_id] = index
        elif isinstance(item, ToolCall):
            ends[index] = next_result.get(item.call_id, index)
    places: list[int] = []
    open_until = 0
    for index in range(len(items)):
        open_until = max(open_until, ends.get(index, index))
        if open_until == index:
            places.append(index + 1)
    return tuple(places)


def reference(index: int) -> str:
    """Return the name of the item at a position."""
    return f"item_{index + 1:06d}"


def closed(items: tuple[Item, ...], chosen: Iterable[int]) -> frozenset[int]:
    """Return the selection with the other half of every call and result in it."""
    chosen = set(chosen)
    ids = {
        item.call_id for index, item in enumerate(items) if index in chosen and isinstance(item, ToolCall | ToolResult)
    }
    partners = {
        index for index, item in enumerate(items) if isinstance(item, ToolCall | ToolResult) and item.call_id in ids
    }
    return frozenset(chosen | partners)


def _active(items: tuple[Item, ...]) -> set[int]:
    """Return the calls that have no result yet, and those whose result nothing has followed up on."""
    answered = {item.call_id: index for index, item in enumerate(items) if isinstance(item, ToolResult)}
    last_move = max((index for index, item in enumerate(items) if _is_move(item)), default=-1)
    return {
        index
        for index, item in enumerate(items)
        if isinstance(item, ToolCall)
        and not is_shown_summary(item)
        and (item.call_id not in answered or answered[item.call_id] > last_move)
    }


def _is_move(item: Item) -> bool:
    """Whether the model did something here."""
    return isinstance(item, Reasoning | ToolCall) or (isinstance(item, Message) and item.role == "assistant")


def _is_retainable(item: Item) -> bool:
    return not (is_kept(item) or is_shown_summary(item) or isinstance(item, Reasoning | Opaque | Compaction))


def _is_half(item: Item) -> TypeGuard[ToolCall | ToolResult]:
    return isinstance(item, ToolCall | ToolResult)
