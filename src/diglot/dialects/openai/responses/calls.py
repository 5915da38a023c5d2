"""Calls: the kinds of call that this protocol has words of its own for, in both directions.

The model makes all of them as functions with JSON arguments. Here those become the action, the operation or the
arguments that a client expects, and back again. A small model's arguments may be anything; what comes out is
always of the right form, and what is missing in it is for the client to complain of.
Neighbours: `items` reads and `output` writes; `tools` declares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from diglot.core.foreign import UNREADABLE
from diglot.core.items import CallKind, ToolCall

SEARCH: Final = "tool_search"
SHELL: Final = "shell"
LOCAL_SHELL: Final = "local_shell"
PATCH: Final = "apply_patch"
NAMES: Final[Mapping[CallKind, str]] = {"search": SEARCH, "shell": SHELL, "local_shell": LOCAL_SHELL, "patch": PATCH}
"""What the model calls each of them."""

Status = Literal["in_progress", "completed", "incomplete"]
_OPERATIONS: Final = ("create_file", "update_file", "delete_file")
_OBJECT = msgspec.json.Decoder(dict[str, Any])


class FunctionCallReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="function_call"):
    """A call of a function. A namespace stands apart from the name."""

    id: str
    call_id: str
    name: str
    arguments: str
    status: Status
    namespace: str | msgspec.UnsetType = msgspec.UNSET


class CustomCallReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="custom_tool_call"):
    """A call of a tool that takes text."""

    id: str
    call_id: str
    name: str
    input: str
    status: Status
    namespace: str | msgspec.UnsetType = msgspec.UNSET


class SearchCallReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="tool_search_call"):
    """A search for tools, which the client makes."""

    id: str
    call_id: str
    execution: Literal["client"] = "client"
    arguments: dict[str, Any]
    status: Status


class LocalShellActionReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="exec"):
    """One command, as its words."""

    command: list[str]
    env: dict[str, str]
    timeout_ms: int | None = None
    user: str | None = None
    working_directory: str | None = None


class LocalShellCallReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="local_shell_call"):
    """A command for the client's shell."""

    id: str
    call_id: str
    action: LocalShellActionReply
    status: Status


class ShellActionReply(msgspec.Struct, frozen=True, kw_only=True):
    """Commands, each a line for the shell."""

    commands: list[str]
    timeout_ms: int | None = None
    max_output_length: int | None = None


class ShellCallReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="shell_call"):
    """Commands for the client's shell."""

    id: str
    call_id: str
    action: ShellActionReply
    status: Status
    environment: None = None


class OperationReply(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one file."""

    type: str
    path: str
    diff: str | msgspec.UnsetType = msgspec.UNSET


class PatchCallReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="apply_patch_call"):
    """A change of one file, which the client makes."""

    id: str
    call_id: str
    operation: OperationReply
    status: Status


CallReply = (
    FunctionCallReply | CustomCallReply | SearchCallReply | LocalShellCallReply | ShellCallReply | PatchCallReply
)
_PREFIXES: Final[Mapping[CallKind, str]] = {
    "function": "fc",
    "freeform": "ctc",
    "search": "tsc",
    "local_shell": "lsh",
    "shell": "sh",
    "patch": "apc",
}


def prefix_of(call: ToolCall) -> str:
    """Return what the ids of such calls begin with."""
    return _PREFIXES[call.kind]


def call_reply(call: ToolCall, *, id: str, status: Status = "completed") -> CallReply:  # noqa: A002
    """Return a call as it goes out."""
    namespace = call.namespace or msgspec.UNSET
    match call.kind:
        case "function":
            return FunctionCallReply(
                id=id,
                call_id=call.call_id,
                name=call.name,
                arguments=call.arguments or "{}",
                status=status,
                namespace=namespace,
            )
        case "freeform":
            return CustomCallReply(
                id=id, call_id=call.call_id, name=call.name, input=call.arguments, status=status, namespace=namespace
            )
        case "search":
            return SearchCallReply(id=id, call_id=call.call_id, arguments=_object(call.arguments), status=status)
        case "local_shell":
            action = _local_action(_object(call.arguments))
            return LocalShellCallReply(id=id, call_id=call.call_id, action=action, status=status)
        case "shell":
            return ShellCallReply(id=id, call_id=call.call_id, action=_action(_object(call.arguments)), status=status)
        case "patch":
            operation = _operation(_object(call.arguments))
            return PatchCallReply(id=id, call_id=call.call_id, operation=operation, status=status)


def begun_reply(call: ToolCall, *, id: str) -> CallReply:  # noqa: A002
    """Return a call as it stands before its arguments have come."""
    empty = ToolCall(call_id=call.call_id, name=call.name, arguments="", namespace=call.namespace, kind=call.kind)
    if call.kind == "function":
        begun = call_reply(empty, id=id, status="in_progress")
        return msgspec.structs.replace(begun, arguments="")
    return call_reply(call if call.kind == "patch" else empty, id=id, status="in_progress")


def _object(text: str) -> dict[str, Any]:
    try:
        return _OBJECT.decode(text)
    except UNREADABLE:
        return {}


def _local_action(given: dict[str, Any]) -> LocalShellActionReply:
    command = given.get("command")
    env = given.get("env")
    return LocalShellActionReply(
        command=["bash", "-lc", command] if isinstance(command, str) else _texts(command),
        env={name: str(value) for name, value in env.items()} if isinstance(env, dict) else {},
        timeout_ms=_whole(given.get("timeout_ms")),
        user=_text(given.get("user")),
        working_directory=_text(given.get("working_directory")),
    )


def _action(given: dict[str, Any]) -> ShellActionReply:
    commands = given.get("commands")
    return ShellActionReply(
        commands=[commands] if isinstance(commands, str) else _texts(commands),
        timeout_ms=_whole(given.get("timeout_ms")),
        max_output_length=_whole(given.get("max_output_length")),
    )


def _operation(given: dict[str, Any]) -> OperationReply:
    kind = given.get("type")
    kind = kind if kind in _OPERATIONS else "update_file"
    diff = _text(given.get("diff")) or ""
    return OperationReply(
        type=kind, path=_text(given.get("path")) or "", diff=msgspec.UNSET if kind == "delete_file" else diff
    )


def _texts(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
