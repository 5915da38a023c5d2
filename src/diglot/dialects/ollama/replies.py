"""The answers of `/api/chat` and `/api/generate`: one line of a stream, or the whole.

Both endpoints say the same things under different names; `Form` is what differs. A whole answer is the last
line of a stream that holds everything. Neighbours: `lines` streams, `tools` writes the calls.

Invariant: durations of a finished answer are never 0, for Ollama's CLI divides by them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from diglot.core.events import Finished, Reason, Timings, TokenLogprob, Usage
from diglot.core.items import ToolCall
from diglot.core.result import Result
from diglot.dialects.ollama.timestamps import rfc3339
from diglot.dialects.ollama.tools import CallReply, call_reply
from diglot.dialects.operation import Rendered, Stamp


class AlternativeReply(msgspec.Struct, frozen=True):
    """A token that could have stood here."""

    token: str
    logprob: float
    bytes: list[int]


class LogprobReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token of the answer and its alternatives."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[AlternativeReply] | None = None


class MessageReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the model says, or a piece of it."""

    role: str
    content: str
    thinking: str | None = None
    tool_calls: list[CallReply] | None = None


class ChatReply(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An answer of `/api/chat`, or a line of one. Durations are in nanoseconds."""

    model: str
    created_at: str
    message: MessageReply
    done: bool
    done_reason: str | None = None
    logprobs: list[LogprobReply] | None = None
    total_duration: int | None = None
    load_duration: int | None = None
    prompt_eval_count: int | None = None
    prompt_eval_cached_count: int | None = None
    prompt_eval_duration: int | None = None
    eval_count: int | None = None
    eval_duration: int | None = None


class GenerateReply(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An answer of `/api/generate`, or a line of one. Durations are in nanoseconds."""

    model: str
    created_at: str
    response: str
    thinking: str | None = None
    tool_calls: list[CallReply] | None = None
    done: bool
    done_reason: str | None = None
    context: list[int] | None = None
    logprobs: list[LogprobReply] | None = None
    total_duration: int | None = None
    load_duration: int | None = None
    prompt_eval_count: int | None = None
    prompt_eval_cached_count: int | None = None
    prompt_eval_duration: int | None = None
    eval_count: int | None = None
    eval_duration: int | None = None


class Said(msgspec.Struct, frozen=True):
    """What a line holds of the answer. `first_call` is the index of its first call."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    first_call: int = 0
    logprobs: tuple[TokenLogprob, ...] = ()

    @property
    def call_replies(self) -> list[CallReply] | None:
        """The calls on the wire."""
        return [call_reply(call, index) for index, call in enumerate(self.calls, self.first_call)] or None


Form = Callable[..., Any]
"""Makes a line out of `model`, `created_at`, `said`, `done`, and what `ending` returns."""


def chat_form(said: Said, **rest: Any) -> ChatReply:
    """Write a line of `/api/chat`."""
    message = MessageReply("assistant", said.text, said.thinking or None, said.call_replies)
    return ChatReply(message=message, logprobs=_logprobs(said.logprobs), **rest)


def generate_form(said: Said, **rest: Any) -> GenerateReply:
    """Write a line of `/api/generate`."""
    return GenerateReply(
        response=said.text,
        thinking=said.thinking or None,
        tool_calls=said.call_replies,
        logprobs=_logprobs(said.logprobs),
        **rest,
    )


def ending(reason: Reason, usage: Usage, timings: Timings) -> dict[str, Any]:
    """Return what the last line says of the whole: why it ended, and after loading alone nothing more."""
    done = {"done": True, "done_reason": "stop" if reason == "tool_calls" else reason}
    if reason in ("load", "unload"):
        return done
    return {
        **done,
        "total_duration": max(timings.total, 1),
        "load_duration": max(timings.load, 1),
        "prompt_eval_count": usage.input,
        "prompt_eval_cached_count": usage.cached,
        "prompt_eval_duration": max(timings.prefill, 1),
        "eval_count": usage.output,
        "eval_duration": max(timings.decode, 1),
    }


def ending_of(event: Finished) -> dict[str, Any]:
    """Return the same for an event."""
    return ending(event.reason, event.usage, event.timings)


def whole(form: Form, model: str | None, *, stamp: Stamp, result: Result, **more: Any) -> Rendered:
    """Write a whole answer. Without a name in the request, the model is called by its own."""
    choice = result.choices[0]
    said = Said(choice.text, choice.reasoning, choice.calls, logprobs=choice.logprobs)
    end = ending(choice.reason, result.usage, result.timings)
    reply = form(said, model=model or result.model, created_at=rfc3339(stamp.now), **end, **more)
    return Rendered(msgspec.json.encode(reply))


def _logprobs(tokens: Sequence[TokenLogprob]) -> list[LogprobReply] | None:
    return [
        LogprobReply(
            token=each.token,
            logprob=each.logprob,
            bytes=list(each.bytes),
            top_logprobs=[AlternativeReply(top.token, top.logprob, list(top.bytes)) for top in each.top] or None,
        )
        for each in tokens
    ] or None
