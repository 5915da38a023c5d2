"""Chunks: what comes back from an OpenAI-compatible server, as far as it is used here.

Typed structs that pick a few fields and skip the rest: a chunk costs half a microsecond this way. The names
are the wire's. Sources: OpenAI's chat completion chunk; llama.cpp's additions `timings`, `prompt_progress`;
vLLM's `reasoning`. Neighbours: `answer` makes events of them.
"""

from __future__ import annotations

import msgspec


class FunctionChunk(msgspec.Struct, gc=False):
    """A piece of a call: the name comes once, the arguments in pieces."""

    name: str | None = None
    arguments: str | None = None


class CallChunk(msgspec.Struct, gc=False):
    """A piece of the call number `index`, which some servers leave out."""

    index: int | None = None
    id: str | None = None
    function: FunctionChunk | None = None


class DeltaChunk(msgspec.Struct, gc=False):
    """A piece of a message."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[CallChunk] | None = None


class AlternativeChunk(msgspec.Struct, gc=False):
    """A token that could have been."""

    token: str
    logprob: float
    bytes: list[int] | None = None


class TokenChunk(msgspec.Struct, gc=False):
    """A token that is."""

    token: str
    logprob: float
    bytes: list[int] | None = None
    top_logprobs: list[AlternativeChunk] = []


class LogprobsChunk(msgspec.Struct, gc=False):
    """`content` in chat completions, and for llama.cpp in plain ones; the rest in plain completions elsewhere."""

    content: list[TokenChunk] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None


class ChoiceChunk(msgspec.Struct, gc=False):
    """A piece of one choice: `delta` in chat completions, `text` in plain ones."""

    delta: DeltaChunk | None = None
    text: str | None = None
    logprobs: LogprobsChunk | None = None
    finish_reason: str | None = None


class CachedChunk(msgspec.Struct, gc=False):
    """How much of the prompt was in the cache."""

    cached_tokens: int | None = None


class ReasonedChunk(msgspec.Struct, gc=False):
    """How much of the answer was reasoning."""

    reasoning_tokens: int | None = None


class UsageChunk(msgspec.Struct, gc=False):
    """Token counts."""

    prompt_tokens: int = 0
    completion_tokens: int | None = None
    prompt_tokens_details: CachedChunk | None = None
    completion_tokens_details: ReasonedChunk | None = None


class TimingsChunk(msgspec.Struct, gc=False):
    """llama.cpp's own clock, in milliseconds, and the tokens of the prompt: in the cache, and computed anew."""

    cache_n: int = 0
    prompt_n: int = 0
    prompt_ms: float = 0.0
    predicted_ms: float = 0.0


class ProgressChunk(msgspec.Struct, gc=False):
    """llama.cpp's prefill so far, in tokens; `cache` of `processed` were not computed anew."""

    total: int
    processed: int
    cache: int = 0


class ErrorChunk(msgspec.Struct, gc=False):
    """An error in place of a chunk; `faults` reads the rest of it."""

    code: int | str | None = None


class Chunk(msgspec.Struct, gc=False):
    """One event of the stream."""

    choices: list[ChoiceChunk] = []
    usage: UsageChunk | None = None
    timings: TimingsChunk | None = None
    prompt_progress: ProgressChunk | None = None
    error: ErrorChunk | None = None


decode_chunk = msgspec.json.Decoder(Chunk).decode
