"""The catalog that Codex reads beside OpenAI's list: what each model can do and how long its window is.

Codex asks for it once, when it starts (docs/codex.md). Without it Codex believes that a model it does not know has a
window of 272,000 tokens, and sends a prompt of its own that alone fills a small one. What stands here as the window is
the one that is served.

Invariant: every field is there whose absence Codex takes for an error at its start.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from diglot.core.model import Model

_INSTRUCTIONS: Final = (
    "You are a coding agent in the user's terminal. Work in small steps: look before you change anything, use the tools "
    "that you are given, and read their output before the next step. Change files with apply_patch. Do what was asked "
    "and no more, do not guess at paths or results, and go on until it is done. Say what you did in a few plain sentences."
)
_COMPACT_AT: Final = 0.7
"""The share of the window at which Codex compacts."""
_OUTPUT_LIMIT: Final = 10_000
_OUTPUT_SHARE: Final = 8
"""One part in so many of the window is what one output of a tool may bring. Codex looks at the fill only between two answers,
and a prompt that is longer than the window ends its turn: so one more output must always fit above `_COMPACT_AT`, even if
it has twice as many tokens as Codex believes (four bytes each)."""


class EffortReply(msgspec.Struct, frozen=True):
    """A way to think."""

    effort: Literal["low", "medium", "high"]
    description: str


class TruncationReply(msgspec.Struct, frozen=True):
    """How much of a tool's output Codex passes on."""

    limit: int
    mode: Literal["tokens"] = "tokens"


class CodexModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """One model."""

    slug: str
    display_name: str
    description: str
    supported_reasoning_levels: list[EffortReply]
    default_reasoning_level: Literal["medium"] | None
    shell_type: Literal["shell_command"] = "shell_command"
    visibility: Literal["list"] = "list"
    supported_in_api: bool = True
    priority: int
    base_instructions: str = _INSTRUCTIONS
    supports_reasoning_summaries: bool
    support_verbosity: bool = False
    default_verbosity: None = None
    apply_patch_tool_type: Literal["freeform"] = "freeform"
    truncation_policy: TruncationReply
    supports_parallel_tool_calls: bool = True
    supports_search_tool: bool = False
    context_window: int
    auto_compact_token_limit: int
    experimental_supported_tools: list[Any] = []
    input_modalities: list[Literal["text", "image"]]


_EFFORTS: Final = (
    EffortReply("low", "Thinks briefly."),
    EffortReply("medium", "Thinks as long as it usually does."),
    EffortReply("high", "Thinks at length."),
)


def codex_models(models: tuple[Model, ...]) -> list[CodexModelReply]:
    """Return the models that can chat, the first of them with the highest priority."""
    able = [model for model in models if model.capabilities.completion]
    return [_model(model, place) for place, model in enumerate(able)]


def _model(model: Model, place: int) -> CodexModelReply:
    details, thinks = model.details, model.capabilities.thinking
    window = details.context_length
    facts = (details.parameter_size, details.quantization_level, f"{window} tokens")
    return CodexModelReply(
        slug=model.name,
        display_name=model.name,
        description=", ".join(filter(None, facts)),
        supported_reasoning_levels=list(_EFFORTS) if thinks else [],
        default_reasoning_level="medium" if thinks else None,
        priority=place,
        supports_reasoning_summaries=thinks,
        truncation_policy=TruncationReply(min(_OUTPUT_LIMIT, max(1, window // _OUTPUT_SHARE))),
        context_window=window,
        auto_compact_token_limit=int(window * _COMPACT_AT),
        input_modalities=["text", "image"] if model.capabilities.vision else ["text"],
    )
