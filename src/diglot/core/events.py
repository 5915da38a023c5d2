"""Events: what a request becomes.

An engine yields them, services pass them on, dialects render them; nobody looks back. They say what
happened, not how it looks on the wire. Neighbours: `core.assemble` folds them into a `Result`.

A request that moves a model becomes `Step`s instead, which no answer holds.

Invariant of a stream: `Progress`* `Compacted`? `Started`, then deltas and finished calls, then one `Finished` for
each choice; nothing follows the last `Finished`. `Started` is the commit point: every fault that can
still be a status code is raised before it. A later fault is raised out of the stream.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from diglot.core.digest import Digest
from diglot.core.items import Compaction, Message, ToolCall

Bytes = bytes  # So that a field can bear the name that every protocol gives it.
Reason = Literal["stop", "length", "tool_calls", "load", "unload"]


class Usage(msgspec.Struct, frozen=True):
    """Token counts. `input` counts the whole prompt, `cached` the part of it that was not computed anew."""

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input + self.output

    def plus(self, other: Usage) -> Usage:
        """Return the sum with another answer to the same prompt: the prompt is counted once."""
        return Usage(
            input=max(self.input, other.input),
            output=self.output + other.output,
            cached=max(self.cached, other.cached),
            reasoning=self.reasoning + other.reasoning,
        )


class Timings(msgspec.Struct, frozen=True):
    """Durations in nanoseconds: everything, waiting for the model to load, prefill, decode."""

    total: int = 0
    load: int = 0
    prefill: int = 0
    decode: int = 0


class Alternative(msgspec.Struct, frozen=True):
    """A token that could have stood here, its natural log-probability and its bytes."""

    token: str
    logprob: float
    bytes: Bytes


class TokenLogprob(msgspec.Struct, frozen=True):
    """A token of the answer, with its natural log-probability and the likeliest alternatives."""

    token: str
    logprob: float
    bytes: Bytes
    top: tuple[Alternative, ...] = ()


class Progress(msgspec.Struct, frozen=True):
    """The prompt is being read: `done` of its `total` tokens, 0 when unknown."""

    done: int = 0
    total: int = 0


class Started(msgspec.Struct, frozen=True):
    """The engine has taken the request. `model` is the full name of what answers."""

    input_tokens: int
    model: str = ""


class TextDelta(msgspec.Struct, frozen=True):
    """More of the answer: whole characters, never empty unless it carries log-probabilities."""

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()
    choice: int = 0


class ReasoningDelta(msgspec.Struct, frozen=True):
    """More of the reasoning."""

    text: str
    choice: int = 0


class ToolCallDone(msgspec.Struct, frozen=True):
    """A call, whole."""

    call: ToolCall
    choice: int = 0


class Finished(msgspec.Struct, frozen=True):
    """A choice has ended. `usage` and `timings` are those of this choice."""

    reason: Reason
    usage: Usage = Usage()
    timings: Timings = Timings()
    choice: int = 0


class Compacted(msgspec.Struct, frozen=True):
    """The conversation was folded up.

    `item` stands for what was folded; `kept` are the user's messages, which stay as they are. `before` and
    `after` are the tokens of the whole prompt; `usage` is what the making cost.
    """

    item: Compaction
    kept: tuple[Message, ...]
    before: int
    after: int
    usage: Usage = Usage()


Stage = Literal["find", "receive", "send", "convert", "reuse", "make", "verify", "write", "tidy", "done"]


class Step(msgspec.Struct, frozen=True):
    """What is being done while a model is moved or made: the only event of such a request, many times over.

    `find` looks for the model's manifest; `receive` and `send` move the content `digest`, of which `completed`
    of `total` bytes are there; `convert` makes one format of another; `reuse` and `make` name a content that was
    there and one that was not; `verify` checks what came; `write` gives the model its name, here or there; `tidy`
    drops what nothing needs any more; `done` comes last, once, and only if all went well. `subject` is the name of
    what is moved where it has no digest yet.
    """

    stage: Stage
    digest: Digest | None = None
    total: int = 0
    completed: int = 0
    subject: str = ""


Event = Progress | Compacted | Started | TextDelta | ReasoningDelta | ToolCallDone | Finished
