"""Results: what is left when a stream of events has ended, and the answers that never stream.

Values only. Neighbours: `core.assemble` makes a `Result` out of events, dialects render it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from diglot.core.events import Compacted, Reason, Timings, TokenLogprob, Usage
from diglot.core.items import Item, ToolCall
from diglot.core.model import Model, ModelCard
from diglot.core.request import ToolSpec


class Choice(msgspec.Struct, frozen=True):
    """One answer, whole. `items` is the same in the order in which it came."""

    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    logprobs: tuple[TokenLogprob, ...]
    reason: Reason
    items: tuple[Item, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """All answers to one request, in the order of their index; `model` is the full name of what answered.

    `compacted` tells of the compaction that came first, if there was one.
    """

    choices: tuple[Choice, ...]
    usage: Usage
    timings: Timings
    model: str
    compacted: Compacted | None = None


class Embedded(msgspec.Struct, frozen=True):
    """Vectors in the order of the inputs, and what they cost. `total_ns` and `load_ns` are in nanoseconds."""

    vectors: tuple[tuple[float, ...], ...]
    input_tokens: int
    model: str
    total_ns: int = 0
    load_ns: int = 0


class Ranked(msgspec.Struct, frozen=True):
    """How well each document answers the query, in the order of the documents: the higher the better, on the model's own scale."""

    scores: tuple[float, ...]
    input_tokens: int
    model: str


class Running(msgspec.Struct, frozen=True):
    """A model that is loaded, or loading.

    `memory` is in bytes, all of it and the part on an accelerator. `expires_at` is in seconds since
    the epoch, `inf` for never. `window` is the context window that is served, in tokens. `loaded` is
    how much of it is in memory, from 0.0 to 1.0.
    """

    model: Model
    memory: int
    accelerator_memory: int
    expires_at: float
    window: int
    loaded: float = 1.0


Status = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A response as it is remembered.

    `created` and `finished` are in seconds since the epoch. `input` is what the client sent with it, without
    what came before, and `found` the tools that it brought up. `fault` is why it failed, as the name of the fault's
    kind and its message. `echo` is the dialect's own.
    """

    id: str
    status: Status
    created: float
    input: tuple[Item, ...]
    found: tuple[ToolSpec, ...] = ()
    previous: str | None = None
    finished: float | None = None
    result: Result | None = None
    fault: tuple[str, str] | None = None
    echo: bytes = b""

    @property
    def output(self) -> tuple[Item, ...]:
        """What the answer adds to the conversation."""
        if self.result is None:
            return ()
        folded: tuple[Item, ...] = (self.result.compacted.item,) if self.result.compacted else ()
        return folded + (self.result.choices[0].items if self.result.choices else ())


Answer = Embedded | Ranked | tuple[Model, ...] | tuple[Running, ...] | ModelCard | Stored | int | bool | None
"""What a request that does not stream is answered with."""
