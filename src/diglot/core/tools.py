"""Tools as a model sees them: their names, what they may be called with, and the text that lists them.

A model knows one flat list of functions. Namespaces and freeform tools are flattened for it here and taken
apart again here. What a model writes back as text is read in `core.salvage`; a call that must be made is
forced through the schemas made here. Engines' own `tool_choice` is deliberately not relied on: measured on
small models it is ignored or rambles, while a bounded schema always holds (docs/engines.md).

Invariant: `restore` undoes `flat_name` for every declared tool.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from diglot.core.bounding import bounded, refers, rerooted
from diglot.core.errors import InvalidField
from diglot.core.foreign import UNREADABLE
from diglot.core.items import ToolCall
from diglot.core.request import Generation, Schema, ToolMode, ToolSpec
from diglot.core.schema import MAX_ALTERNATIVES

_MOST_CALLS: Final = 8
_LONGEST_NAME: Final = 64  # What OpenAI's protocol allows, and so the strictest server behind us.
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_FREEFORM: Final[Schema] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class WrittenCall(msgspec.Struct, frozen=True):
    """A call before it has an id: the flat name, and the arguments as JSON text of an object."""

    name: str
    arguments: str


def flat_name(tool: ToolSpec | ToolCall) -> str:
    """Return the name that the model sees: the namespace and the name, joined by `__`.

    Where that could be read in two ways, is too long or has odd characters, a digest of both makes it unique.
    A name without a namespace is the client's own choice and stays.
    """
    if not tool.namespace:
        return tool.name
    space = tool.namespace.removesuffix("__")
    name = f"{space}__{tool.name}"
    clear = "__" not in tool.name and not tool.name.startswith("_") and not space.endswith("_")
    if clear and len(name) <= _LONGEST_NAME and not _ODD.search(name):
        return name
    digest = hashlib.sha256(f"{space}\0{tool.name}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_ODD.sub('_', name)[: _LONGEST_NAME - len(digest) - 1]}_{digest}"


def flat_parameters(tool: ToolSpec) -> Schema:
    """Return the schema of the arguments that the model writes; a freeform tool takes one string."""
    if tool.kind == "freeform":
        return _FREEFORM
    return tool.parameters or {"type": "object", "properties": {}}


def flat_arguments(call: ToolCall) -> str:
    """Return the arguments of a call in history as JSON text of an object, as the model would have written them.

    Those that were cut off are shown as text: templates read arguments and fail on half an object.
    """
    if not call.arguments and call.kind != "freeform":
        return "{}"
    if call.kind != "freeform" and _is_object(call.arguments):
        return call.arguments
    return json.dumps({"input": call.arguments}, ensure_ascii=False)


def _is_object(text: str) -> bool:
    try:
        _OBJECT.decode(text)
    except UNREADABLE:
        return False
    return True


def callable_tools(request: Generation) -> tuple[ToolSpec, ...]:
    """Return the declared tools that this request lets the model call.

    Raises InvalidField when two different tools would have the same name for the model.
    """
    seen: dict[str, ToolSpec] = {}
    for tool in request.tools:
        other = seen.setdefault(flat_name(tool), tool)
        if (other.namespace, other.kind) != (tool.namespace, tool.kind):
            raise InvalidField("tools", f"two of them are called {flat_name(tool)!r} for the model")
    choice = request.tool_choice
    if choice.mode is ToolMode.NONE:
        return ()
    if choice.names is None:
        return request.tools
    return tuple(tool for tool in request.tools if tool.name in choice.names or flat_name(tool) in choice.names)


def restore(written: WrittenCall, *, tools: Iterable[ToolSpec], call_id: str) -> ToolCall:
    """Return the call in the client's terms: namespace and name apart, a freeform tool's bare input.

    A namespaced tool is also found by its bare name, where only one has it, and by the two joined with a dot.
    """
    tool = _called(written.name, tuple(tools))
    if tool is None:
        return ToolCall(call_id=call_id, name=written.name, arguments=written.arguments)
    return ToolCall(
        call_id=call_id,
        name=tool.name,
        arguments=_freeform_input(written.arguments) if tool.kind == "freeform" else written.arguments,
        namespace=tool.namespace,
        kind=tool.kind,
    )


def _called(name: str, tools: tuple[ToolSpec, ...]) -> ToolSpec | None:
    exact = next((tool for tool in tools if flat_name(tool) == name), None)
    if exact is not None:
        return exact
    near = [tool for tool in tools if tool.namespace and name in {tool.name, f"{tool.namespace}.{tool.name}"}]
    return near[0] if len(near) == 1 else None


def _freeform_input(arguments: str) -> str:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    match value:
        case {"input": str(text)}:
            return text
        case _:
            return arguments


def forced_schema(tools: tuple[ToolSpec, ...], *, parallel: bool, tokens: int | None = None) -> Schema:
    """Return the bounded schema of an answer that is nothing but a call.

    One tool: its arguments. Several: `{"name", "arguments"}` of any of them. `parallel` allows up to
    eight in one answer, as an array. `tokens` is how long the answer may be.
    Raises InvalidField where the parameters of a tool are no object's, and for more tools than can be chosen between.
    """
    if len(tools) > MAX_ALTERNATIVES:
        raise InvalidField("tools", f"a call of one of more than {MAX_ALTERNATIVES} cannot be forced")
    if len(tools) == 1 and not parallel:
        return bounded(_object_parameters(tools[0]), tokens=tokens)
    definitions: dict[str, Any] = {}
    calls = {"anyOf": [_named(tool, definitions) for tool in tools]}
    schema: dict[str, Any] = calls
    if parallel:
        schema = {"type": "array", "items": calls, "minItems": 1, "maxItems": _MOST_CALLS}
    return bounded({**schema, "$defs": definitions} if definitions else schema, tokens=tokens)


def _object_parameters(tool: ToolSpec) -> Schema:
    """Return the parameters, said to be an object's where they do not say so themselves."""
    parameters = flat_parameters(tool)
    kinds = parameters.get("type")
    if kinds == "object" or (kinds is None and {"$ref", "anyOf", "oneOf", "allOf"} & parameters.keys()):
        return parameters
    if kinds is None or (isinstance(kinds, list) and "object" in kinds):
        return {**parameters, "type": "object"}
    raise InvalidField("tools", f"the parameters of {tool.name!r} must be of type object")


