"""The window: what a compaction item in a conversation means.

The one rule. A compaction item stands for everything before it, except what a system, a developer or a user
said: those messages are kept as they were written. Where there are several, only the newest counts, for each
one has taken in the one before. What it stands for is shown to the model as a call and its output, the form
in which Ollama shows it, and then come the items that it kept word for word, and everything after it.

It does not open envelopes: who calls has the key.

Invariants: no system, developer or user message is changed; a conversation without a compaction item is returned as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from diglot.core.compaction.envelope import Summary
from diglot.core.items import Compaction, Item, Message, Text, ToolCall, ToolResult

TOOL = "ollama_compaction_summary"
CALL_ID = "call_ollama_compaction_"

Open = Callable[[Compaction], Summary]
"""Opens the envelope of an item. Raises BrokenCompaction."""


def effective(items: tuple[Item, ...], opened: Open) -> tuple[Item, ...]:
    """Return the conversation that a model is shown."""
    newest = newest_compaction(items)
    if newest is None:
        return items
    index, item = newest
    summary = opened(item)
    before = tuple(each for each in items[:index] if is_kept(each))
    after = tuple(each for each in items[index + 1 :] if not isinstance(each, Compaction))
    return (*before, *shown(item.payload, summary), *after)


def newest_compaction(items: tuple[Item, ...]) -> tuple[int, Compaction] | None:
    """Return the last compaction item and where it stands."""
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, Compaction):
            return index, item
    return None


def shown(payload: str, summary: Summary) -> tuple[Item, ...]:
    """Return what a model sees of a compaction: the call, its output, and what was retained."""
    call_id = CALL_ID + hashlib.sha256(payload.encode()).hexdigest()[:12]
    return (
        ToolCall(call_id=call_id, name=TOOL, arguments='{"version":1}'),
        ToolResult(call_id=call_id, name=TOOL, content=(Text(summary.text),)),
        *summary.retained,
    )


def is_kept(item: Item) -> bool:
    """Whether the item outlives every compaction: a message that no model wrote."""
    return isinstance(item, Message) and item.role != "assistant"


def is_shown_summary(item: Item) -> bool:
    """Whether the item is one half of what `shown` puts in for a compaction."""
    return isinstance(item, ToolCall | ToolResult) and item.call_id.startswith(CALL_ID)
