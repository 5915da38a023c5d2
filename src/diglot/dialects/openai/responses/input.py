"""Input: what a client sends, item by item, into items of the house.

History comes back through many hands, with keys that are not known here and with nulls; all of it is taken. An item
of a kind that is not known is kept as it is and never shown to a model. Neighbours: `parts` for contents, `tools` for
tools that stand among the items, `output` for the way back.

Invariant: there is one item for each that was sent, at the same place, the trigger left aside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from diglot.core.allowance import Toolbox
from diglot.core.errors import InvalidField, MalformedBody, UnsupportedField
from diglot.core.foreign import UNREADABLE
from diglot.core.images import LINK
from diglot.core.items import Compaction, Image, Item, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from diglot.core.request import Reference, ToolSpec
from diglot.core.tools import flat_name
from diglot.dialects.openai.body import decode
from diglot.dialects.openai.messages import NO_LINKS
from diglot.dialects.openai.responses.calls import NAMES
from diglot.dialects.openai.responses.ids import reference_of
from diglot.dialects.openai.responses.parts import Content, content_of
from diglot.dialects.openai.responses.raw import absent, is_null, kind_of, read
from diglot.dialects.openai.responses.tools import declared


class MessageBody(msgspec.Struct):
    """What somebody said."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Content = None
    id: str | None = None
    phase: str | None = None


class ThoughtBody(msgspec.Struct):
    """A piece of reasoning."""

    text: str = ""


class ReasoningBody(msgspec.Struct):
    """What a model thought: its text in one place or the other, or another server's sealed form of it."""

    id: str | None = None
    summary: list[ThoughtBody] | None = None
    content: list[ThoughtBody] | None = None
    encrypted_content: str | None = None


class CallBody(msgspec.Struct):
    """A call of any kind; which of the fields hold it depends on the kind."""

    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: Any = None
    input: str | None = None
    action: msgspec.Raw = msgspec.field(default_factory=absent)
    operation: msgspec.Raw = msgspec.field(default_factory=absent)


class ResultBody(msgspec.Struct):
    """What a call gave back."""

    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    output: Content = None


class ShellResultBody(msgspec.Struct):
    """What commands printed, each with its end."""

    call_id: str
    id: str | None = None
    output: msgspec.Raw = msgspec.field(default_factory=absent)


class PatchResultBody(msgspec.Struct):
    """What became of a change of a file."""

    call_id: str
    id: str | None = None
    status: str | None = None
    output: str | None = None


class ToolsBody(msgspec.Struct):
    """Tools among the items: found by a search, or added."""

    id: str | None = None
    call_id: str | None = None
    tools: list[msgspec.Raw] | None = None


class CompactionBody(msgspec.Struct):
    """A stretch of conversation, folded up."""

    encrypted_content: str
    id: str | None = None


class ReferenceBody(msgspec.Struct):
    """An item of a stored response, by its id."""

    id: str


class _Bare(msgspec.Struct):
    role: str | None = None
    id: str | None = None


class Received(msgspec.Struct, frozen=True):
    """The items, the tools that stand among them, where items of stored responses belong, and whether a trigger ends it."""

    items: tuple[Item, ...]
    found: tuple[ToolSpec, ...] = ()
    references: Mapping[int, Reference] = msgspec.field(default_factory=dict)
    trigger: bool = False


_BARE = msgspec.json.Decoder(_Bare)
_MESSAGE = msgspec.json.Decoder(MessageBody)
_REASONING = msgspec.json.Decoder(ReasoningBody)
_CALL = msgspec.json.Decoder(CallBody)
_RESULT = msgspec.json.Decoder(ResultBody)
_SHELL_RESULT = msgspec.json.Decoder(ShellResultBody)
_PATCH_RESULT = msgspec.json.Decoder(PatchResultBody)
_TOOLS = msgspec.json.Decoder(ToolsBody)
_COMPACTION = msgspec.json.Decoder(CompactionBody)
_REFERENCE = msgspec.json.Decoder(ReferenceBody)
_INPUT = msgspec.json.Decoder(str | list[msgspec.Raw] | None)
_TRIGGER: Final = "compaction_trigger"


