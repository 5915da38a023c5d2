"""Tools: what a client declares in this protocol, and what it allows of it.

Functions and custom tools are those of chat with their fields one level higher. A namespace holds some of them. The
shells, patching and the search for tools are run by the client too, and the model calls them as functions. What only
OpenAI's own servers could run is left out and told of, for every agent declares some of it.

Neighbours: `calls` for the calls that come of it, `dialects.openai.tools` for functions and grammars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from diglot.core.allowance import Toolbox
from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.request import Schema, ToolChoice, ToolMode, ToolSpec
from diglot.core.tools import flat_name
from diglot.dialects.openai.responses.calls import LOCAL_SHELL, PATCH, SEARCH, SHELL
from diglot.dialects.openai.responses.raw import kind_of, read
from diglot.dialects.openai.tools import FunctionBody, GrammarBody, Name, function_spec, lark_of, named

_ELSEWHERE: Final = ("web_search", "file_search", "code_interpreter", "image_generation", "computer", "mcp")
"""How the kinds begin that OpenAI's servers run; some go on with a date. What else a client writes is in no log."""


class FormatBody(msgspec.Struct):
    """How the text of a custom tool looks: anything, or what a grammar allows."""

    type: Literal["text", "grammar"]
    definition: str | None = None
    syntax: Literal["lark", "regex"] | None = None


class CustomBody(msgspec.Struct):
    """A tool that takes text."""

    name: Name
    description: str | None = None
    format: FormatBody | None = None


class NamespaceBody(msgspec.Struct):
    """Tools under a common name."""

    name: Name
    tools: list[msgspec.Raw]
    description: str | None = None


class SearchBody(msgspec.Struct):
    """A search for tools. Where the server is to make it there is nothing to find: all tools are there."""

    description: str | None = None
    execution: Literal["server", "client"] | None = None
    parameters: dict[str, Any] | None = None


class Declared(msgspec.Struct, frozen=True):
    """The tools that a model may call, and the kinds that were left out."""

    specs: tuple[ToolSpec, ...] = ()
    left_out: tuple[str, ...] = ()


_FUNCTION = msgspec.json.Decoder(FunctionBody)
_CUSTOM = msgspec.json.Decoder(CustomBody)
_NAMESPACE = msgspec.json.Decoder(NamespaceBody)
_SEARCH = msgspec.json.Decoder(SearchBody)


