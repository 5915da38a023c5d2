"""The response object: all of its keys, always, for there are clients that miss each of them.

`EchoReply` is what the client chose, with OpenAI's defaults where it chose nothing; `View` is that and what else the
renderers need, and it is stored with the response, so that it can be shown again. Neighbours: `output`, `stream`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from diglot.core.events import Usage
from diglot.core.result import Status, Stored
from diglot.dialects.openai.responses.ids import response_id
from diglot.dialects.openai.responses.output import output_replies
from diglot.dialects.operation import Stamp

encode = msgspec.json.Encoder().encode


class InputDetailsReply(msgspec.Struct, frozen=True):
    """Of the prompt: what was not computed anew. Nothing is written to a cache that anybody pays for."""

    cached_tokens: int
    cache_write_tokens: int = 0


class OutputDetailsReply(msgspec.Struct, frozen=True):
    """Of the answer: its reasoning."""

    reasoning_tokens: int


class UsageReply(msgspec.Struct, frozen=True):
    """Tokens."""

    input_tokens: int
    input_tokens_details: InputDetailsReply
    output_tokens: int
    output_tokens_details: OutputDetailsReply
    total_tokens: int


class ErrorReply(msgspec.Struct, frozen=True):
    """Why a response failed."""

    code: str
    message: str


class IncompleteReply(msgspec.Struct, frozen=True):
    """Why a response is not complete."""

    reason: Literal["max_output_tokens"] = "max_output_tokens"


class EchoReply(msgspec.Struct, frozen=True, kw_only=True):
    """What the client chose."""

    model: str = ""
    background: bool = False
    frequency_penalty: float = 0.0
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    metadata: Any = msgspec.field(default_factory=dict)
    parallel_tool_calls: bool = True
    presence_penalty: float = 0.0
    previous_response_id: str | None = None
    prompt_cache_key: str | None = None
    reasoning: Any = None
    safety_identifier: str | None = None
    service_tier: str = "default"
    store: bool = True
    temperature: float = 1.0
    text: Any = None
    tool_choice: Any = "auto"
    tools: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"[]"))
    top_logprobs: int = 0
    top_p: float = 1.0
    truncation: Literal["auto", "disabled"] = "disabled"
    user: str | None = None


class ResponseReply(EchoReply, frozen=True, kw_only=True):
    """A response."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    status: Status
    error: ErrorReply | None = None
    incomplete_details: IncompleteReply | None = None
    output: list[Any]
    usage: UsageReply | None = None


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What the renderers need. `open_text`: reasoning is shown as it was made, and not as a summary."""

    echo: EchoReply = EchoReply()
    open_text: bool = False


_VIEW = msgspec.json.Decoder(View)


def usage_reply(usage: Usage) -> UsageReply:
    """Return the counts as they go out."""
    return UsageReply(
        input_tokens=usage.input,
        input_tokens_details=InputDetailsReply(cached_tokens=usage.cached),
        output_tokens=usage.output,
        output_tokens_details=OutputDetailsReply(reasoning_tokens=usage.reasoning),
        total_tokens=usage.total,
    )


def response_reply(
    view: View,
    stamp: Stamp,
    *,
    status: Status,
    model: str = "",
    output: Sequence[Any] = (),
    usage: Usage | None = None,
    finished: float | None = None,
    error: ErrorReply | None = None,
) -> ResponseReply:
    """Return the response that began with `stamp`, as it stands. `model` is what answers, where the client named none."""
    chosen = msgspec.structs.asdict(view.echo)
    chosen["model"] = chosen["model"] or model
    return ResponseReply(
        **chosen,
        id=response_id(stamp.id),
        created_at=int(stamp.now),
        completed_at=None if finished is None or status != "completed" else int(max(finished, stamp.now)),
        status=status,
        error=error,
        incomplete_details=IncompleteReply() if status == "incomplete" else None,
        output=list(output),
        usage=None if usage is None else usage_reply(usage),
    )


def stored_reply(stored: Stored) -> ResponseReply:
    """Return a response that was stored."""
    view = _VIEW.decode(stored.echo) if stored.echo else View()
    result = stored.result
    choice = result.choices[0] if result and result.choices else None
    output = output_replies(
        choice.items if choice else (),
        response=stored.id,
        open_text=view.open_text,
        logprobs=choice.logprobs if choice else (),
        cut=stored.status in ("incomplete", "failed", "cancelled"),
        compacted=result.compacted if result else None,
    )
    return response_reply(
        view,
        Stamp(id=stored.id, now=stored.created),
        status=stored.status,
        model=result.model if result else "",
        output=output,
        usage=result.usage if result else None,
        finished=stored.finished,
        error=ErrorReply("server_error", stored.fault[1]) if stored.fault else None,
    )