def received(raw: msgspec.Raw, toolbox: Toolbox) -> Received:
    """Read the input: a text, or items, with their tools for the toolbox.

    Raises InvalidField and UnsupportedField with the place of what is wrong, and TooMany.
    """
    given = _given(raw)
    if isinstance(given, str):
        return Received((Message(role="user", content=(Text(given),)),))
    toolbox.allowance.admit_messages(len(given), field="input", kind="items")
    reading = _Reading(toolbox)
    for index, each in enumerate(given):
        reading.take(each, f"input[{index}]")
    toolbox.allowance.admit_contents(reading.items, field="input")
    return Received(tuple(reading.items), tuple(reading.found), reading.references, reading.trigger)


def _given(raw: msgspec.Raw) -> str | list[msgspec.Raw]:
    try:
        given = decode(bytes(raw), _INPUT)
    except (MalformedBody, InvalidField):
        raise InvalidField("input", "must be a text or a list of items") from None
    return [] if given is None else given


class _Reading:
    """The items so far."""

    def __init__(self, toolbox: Toolbox) -> None:
        self.links = toolbox.allowance.links
        self.toolbox = toolbox
        self.items: list[Item] = []
        self.found: list[ToolSpec] = []
        self.references: dict[int, Reference] = {}
        self.trigger = False

    def take(self, raw: msgspec.Raw, path: str) -> None:
        """Read the next item."""
        if self.trigger:
            raise InvalidField(path, "nothing may stand behind a compaction_trigger")
        kind = kind_of(raw, path) or _kind_unsaid(raw, path)
        if kind == _TRIGGER:
            self.trigger = True
        elif kind in _TOOL_ITEMS:
            self._tools(kind, raw, path)
        elif kind == "item_reference":
            self._reference(raw, path)
        else:
            item = _READERS[kind](raw, path) if kind in _READERS else _opaque(kind, raw, path)
            if not self.links:
                _refuse_links(item, path)
            self.items.append(item)

    def _reference(self, raw: msgspec.Raw, path: str) -> None:
        reference = reference_of(read(raw, _REFERENCE, path).id, field=f"{path}.id")
        if reference is None:
            raise InvalidField(f"{path}.id", "no such item is stored here")
        self.references[len(self.items)] = reference
        self.items.append(_opaque("item_reference", raw, path))

    def _tools(self, kind: str, raw: msgspec.Raw, path: str) -> None:
        body = read(raw, _TOOLS, path)
        specs = declared(body.tools or (), self.toolbox, field=f"{path}.tools").specs
        self.found.extend(specs)
        if kind == "additional_tools":
            self.items.append(_opaque(kind, raw, path))
        else:
            text = msgspec.json.encode([_listed(spec) for spec in specs]).decode()
            call_id = body.call_id or body.id or path
            self.items.append(ToolResult(call_id=call_id, content=(Text(text),), kind="search", id=body.id))


def _refuse_links(item: Item, path: str) -> None:
    """Refuse pictures that would have to be fetched."""
    if isinstance(item, Message | ToolResult):
        field = "content" if isinstance(item, Message) else "output"
        for index, part in enumerate(item.content):
            if isinstance(part, Image) and part.media_type == LINK:
                raise UnsupportedField(f"{path}.{field}[{index}].image_url", NO_LINKS)


_TOOL_ITEMS: Final = frozenset({"tool_search_output", "additional_tools"})


def _listed(spec: ToolSpec) -> dict[str, Any]:
    """Return a found tool as the model is told of it: by the name that it calls it by. How it is called, the prompt says."""
    description = spec.description
    return {"type": "function", "name": flat_name(spec), "description": description, "parameters": None, "strict": None}


def _kind_unsaid(raw: msgspec.Raw, path: str) -> str:
    """Return what an item without a `type` is: a message, or where there is nothing but an id, a reference."""
    bare = read(raw, _BARE, path)
    return "message" if bare.role or not bare.id else "item_reference"


def _opaque(kind: str, raw: msgspec.Raw, path: str) -> Opaque:
    try:
        return Opaque(kind, bytes(raw).decode())
    except UnicodeDecodeError:
        raise InvalidField(path, "must be text in UTF-8") from None


def _message(raw: msgspec.Raw, path: str) -> Item:
    body = read(raw, _MESSAGE, path)
    content = content_of(body.content, f"{path}.content")
    return Message(role=body.role, content=content, id=body.id, phase=body.phase)


