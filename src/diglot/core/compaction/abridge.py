"""Abridging: an item made shorter by code, its beginning and its end kept.

For the rare item that is longer than there is room for: one tool output larger than a whole window, or a
result that must stay word for word and fills the budget. A line in its middle says what was left out.
Neighbours: `services.summarise`, `services.compact`.

Invariant: the result is no longer than asked for (or than the marker, whichever is more), and a short item is returned as it is.
"""

from __future__ import annotations

from msgspec.structs import replace

from diglot.core.items import Image, Item, Message, Part, Reasoning, Text, ToolCall, ToolResult, text_of


def abridged(item: Item, characters: int) -> Item:
    """Return the item with at most so many characters of text."""
    match item:
        case Message() | ToolResult():
            if len(item.text) <= characters:
                return item
            images: tuple[Part, ...] = tuple(part for part in item.content if isinstance(part, Image))
            return replace(item, content=(Text(shortened(item.text, characters)), *images))
        case Reasoning() if len(item.text) > characters:
            return replace(item, text=shortened(item.text, characters))
        case ToolCall(kind="freeform") if len(item.arguments) > characters:
            return replace(item, arguments=shortened(item.arguments, characters))
        case _:
            return item


def length_of(item: Item) -> int:
    """Return the characters of an item that `abridged` can take away."""
    match item:
        case Message() | ToolResult():
            return len(text_of(item.content))
        case Reasoning():
            return len(item.text)
        case ToolCall(kind="freeform"):
            return len(item.arguments)
        case _:
            return 0


def shortened(text: str, characters: int) -> str:
    """Return the text with its middle left out, if it is longer than `characters`."""
    if len(text) <= characters:
        return text
    marker = f"\n[{len(text) - characters} characters left out]\n"
    room = max(0, characters - len(marker))
    head = room * 2 // 3
    return text[:head] + marker + (text[len(text) - (room - head) :] if room > head else "")
