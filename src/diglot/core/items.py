"""Items: what a conversation is made of.

A conversation is a tuple of items in order. Items are what dialects parse into and render from, what
is stored, and what compaction works on. They are deliberately not messages: a message-based protocol
maps onto items without loss, the reverse does not hold. `core.turns` turns items into chat turns.

Invariant: every item survives `msgspec.json` encoding and decoding unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

Role = Literal["system", "developer", "user", "assistant"]
CallKind = Literal["function", "freeform", "search", "shell", "local_shell", "patch"]
"""What a call is to the client: a function; a tool that takes text; a search for tools; commands for a shell (with
one command as its words, for the local one); a change of a file. All but `freeform` have a JSON object as arguments."""


class Text(msgspec.Struct, frozen=True, tag="text"):
    """A stretch of text."""

    text: str


class Image(msgspec.Struct, frozen=True, tag="image"):
    """An image as data: `data` holds the encoded file, `media_type` says which kind (`image/png`)."""

    data: bytes
    media_type: str


class File(msgspec.Struct, frozen=True, tag="file"):
    """A document as data that no engine here reads, kept so that it can be echoed."""

    data: bytes
    media_type: str
    name: str = ""


Part = Text | Image | File


class Message(msgspec.Struct, frozen=True, tag="message", omit_defaults=True):
    """What somebody said. `id` and `phase` are the client's own marks and are only echoed."""

    role: Role
    content: tuple[Part, ...]
    id: str | None = None
    name: str | None = None
    phase: str | None = None

    @property
    def text(self) -> str:
        """The text parts, joined by nothing."""
        return text_of(self.content)


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning", omit_defaults=True):
    """What a model thought before it answered. `sealed` is another server's opaque form of it."""

    text: str
    id: str | None = None
    sealed: str | None = None


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", omit_defaults=True):
    """A call that a model made.

    `arguments` is free text for a freeform tool and JSON text for all others. History may hold
    arguments that were cut off: they are kept as they are.
    """

    call_id: str
    name: str
    arguments: str
    namespace: str | None = None
    kind: CallKind = "function"
    id: str | None = None


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result", omit_defaults=True):
    """What a call gave back. `name` is known where the client names the tool instead of the call."""

    call_id: str
    content: tuple[Part, ...]
    name: str | None = None
    kind: CallKind = "function"
    id: str | None = None

    @property
    def text(self) -> str:
        """The text parts, joined by nothing."""
        return text_of(self.content)


class Compaction(msgspec.Struct, frozen=True, tag="compaction", omit_defaults=True):
    """A stretch of conversation folded into one item.

    `payload` is its envelope as the client holds it. `origin` says where in a request it stood, for faults.
    """

    payload: str
    id: str | None = None
    origin: str | None = None


class Opaque(msgspec.Struct, frozen=True, tag="opaque"):
    """An item of a kind that is not known here: stored and echoed byte for byte, never shown to a model."""

    kind: str
    raw: str


Item = Message | Reasoning | ToolCall | ToolResult | Compaction | Opaque


def text_of(content: tuple[Part, ...]) -> str:
    """Return the text parts of a content, joined by nothing."""
    return "".join(part.text for part in content if isinstance(part, Text))


def images_of(content: tuple[Part, ...]) -> tuple[Image, ...]:
    """Return the image parts of a content, in order."""
    return tuple(part for part in content if isinstance(part, Image))


def pictures_in(items: Iterable[Item]) -> tuple[Image, ...]:
    """Return the images of all items, in order."""
    contents = (item.content for item in items if isinstance(item, Message | ToolResult))
    return tuple(image for content in contents for image in images_of(content))


def with_pictures(items: Iterable[Item], pictures: Iterable[Image]) -> tuple[Item, ...]:
    """Return the items with other images, as many as `pictures_in` gives and in its order."""
    rest = iter(pictures)

    def changed(item: Item) -> Item:
        if not (isinstance(item, Message | ToolResult) and images_of(item.content)):
            return item
        content = tuple(next(rest) if isinstance(part, Image) else part for part in item.content)
        return msgspec.structs.replace(item, content=content)

    return tuple(map(changed, items))


def said(role: Role, text: str) -> Message:
    """Return a message of one text part."""
    return Message(role=role, content=(Text(text),))
