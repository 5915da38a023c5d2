"""The envelope: a compaction written down as text that a client carries.

Its plain form is JSON, `{"type": "ollama_compaction", "version": 1, "summary", "retained"}`, the form that
Ollama 0.34 writes and reads, so that a session can move between the two servers. Ollama's reader is strict
(an unknown key is refused), so nothing is added to it: what we know more than it has a place for is inside
`summary` (see `record`). Sealing is deliberately not done here: it needs a key (`core.ports.Seal`).

Invariant: `open_envelope` undoes `write_envelope` as far as a model can tell the difference.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec

from diglot.core.errors import BrokenCompaction
from diglot.core.foreign import UNREADABLE
from diglot.core.images import image_of
from diglot.core.items import Image, Item, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from diglot.core.tools import flat_arguments, flat_name

KIND = "ollama_compaction"
VERSION = 1
_FOREIGN = "its content was not written by this server or by Ollama"


class Summary(msgspec.Struct, frozen=True):
    """What a compaction holds: the summary, and items that stay word for word, in their order."""

    text: str
    retained: tuple[Item, ...] = ()


class _Function(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] = {}
    index: int = 0


class _Call(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    function: _Function
    id: str = ""


class _Kept(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One retained message, in the form of Ollama's own API."""

    role: str
    content: str = ""
    thinking: str = ""
    images: list[str] = []
    tool_calls: list[_Call] = []
    tool_name: str = ""
    tool_call_id: str = ""


class _Payload(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    version: int
    summary: str
    retained: list[_Kept] = []
    # Later versions of Ollama add these two and keep the version at 1; they say nothing a prompt needs.
    standalone_names: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    custom_call_ids: dict[str, bool] | msgspec.UnsetType = msgspec.UNSET


def write_envelope(summary: Summary) -> str:
    """Return the plain form."""
    retained = [kept for item in summary.retained if (kept := _kept(item))]
    payload = _Payload(type=KIND, version=VERSION, summary=summary.text, retained=retained)
    return msgspec.json.encode(payload).decode()


def open_envelope(text: str) -> Summary:
    """Read the plain form. `BrokenCompaction` says what is wrong with it."""
    try:
        payload = msgspec.json.decode(text, type=_Payload)
    except UNREADABLE:
        raise BrokenCompaction(_FOREIGN) from None
    if payload.type != KIND or payload.version != VERSION:
        raise BrokenCompaction(f"its type is {payload.type!r} in version {payload.version}, which is not known here")
    if not payload.summary.strip():
        raise BrokenCompaction("its summary is empty")
    return Summary(payload.summary, tuple(item for kept in payload.retained for item in _items(kept)))


def _kept(item: Item) -> _Kept | None:
    match item:
        case Message():
            return _Kept(role=item.role, content=item.text, images=_images(item.content))
        case Reasoning():
            return _Kept(role="assistant", thinking=item.text)
        case ToolCall():
            return _Kept(role="assistant", tool_calls=[_call(item)])
        case ToolResult():
            return _Kept(
                role="tool",
                content=item.text,
                images=_images(item.content),
                tool_name=item.name or "",
                tool_call_id=item.call_id,
            )
        case _:
            return None


def _call(call: ToolCall) -> _Call:
    try:
        arguments = json.loads(flat_arguments(call))
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):  # Cut off by a limit once; kept as the text that it is.
        arguments = {"input": call.arguments}
    return _Call(id=call.call_id, function=_Function(name=flat_name(call), arguments=arguments))


def _images(content: tuple[Part, ...]) -> list[str]:
    return [base64.b64encode(part.data).decode() for part in content if isinstance(part, Image)]


def _items(kept: _Kept) -> list[Item]:
    """Return what a retained message says, as items."""
    content = _content(kept)
    if kept.role == "tool":
        return [ToolResult(call_id=kept.tool_call_id, content=content, name=kept.tool_name or None)]
    role = _role(kept.role)
    items: list[Item] = [Reasoning(kept.thinking)] if kept.thinking else []
    if content:
        items.append(Message(role=role, content=content))
    items += [
        ToolCall(
            call_id=call.id,
            name=call.function.name,
            arguments=json.dumps(call.function.arguments, ensure_ascii=False, separators=(",", ":")),
        )
        for call in kept.tool_calls
    ]
    return items


def _content(kept: _Kept) -> tuple[Part, ...]:
    parts: list[Part] = [Text(kept.content)] if kept.content else []
    for data in kept.images:
        try:
            parts.append(image_of(base64.b64decode(data, validate=True)))
        except ValueError as error:  # No base64, not even ASCII; or no image.
            raise BrokenCompaction(f"an image in it cannot be read: {error}") from None
    return tuple(parts)


def _role(role: str) -> Role:
    match role:
        case "system" | "developer" | "user" | "assistant":
            return role
        case _:
            raise BrokenCompaction(f"a message in it has the role {role!r}")
