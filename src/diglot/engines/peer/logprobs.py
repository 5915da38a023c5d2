"""Log-probabilities, from either form in which servers send them.

Chat completions hold a list of tokens; plain completions hold parallel lists, except llama.cpp's, which
use the first form for both. Neighbours: `answer`.
"""

from __future__ import annotations

from diglot.core.events import Alternative, TokenLogprob
from diglot.engines.peer.chunks import LogprobsChunk, TokenChunk


def token_logprobs(chunk: LogprobsChunk, *, shown: int) -> list[TokenLogprob]:
    """Return the tokens of a chunk, each with as many alternatives as are to be shown."""
    if chunk.content is not None:
        return [_token(token, shown) for token in chunk.content]
    tokens, logprobs = chunk.tokens or [], chunk.token_logprobs or []
    tops = chunk.top_logprobs or [None] * len(tokens)
    return [
        TokenLogprob(
            token=token,
            logprob=logprob or 0.0,
            bytes=token.encode(),
            top=tuple(Alternative(name, value, name.encode()) for name, value in list((top or {}).items())[:shown]),
        )
        for token, logprob, top in zip(tokens, logprobs, tops, strict=False)
    ]


def _token(chunk: TokenChunk, shown: int) -> TokenLogprob:
    top = tuple(
        Alternative(each.token, each.logprob, _bytes(each.bytes, each.token)) for each in chunk.top_logprobs[:shown]
    )
    return TokenLogprob(chunk.token, chunk.logprob, _bytes(chunk.bytes, chunk.token), top)


def _bytes(numbers: list[int] | None, token: str) -> bytes:
    return bytes(number & 0xFF for number in numbers) if numbers is not None else token.encode()
