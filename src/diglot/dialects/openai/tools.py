"""Tools: what a client declares, what it allows, and the calls that come back, in OpenAI's form.

Both generations of the form are spoken: `tools` with `tool_choice`, and the older `functions` with
`function_call`, which allows one call in an answer. Neighbours: `chat`, `core.tools` (what a model sees of them).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Annotated, Any, Literal

import msgspec

from diglot.core.allowance import Allowance, Toolbox
from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.items import ToolCall
from diglot.core.patterns import InvalidPattern, UnsupportedPattern, check_pattern
from diglot.core.request import Schema, ToolChoice, ToolMode, ToolSpec
from diglot.core.schema import check_schema, loosened
from diglot.core.tools import flat_name

UNHELD = "a custom tool has a grammar, to which its text is not held"
_UNIT = re.compile(r"\\.|/", re.DOTALL)
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class FunctionBody(msgspec.Struct):
    """A function: `parameters` is the JSON schema of its arguments."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionToolBody(msgspec.Struct, tag_field="type", tag="function"):
    """A tool that takes JSON."""

    function: FunctionBody


class TextFormatBody(msgspec.Struct, tag_field="type", tag="text"):
    """Any text."""


class GrammarBody(msgspec.Struct):
    """A grammar that the text of a custom tool follows."""

    definition: str
    syntax: Literal["lark", "regex"]


class GrammarFormatBody(msgspec.Struct, tag_field="type", tag="grammar"):
    """Text under a grammar."""

    grammar: GrammarBody


class CustomBody(msgspec.Struct):
    """A custom tool."""

    name: Name
    description: str | None = None
    format: TextFormatBody | GrammarFormatBody | None = None


class CustomToolBody(msgspec.Struct, tag_field="type", tag="custom"):
    """A tool that takes plain text."""

    custom: CustomBody


ToolBody = FunctionToolBody | CustomToolBody


class NameBody(msgspec.Struct):
    """A tool by its name."""

    name: str


class FunctionChoiceBody(msgspec.Struct, tag_field="type", tag="function"):
    """This function."""

    function: NameBody


class CustomChoiceBody(msgspec.Struct, tag_field="type", tag="custom"):
    """This custom tool."""

    custom: NameBody


class AllowedToolsBody(msgspec.Struct):
    """Some of the declared tools."""

    mode: Literal["auto", "required"]
    tools: list[FunctionChoiceBody | CustomChoiceBody]


class AllowedChoiceBody(msgspec.Struct, tag_field="type", tag="allowed_tools"):
    """One of these tools, or none where the mode is `auto`."""

    allowed_tools: AllowedToolsBody


ToolChoiceBody = Literal["auto", "none", "required"] | FunctionChoiceBody | CustomChoiceBody | AllowedChoiceBody
FunctionCallBody = Literal["auto", "none"] | NameBody


class CalledFunctionReply(msgspec.Struct, frozen=True):
    """A call of a function; `arguments` is JSON text."""

    name: str
    arguments: str


class CalledCustomReply(msgspec.Struct, frozen=True):
    """A call of a custom tool."""

    name: str
    input: str


class ToolCallReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call, whole. `index` counts the calls of one answer and is there in a stream only."""

    index: int | None = None
    id: str
    type: Literal["function", "custom", ""] = ""
    function: CalledFunctionReply | None = None
    custom: CalledCustomReply | None = None


def specs_of(
    tools: Sequence[ToolBody] | None, functions: Sequence[FunctionBody] | None, allowance: Allowance
) -> tuple[ToolSpec, ...]:
    """Return the declared tools. Raises InvalidField for a name that is there twice and for bad schemas, and TooMany."""
    toolbox = Toolbox(allowance)
    field = "tools" if tools else "functions"
    toolbox.admit(len(tools or ()) + len(functions or ()), field=field)
    specs = chain(
        (_spec(tool, f"tools[{index}]") for index, tool in enumerate(tools or ())),
        (function_spec(each, f"functions[{index}]") for index, each in enumerate(functions or ())),
    )
    declared = [toolbox.take(spec, field=field) for spec in specs]
    names: set[str] = set()
    for spec in declared:
        if spec.name in names:
            raise InvalidField("tools", f"the name {spec.name!r} is declared twice")
        names.add(spec.name)
    return tuple(declared)


def _spec(tool: ToolBody, path: str) -> ToolSpec:
    if isinstance(tool, FunctionToolBody):
        return function_spec(tool.function, f"{path}.function")
    custom = tool.custom
    grammar = custom.format.grammar if isinstance(custom.format, GrammarFormatBody) else None
    return ToolSpec(
        name=custom.name,
        description=custom.description or "",
        kind="freeform",
        grammar=lark_of(grammar, f"{path}.custom.format.grammar.definition") if grammar else None,
    )


def function_spec(function: FunctionBody, path: str) -> ToolSpec:
    """Return a function. Raises InvalidField and UnsupportedField for its schema."""
    field = f"{path}.parameters"
    parameters: Schema = function.parameters or {}
    if function.strict:
        check_schema(parameters, field)
    else:
        parameters = loosened(parameters, field)
    if parameters.get("type", "object") != "object":
        raise InvalidField(f"{field}.type", "the arguments of a function are an object")
    return ToolSpec(
        name=function.name, description=function.description or "", parameters=parameters, strict=function.strict
    )


def lark_of(grammar: GrammarBody, field: str) -> str:
    """Return the grammar in Lark's language. Raises InvalidField and UnsupportedField for a pattern."""
    if grammar.syntax == "lark":
        return grammar.definition
    try:
        check_pattern(grammar.definition)
    except InvalidPattern as error:
        raise InvalidField(field, str(error)) from None
    except UnsupportedPattern as error:
        raise UnsupportedField(field, str(error)) from None
    return "start: /" + _UNIT.sub(lambda unit: "\\/" if unit[0] == "/" else unit[0], grammar.definition) + "/"


def choice_of(
    choice: ToolChoiceBody | None, function_call: FunctionCallBody | None, specs: Sequence[ToolSpec]
) -> ToolChoice:
    """Return which tools may be called. Raises InvalidField where a choice names or needs what is not declared."""
    match choice:
        case FunctionChoiceBody():
            return named([choice.function.name], specs, field="tool_choice.function.name")
        case CustomChoiceBody():
            return named([choice.custom.name], specs, field="tool_choice.custom.name")
        case AllowedChoiceBody():
            allowed = choice.allowed_tools
            names = [
                each.function.name if isinstance(each, FunctionChoiceBody) else each.custom.name
                for each in allowed.tools
            ]
            return named(names, specs, field="tool_choice.allowed_tools.tools", mode=ToolMode(allowed.mode))
        case "required" if not specs:
            raise InvalidField("tool_choice", "a call is required, but no tools are declared")
        case str():
            return ToolChoice(ToolMode(choice))
        case None:
            pass
    if isinstance(function_call, NameBody):
        return named([function_call.name], specs, field="function_call.name")
    return ToolChoice(ToolMode(function_call or "auto"))


def named(
    names: Sequence[str], specs: Sequence[ToolSpec], *, field: str, mode: ToolMode = ToolMode.REQUIRED
) -> ToolChoice:
    """Return a choice among some of the tools. Raises InvalidField for one that is not declared, and for none."""
    declared = {name for spec in specs for name in (spec.name, flat_name(spec))}
    for name in names:
        if name not in declared:
            raise InvalidField(field, f"no tool with the name {name!r} is declared")
    if not names:
        raise InvalidField(field, "must name at least one tool")
    return ToolChoice(mode, names=tuple(names))


def call_reply(call: ToolCall, index: int | None = None) -> ToolCallReply:
    """Return a call as it goes out."""
    if call.kind == "freeform":
        custom = CalledCustomReply(name=call.name, input=call.arguments)
        return ToolCallReply(index=index, id=call.call_id, type="custom", custom=custom)
    return ToolCallReply(index=index, id=call.call_id, type="function", function=function_reply(call))


def function_reply(call: ToolCall) -> CalledFunctionReply:
    """Return a call in the older form, which has no id."""
    return CalledFunctionReply(name=call.name, arguments=call.arguments or "{}")