def _reasoning(raw: msgspec.Raw, path: str) -> Item:
    body = read(raw, _REASONING, path)
    text = "".join(each.text for each in body.content or ())
    text = text or "\n\n".join(each.text for each in body.summary or ())
    return Reasoning(text=text, id=body.id, sealed=body.encrypted_content or None)


def _compaction(raw: msgspec.Raw, path: str) -> Item:
    body = read(raw, _COMPACTION, path)
    return Compaction(payload=body.encrypted_content, id=body.id, origin=f"{path}.encrypted_content")


def _function_call(raw: msgspec.Raw, path: str) -> Item:
    body = read(raw, _CALL, path)
    arguments = body.arguments if isinstance(body.arguments, str) else _json(body.arguments or {})
    return ToolCall(
        call_id=_call_id(body, path),
        name=_required(body.name, f"{path}.name"),
        arguments=arguments,
        namespace=body.namespace,
        id=body.id,
    )


def _custom_call(raw: msgspec.Raw, path: str) -> Item:
    body = read(raw, _CALL, path)
    return ToolCall(
        call_id=_call_id(body, path),
        name=_required(body.name, f"{path}.name"),
        arguments=body.input or "",
        namespace=body.namespace,
        kind="freeform",
        id=body.id,
    )


def _search_call(raw: msgspec.Raw, path: str) -> Item:
    body = read(raw, _CALL, path)
    arguments = body.arguments if isinstance(body.arguments, str) else _json(body.arguments or {})
    return ToolCall(call_id=_call_id(body, path), name=NAMES["search"], arguments=arguments, kind="search", id=body.id)


def _shell_call(kind: Literal["shell", "local_shell"]) -> Callable[[msgspec.Raw, str], Item]:
    def reading(raw: msgspec.Raw, path: str) -> Item:
        body = read(raw, _CALL, path)
        action = _text(body.action, f"{path}.action")
        return ToolCall(call_id=_call_id(body, path), name=NAMES[kind], arguments=action, kind=kind, id=body.id)

    return reading


def _patch_call(raw: msgspec.Raw, path: str) -> Item:
    body = read(raw, _CALL, path)
    operation = _text(body.operation, f"{path}.operation")
    return ToolCall(call_id=_call_id(body, path), name=NAMES["patch"], arguments=operation, kind="patch", id=body.id)


def _result(kind: Literal["function", "freeform", "local_shell"]) -> Callable[[msgspec.Raw, str], Item]:
    def reading(raw: msgspec.Raw, path: str) -> Item:
        body = read(raw, _RESULT, path)
        name = f"{body.namespace}.{body.name}" if body.namespace and body.name else body.name
        return ToolResult(
            call_id=body.call_id or body.id or path,
            content=content_of(body.output, f"{path}.output"),
            name=name,
            kind=kind,
            id=body.id,
        )

    return reading


def _shell_result(raw: msgspec.Raw, path: str) -> Item:
    body = read(raw, _SHELL_RESULT, path)
    text = _text(body.output, f"{path}.output")
    return ToolResult(call_id=body.call_id, content=(Text(text),), kind="shell", id=body.id)


def _patch_result(raw: msgspec.Raw, path: str) -> Item:
    body = read(raw, _PATCH_RESULT, path)
    text = _json({"status": body.status or "completed", "output": body.output})
    return ToolResult(call_id=body.call_id, content=(Text(text),), kind="patch", id=body.id)


def _call_id(body: CallBody, path: str) -> str:
    return body.call_id or body.id or path


def _required(value: str | None, field: str) -> str:
    if not value:
        raise InvalidField(field, "is required")
    return value


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _text(raw: msgspec.Raw, field: str) -> str:
    """Return JSON as text, of one line."""
    if is_null(raw):
        raise InvalidField(field, "is required")
    try:
        return _json(msgspec.json.decode(bytes(raw)))
    except UNREADABLE:
        raise InvalidField(field, "is no valid JSON") from None


_READERS: Final[Mapping[str, Callable[[msgspec.Raw, str], Item]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "compaction": _compaction,
    "compaction_summary": _compaction,
    "function_call": _function_call,
    "function_call_output": _result("function"),
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _result("freeform"),
    "tool_search_call": _search_call,
    "local_shell_call": _shell_call("local_shell"),
    "local_shell_call_output": _result("local_shell"),
    "shell_call": _shell_call("shell"),
    "shell_call_output": _shell_result,
    "apply_patch_call": _patch_call,
    "apply_patch_call_output": _patch_result,
}
