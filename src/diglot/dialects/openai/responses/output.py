"""Output: items as they go out, in an answer and when what was sent is shown again.

Neighbours: `calls` for the calls, `stream` writes the same items piece by piece, `stored` shows inputs.
Invariant: an item that was not understood goes out byte for byte as it came in.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, assert_never

import msgspec

from diglot.core.events import Compacted, TokenLogprob
from diglot.core.images import url_of
from diglot.core.items import (
    CallKind,
    Compaction,
    File,
    Image,
    Item,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from diglot.dialects.openai.logprobs import TokenLogprobReply, token_logprobs
from diglot.dialects.openai.responses.calls import CallReply, Status, call_reply, prefix_of
from diglot.dialects.openai.responses.ids import item_id


class OutputTextReply(msgspec.Struct, frozen=True, tag_field="type", tag="output_text"):
    """A stretch of an answer."""

    text: str
    annotations: list[Any] = []
    logprobs: list[TokenLogprobReply] = []


class InputTextReply(msgspec.Struct, frozen=True, tag_field="type", tag="input_text"):
    """Text that a client sent."""

    text: str


class InputImageReply(msgspec.Struct, frozen=True, tag_field="type", tag="input_image"):
    """A picture that a client sent."""

    image_url: str
    detail: Literal["auto"] = "auto"


class InputFileReply(msgspec.Struct, frozen=True, tag_field="type", tag="input_file"):
    """A document that a client sent."""

    filename: str
    file_data: str


PartReply = OutputTextReply | InputTextReply | InputImageReply | InputFileReply


class MessageReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """What somebody said."""

    id: str
    status: Status = "completed"
    role: Role
    content: list[PartReply]
    phase: str | msgspec.UnsetType = msgspec.UNSET


class SummaryTextReply(msgspec.Struct, frozen=True, tag_field="type", tag="summary_text"):
    """Reasoning, shown as its summary."""

    text: str


class ReasoningTextReply(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning_text"):
    """Reasoning as it was."""

    text: str


class ReasoningReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="reasoning"):
    """What the model thought. Its text stands open, in one place or the other; nothing of ours is encrypted."""

    id: str
    summary: list[SummaryTextReply]
    content: list[ReasoningTextReply] | msgspec.UnsetType = msgspec.UNSET
    encrypted_content: str | msgspec.UnsetType = msgspec.UNSET
    status: Status = "completed"


class CompactionReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="compaction"):
    """A stretch of conversation, folded up."""

    id: str
    encrypted_content: str


ItemReply = MessageReply | ReasoningReply | CompactionReply | CallReply


def message_reply(
    text: str,
    *,
    id: str,  # noqa: A002
    status: Status = "completed",
    logprobs: Sequence[TokenLogprob] = (),
) -> MessageReply:
    """Return a message of the model."""
    part = OutputTextReply(text, logprobs=token_logprobs(logprobs))
    return MessageReply(id=id, status=status, role="assistant", content=[part])


def reasoning_reply(text: str, *, id: str, open_text: bool, status: Status = "completed") -> ReasoningReply:  # noqa: A002
    """Return a thought: as reasoning text where `open_text`, else as a summary."""
    if open_text:
        return ReasoningReply(id=id, summary=[], content=[ReasoningTextReply(text)], status=status)
    return ReasoningReply(id=id, summary=[SummaryTextReply(text)], status=status)


def compaction_reply(item: Compaction, *, id: str) -> CompactionReply:  # noqa: A002
    """Return a compaction."""
    return CompactionReply(id=id, encrypted_content=item.payload)


def output_replies(
    items: Sequence[Item],
    *,
    response: str,
    open_text: bool,
    logprobs: Sequence[TokenLogprob] = (),
    cut: bool = False,
    compacted: Compacted | None = None,
) -> list[ItemReply]:
    """Return what a model made, whole. `cut`: the last thing was not finished; `compacted` comes before all."""
    tokens = _Tokens(logprobs)
    folded: list[Item] = [compacted.item] if compacted else []
    made: list[ItemReply] = []
    for place, item in enumerate([*folded, *items]):
        last = place == len(folded) + len(items) - 1
        status: Status = "incomplete" if cut and last else "completed"
        match item:
            case Message():
                id_ = item_id("msg", response, place)
                made.append(message_reply(item.text, id=id_, status=status, logprobs=tokens.of(item.text)))
            case Reasoning():
                id_ = item_id("rs", response, place)
                made.append(reasoning_reply(item.text, id=id_, status=status, open_text=open_text))
            case ToolCall():
                made.append(call_reply(item, id=item_id(prefix_of(item), response, place)))
            case Compaction():
                made.append(compaction_reply(item, id=item_id("cmp", response, place)))
            case ToolResult() | Opaque():
                pass  # No model makes these.
            case _:
                assert_never(item)
    return made


class _Tokens:
    """Shares the tokens of an answer out to its messages, by their bytes."""

    def __init__(self, tokens: Sequence[TokenLogprob]) -> None:
        self._tokens = list(tokens)
        self._next = 0

    def of(self, text: str) -> list[TokenLogprob]:
        left, begin = len(text.encode()), self._next
        while left > 0 and self._next < len(self._tokens):
            left -= len(self._tokens[self._next].bytes)
            self._next += 1
        return self._tokens[begin : self._next]


def input_replies(items: Sequence[Item], response: str) -> Iterator[Any]:
    """Yield what a client sent, in full: a message has its parts, every item an id."""
    for place, item in enumerate(items):
        yield _input_reply(item, response, f"in{place}")


def _input_reply(item: Item, response: str, place: str) -> Any:
    match item:
        case Message():
            content = [_part(part, answer=item.role == "assistant") for part in item.content]
            phase = item.phase or msgspec.UNSET
            return MessageReply(
                id=item.id or item_id("msg", response, place), role=item.role, content=content, phase=phase
            )
        case Reasoning():
            summary = [SummaryTextReply(item.text)] if item.text else []
            id_ = item.id or item_id("rs", response, place)
            return ReasoningReply(id=id_, summary=summary, encrypted_content=item.sealed or msgspec.UNSET)
        case ToolCall():
            return call_reply(item, id=item.id or item_id(prefix_of(item), response, place))
        case ToolResult():
            return result_reply(item, id=item.id or item_id(f"{_RESULTS[item.kind][1]}", response, place))
        case Compaction():
            return compaction_reply(item, id=item.id or item_id("cmp", response, place))
        case Opaque():
            return msgspec.Raw(item.raw.encode())
        case _:
            assert_never(item)


_RESULTS: Final[Mapping[CallKind, tuple[str, str]]] = {
    "function": ("function_call_output", "fco"),
    "freeform": ("custom_tool_call_output", "ctco"),
    "search": ("tool_search_output", "tso"),
    "shell": ("shell_call_output", "sho"),
    "local_shell": ("local_shell_call_output", "lsho"),
    "patch": ("apply_patch_call_output", "apco"),
}


def result_reply(item: ToolResult, *, id: str) -> dict[str, Any]:  # noqa: A002
    """Return what a call gave back, in the form of its kind."""
    kind, _ = _RESULTS[item.kind]
    head: dict[str, Any] = {"type": kind, "id": id, "call_id": item.call_id}
    match item.kind:
        case "search":
            return {**head, "execution": "client", "status": "completed", "tools": _raw(item.text, "[]")}
        case "shell":
            return {**head, "status": "completed", "output": _raw(item.text, "[]")}
        case "patch":
            return {**head, "status": "completed", **msgspec.json.decode(item.text, type=dict[str, str | None])}
        case "local_shell":
            return {**head, "id": item.call_id, "status": "completed", "output": item.text}
        case _:
            plain = all(isinstance(part, Text) for part in item.content)
            output: Any = item.text if plain else [_part(part, answer=False) for part in item.content]
            named = {"name": item.name} if item.name else {}
            return {**head, **named, "status": "completed", "output": output}


def _raw(text: str, otherwise: str) -> msgspec.Raw:
    return msgspec.Raw((text or otherwise).encode())


def _part(part: Part, *, answer: bool) -> PartReply:
    match part:
        case Text():
            return OutputTextReply(part.text) if answer else InputTextReply(part.text)
        case Image():
            return InputImageReply(url_of(part))
        case File():
            return InputFileReply(filename=part.name, file_data=_data_url(part))
        case _:
            assert_never(part)


def _data_url(part: File) -> str:
    return f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"