def _object(required: Sequence[str], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_TEXTS: Final = {"type": "array", "items": {"type": "string"}}
_PLAIN: Final[Mapping[str, ToolSpec]] = {
    "local_shell": ToolSpec(
        name=LOCAL_SHELL,
        kind="local_shell",
        description="Runs one command on the user's machine and returns its output.",
        parameters=_object(
            ["command"],
            command={**_TEXTS, "description": 'The words of the command, such as ["ls", "-l"].'},
            working_directory={"type": "string"},
            timeout_ms={"type": "integer", "minimum": 1},
        ),
    ),
    "shell": ToolSpec(
        name=SHELL,
        kind="shell",
        description="Runs command lines in the user's shell and returns their output and exit codes.",
        parameters=_object(
            ["commands"],
            commands={**_TEXTS, "minItems": 1, "description": "Command lines; they may run at the same time."},
            timeout_ms={"type": "integer", "minimum": 1},
            max_output_length={"type": "integer", "minimum": 1},
        ),
    ),
    "apply_patch": ToolSpec(
        name=PATCH,
        kind="patch",
        description="Creates, updates or deletes one file.",
        parameters=_object(
            ["type", "path"],
            type={"enum": ["create_file", "update_file", "delete_file"]},
            path={"type": "string", "description": "The file, relative to the working directory."},
            diff={
                "type": "string",
                "description": "Hunks that begin with @@, each line with a blank, + or - before it. None to delete.",
            },
        ),
    ),
}
_QUERY: Final = _object(["query"], query={"type": "string", "description": "What the tool should do."})


def declared(tools: Sequence[msgspec.Raw], toolbox: Toolbox, *, field: str) -> Declared:
    """Read tools. Raises InvalidField, also for a name that is there twice, UnsupportedField and TooMany."""
    toolbox.admit(len(tools), field=field)
    specs: list[ToolSpec] = []
    left_out: list[str] = []
    for index, raw in enumerate(tools):
        made, unknown = _declared(raw, f"{field}[{index}]")
        specs += (toolbox.take(spec, field=field) for spec in made)
        left_out += unknown
    names: set[str] = set()
    for spec in specs:
        name = flat_name(spec)
        if name in names:
            raise InvalidField(field, f"the name {name!r} is declared twice")
        names.add(name)
    return Declared(tuple(specs), tuple(dict.fromkeys(left_out)))


def _declared(raw: msgspec.Raw, path: str) -> tuple[Iterable[ToolSpec], tuple[str, ...]]:
    """Return the tools that one declaration makes, read as they are taken, and the kinds that are left out."""
    kind = kind_of(raw, path)
    match kind:
        case "function" | "custom":
            return (_MEMBERS[kind](raw, path),), ()
        case "namespace":
            return _namespace(raw, path), ()
        case "local_shell" | "shell" | "apply_patch":
            return (_PLAIN[kind],), ()
        case "tool_search":
            search = read(raw, _SEARCH, path)
            if search.execution != "client":
                return (), (SEARCH,)
            description = search.description or "Searches for tools that can be called afterwards."
            parameters = search.parameters or _QUERY
            return (ToolSpec(name=SEARCH, kind="search", description=description, parameters=parameters),), ()
        case None:
            raise InvalidField(f"{path}.type", "is required")
        case _:
            return (), (next((known for known in _ELSEWHERE if kind.startswith(known)), "unknown"),)


def _namespace(raw: msgspec.Raw, path: str) -> Iterable[ToolSpec]:
    space = read(raw, _NAMESPACE, path)
    for index, member in enumerate(space.tools):
        where = f"{path}.tools[{index}]"
        kind = kind_of(member, where)
        if kind not in _MEMBERS:
            raise InvalidField(f"{where}.type", "a namespace holds functions and custom tools")
        yield msgspec.structs.replace(_MEMBERS[kind](member, where), namespace=space.name)


def _function(raw: msgspec.Raw, path: str) -> ToolSpec:
    return function_spec(read(raw, _FUNCTION, path), path)


def _custom(raw: msgspec.Raw, path: str) -> ToolSpec:
    custom = read(raw, _CUSTOM, path)
    grammar = None
    if custom.format is not None and custom.format.type == "grammar":
        if custom.format.definition is None:
            raise InvalidField(f"{path}.format.definition", "is required")
        body = GrammarBody(definition=custom.format.definition, syntax=custom.format.syntax or "lark")
        grammar = lark_of(body, f"{path}.format.definition")
    return ToolSpec(name=custom.name, description=custom.description or "", kind="freeform", grammar=grammar)


_MEMBERS: Final[Mapping[str | None, Callable[[msgspec.Raw, str], ToolSpec]]] = {
    "function": _function,
    "custom": _custom,
}


class ChosenBody(msgspec.Struct):
    """One tool, by its kind and its name."""

    type: str
    name: str | None = None
    namespace: str | None = None


class ChoiceBody(ChosenBody):
    """One tool, or `allowed_tools`: some of them."""

    mode: Literal["auto", "required"] = "auto"
    tools: list[ChosenBody] | None = None


ToolChoiceBody = Literal["auto", "none", "required"] | ChoiceBody
_BY_KIND: Final = {"shell": SHELL, "local_shell": LOCAL_SHELL, "apply_patch": PATCH, "tool_search": SEARCH}


def choice_of(choice: ToolChoiceBody | None, specs: Sequence[ToolSpec]) -> ToolChoice:
    """Return which tools may be called. Raises InvalidField for one that is not declared, UnsupportedField for hosted ones."""
    match choice:
        case None:
            return ToolChoice()
        case "required" if not specs:
            raise InvalidField("tool_choice", "a call is required, but no tools are declared that can be called here")
        case str():
            return ToolChoice(ToolMode(choice))
        case ChoiceBody(type="allowed_tools"):
            names = [name for each in choice.tools or () if (name := _name(each, specs)) is not None]
            return named(names, specs, field="tool_choice.tools", mode=ToolMode(choice.mode))
        case ChoiceBody():
            name = _name(choice, specs)
            if name is None:
                raise UnsupportedField("tool_choice.type", f"no tool of the kind {choice.type!r} is run here")
            return named([name], specs, field="tool_choice.name")


def _name(choice: ChosenBody, specs: Sequence[ToolSpec]) -> str | None:
    """Return the name of a chosen tool, None where only OpenAI's servers run it."""
    if choice.type in ("function", "custom"):
        if not choice.name:
            raise InvalidField("tool_choice.name", "is required")
        for spec in specs:
            if choice.namespace and (spec.namespace, spec.name) == (choice.namespace, choice.name):
                return flat_name(spec)
        return choice.name
    return _BY_KIND.get(choice.type)