def _named(tool: ToolSpec, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a call by name. Parameters with references become a definition, which they then point into."""
    parameters = _object_parameters(tool)
    if refers(parameters):
        key = f"arguments_{len(definitions)}"
        definitions[key] = rerooted(parameters, f"#/$defs/{key}")
        parameters = {"$ref": f"#/$defs/{key}"}
    return {
        "type": "object",
        "properties": {"name": {"const": flat_name(tool)}, "arguments": parameters},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def forced_calls(text: str, tools: tuple[ToolSpec, ...], *, parallel: bool) -> tuple[WrittenCall, ...]:
    """Read an answer made under `forced_schema`. Empty when it was cut off: half a call is no call."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    if len(tools) == 1 and not parallel:
        value = {"name": flat_name(tools[0]), "arguments": value}
    names = set(map(flat_name, tools))
    made = value if isinstance(value, list) else [value]
    return tuple(
        WrittenCall(call["name"], argument_text(call["arguments"]))
        for call in made
        if isinstance(call, dict) and _is_call(call.get("name"), call.get("arguments")) and call["name"] in names
    )


def tool_list_text(tools: Iterable[ToolSpec]) -> str:
    """Return the system text that lists tools for a model whose chat template knows none."""
    lines = [
        json.dumps(
            {"name": flat_name(tool), "description": tool.description, "parameters": flat_parameters(tool)},
            ensure_ascii=False,
        )
        for tool in tools
    ]
    return (
        "You can call the functions below. Each line describes one as JSON.\n<tools>\n"
        + "\n".join(lines)
        + "\n</tools>\nTo call a function, answer with this and nothing else, once for each call:\n"
        '<tool_call>{"name": "the name", "arguments": {"the": "arguments"}}</tool_call>\n'
        "When no function is needed, answer in plain text."
    )


def written_calls(calls: Iterable[ToolCall]) -> str:
    """Return calls of the history as text, in the form that `tool_list_text` asks for."""
    return "\n".join(
        f'<tool_call>{{"name": {json.dumps(flat_name(call))}, "arguments": {flat_arguments(call)}}}</tool_call>'
        for call in calls
    )


def _is_call(name: Any, arguments: Any) -> bool:
    return isinstance(name, str) and isinstance(arguments, dict)


def argument_text(arguments: dict[str, Any]) -> str:
    """Return arguments as JSON text. Halves of a surrogate pair, which no UTF-8 can hold, become question marks."""
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()
