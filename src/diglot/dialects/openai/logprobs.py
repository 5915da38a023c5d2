"""Log-probabilities in both of OpenAI's forms: the one of chat, and the older one of completions."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from diglot.core.events import Alternative, TokenLogprob

_LEAST = -9999.0  # What OpenAI writes for "as good as never"; JSON has no infinity.


class TopLogprobReply(msgspec.Struct, frozen=True):
    """A token that could have stood here."""

    token: str
    logprob: float
    bytes: list[int]


class TokenLogprobReply(msgspec.Struct, frozen=True):
    """A token of the answer; `bytes` matter where a character is spread over several tokens."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprobReply]


class ChatLogprobsReply(msgspec.Struct, frozen=True):
    """The tokens of an answer."""

    content: list[TokenLogprobReply]
    refusal: None = None


class TextLogprobsReply(msgspec.Struct, frozen=True):
    """The older form: parallel lists. `text_offset` counts characters from the beginning of the text."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


def token_logprobs(tokens: Sequence[TokenLogprob]) -> list[TokenLogprobReply]:
    """Return tokens with what they weigh."""
    return [
        TokenLogprobReply(
            token=each.token,
            logprob=_finite(each.logprob),
            bytes=list(each.bytes),
            top_logprobs=[_top(other) for other in each.top],
        )
        for each in tokens
    ]


def chat_logprobs(tokens: Sequence[TokenLogprob]) -> ChatLogprobsReply | None:
    """Return the form of chat, None where there are no tokens."""
    return ChatLogprobsReply(content=token_logprobs(tokens)) if tokens else None


def text_logprobs(tokens: Sequence[TokenLogprob], *, offset: int = 0) -> TextLogprobsReply | None:
    """Return the form of completions, None where there are no tokens. The first token begins at `offset`."""
    if not tokens:
        return None
    offsets: list[int] = []
    for each in tokens:
        offsets.append(offset)
        offset += len(each.token)
    return TextLogprobsReply(
        tokens=[each.token for each in tokens],
        token_logprobs=[_finite(each.logprob) for each in tokens],
        top_logprobs=[_by_token(each) for each in tokens],
        text_offset=offsets,
    )


def _by_token(token: TokenLogprob) -> dict[str, float]:
    """Return the alternatives by their text, the likeliest first, and the token that was drawn."""
    table: dict[str, float] = {}
    for each in token.top:
        table.setdefault(each.token, _finite(each.logprob))
    table.setdefault(token.token, _finite(token.logprob))
    return table


def _top(other: Alternative) -> TopLogprobReply:
    return TopLogprobReply(token=other.token, logprob=_finite(other.logprob), bytes=list(other.bytes))


def _finite(logprob: float) -> float:
    return max(_LEAST, logprob)  # In this order also where it is no number.
