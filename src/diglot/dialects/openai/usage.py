"""Usage: what an answer cost, in OpenAI's words."""

from __future__ import annotations

import msgspec

from diglot.core.events import Usage


class PromptDetailsReply(msgspec.Struct, frozen=True):
    """Of the prompt: the tokens that were not computed anew."""

    cached_tokens: int


class CompletionDetailsReply(msgspec.Struct, frozen=True):
    """Of the answer: the tokens of its reasoning."""

    reasoning_tokens: int


class UsageReply(msgspec.Struct, frozen=True):
    """Tokens. The prompt is counted once for all choices."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetailsReply
    completion_tokens_details: CompletionDetailsReply


def usage_reply(usage: Usage) -> UsageReply:
    """Return the counts as they go out."""
    return UsageReply(
        prompt_tokens=usage.input,
        completion_tokens=usage.output,
        total_tokens=usage.total,
        prompt_tokens_details=PromptDetailsReply(cached_tokens=usage.cached),
        completion_tokens_details=CompletionDetailsReply(reasoning_tokens=usage.reasoning),
    )
