"""Abridging: an item made shorter by code, its beginning and its end kept.

For the rare item that is longer than there is room for: one tool output larger than a whole window, or a
result that must stay word for word and fills the budget. A line in its middle says what was left out.
Arguments stay a JSON object, for
templates read them. Neighbours: `services.chunking`, `services.retaining`, `services.keeping`.

Invariant: the result is no longer than asked for (or than the marker, whichever is more), and a short item is returned as it is.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from diglot.core.items import Image, Item, Message, Part, Reasoning, Text, ToolCall, ToolResult, text_of

_SHORTEST_TEXT = 16


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
        case ToolCall() if len(item.arguments) > characters:
            freeform = item.kind == "freeform"
            return replace(item, arguments=(shortened if freeform else _shorter_json)(item.arguments, characters))
        case _:
            return item


def length_of(item: Item) -> int:
    """Return the characters of an item that `abridged` can take away."""
    match item:
        case Message() | ToolResult():
            return len(text_of(item.content))
        case Reasoning():
            return len(item.text)
        case ToolCall():
            return len(item.arguments)
        case _:
            return 0


def _shorter_json(arguments: str, characters: int) -> str:
    """Return arguments with their long texts shortened, so that they are still an object; else with one text for all."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = None
    longest = characters
    while isinstance(value, dict) and longest >= _SHORTEST_TEXT:
        told = _written(_with_texts(value, longest))
        if len(told) <= characters:
            return told
        longest //= 2
    longest = characters
    while len(told := _written({"abridged": shortened(arguments, longest)})) > characters and longest:
        longest //= 2
    return told


def _written(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _with_texts(value: Any, longest: int) -> Any:
    """Return a JSON value with every text in it shortened."""
    match value:
        case str():
            return shortened(value, longest)
        case list():
            return [_with_texts(each, longest) for each in value]
        case dict():
            return {key: _with_texts(each, longest) for key, each in value.items()}
        case _:
            return value


def shortened(text: str, characters: int) -> str:
    """Return the text with its middle left out, if it is longer than `characters`."""
    if len(text) <= characters:
        return text
    marker = f"\n[{len(text) - characters} characters left out]\n"
    room = max(0, characters - len(marker))
    head = room * 2 // 3
    return text[:head] + marker + (text[len(text) - (room - head) :] if room > head else "")
