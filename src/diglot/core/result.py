"""Results: what is left when a stream of events has ended, and the answers that never stream.

Values only. Neighbours: `core.assemble` makes a `Result` out of events, dialects render it.
"""

from __future__ import annotations

import msgspec

from diglot.core.events import Reason, Timings, TokenLogprob, Usage
from diglot.core.items import ToolCall


class Choice(msgspec.Struct, frozen=True):
    """One answer, whole."""

    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    logprobs: tuple[TokenLogprob, ...]
    reason: Reason


class Result(msgspec.Struct, frozen=True):
    """All answers to one request, in the order of their index; `model` is the full name of what answered."""

    choices: tuple[Choice, ...]
    usage: Usage
    timings: Timings
    model: str


class Embedded(msgspec.Struct, frozen=True):
    """Vectors in the order of the inputs, and what they cost. `total_ns` and `load_ns` are in nanoseconds."""

    vectors: tuple[tuple[float, ...], ...]
    input_tokens: int
    model: str
    total_ns: int = 0
    load_ns: int = 0
