"""Tools and calls on the wire.

Neighbours: `messages` reads the calls of a history, `replies` writes the calls of an answer.

Invariant: what goes out is an object in `arguments`, whatever the model wrote.
"""

from __future__ import annotations

from typing import Any

import msgspec

from diglot.core.allowance import Allowance, Toolbox
from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.foreign import UNREADABLE
from diglot.core.items import ToolCall
from diglot.core.request import ToolSpec
from diglot.core.schema import loosened


class ToolFunctionBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """A function that the client can run; `parameters` is a JSON schema of an object."""

    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ToolBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool. A bare function without its envelope is read as well: some clients send it."""

    type: str | None = None
    function: ToolFunctionBody | None = None
    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None
    items: Any = None


class CallFunctionBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call calls. `arguments` is an object; a text that holds one is read as well."""

    name: str | None = None
    arguments: dict[str, Any] | str | None = None
    index: int | None = None


class CallBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call in the history."""

    function: CallFunctionBody | None = None
    id: str | None = None
    type: str | None = None


class CallFunctionReply(msgspec.Struct, frozen=True):
    """What the model calls; `index` counts the calls of one answer."""

    index: int
    name: str
    arguments: dict[str, Any]


class CallReply(msgspec.Struct, frozen=True):
    """A call of an answer."""

    id: str
    function: CallFunctionReply


def tools_of(bodies: list[ToolBody] | None, allowance: Allowance) -> tuple[ToolSpec, ...]:
    """Return the declared tools. Raises InvalidField, UnsupportedField and TooMany."""
    toolbox = Toolbox(allowance)
    toolbox.admit(len(bodies or ()), field="tools")
    return tuple(toolbox.take(_tool(body, f"tools[{index}]"), field="tools") for index, body in enumerate(bodies or ()))


def _tool(body: ToolBody, field: str) -> ToolSpec:
    if body.type not in (None, "", "function"):
        raise UnsupportedField(f"{field}.type", f'tools of type "{body.type}" are not known, only "function"')
    function, inside = body.function, f"{field}.function"
    if function is None:
        function, inside = ToolFunctionBody(body.name, body.description, body.parameters), field
    if not function.name:
        raise InvalidField(f"{inside}.name", "a tool needs a name")
    return ToolSpec(
        name=function.name,
        description=function.description or "",
        parameters=loosened(function.parameters or {}, f"{inside}.parameters"),
    )


def arguments_of(function: CallFunctionBody, field: str) -> str:
    """Return the arguments of a call in the history as JSON text of an object."""
    value = function.arguments
    if isinstance(value, str):
        if not value.strip():
            return "{}"
        try:
            value = msgspec.json.decode(value, type=dict[str, Any])
        except UNREADABLE as error:
            raise InvalidField(f"{field}.arguments", "the text holds no JSON object") from error
    return msgspec.json.encode(value or {}).decode()


def call_reply(call: ToolCall, index: int) -> CallReply:
    """Write a call. Arguments that are no JSON object stand under `input`, so that nothing is lost."""
    try:
        if call.kind == "freeform":
            raise ValueError
        arguments = msgspec.json.decode(call.arguments or "{}", type=dict[str, Any])
    except (ValueError, RecursionError):
        arguments = {"input": call.arguments}
    return CallReply(id=call.call_id, function=CallFunctionReply(index=index, name=call.name, arguments=arguments))
