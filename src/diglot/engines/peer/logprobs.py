"""Log-probabilities, from either form in which servers send them.

Chat completions hold a list of tokens; plain completions hold parallel lists, except llama.cpp's, which
use the first form for both. Neighbours: `answer`.
"""

from __future__ import annotations

from diglot.core.events import Alternative, TokenLogprob
from diglot.engines.peer.chunks import LogprobsChunk, TokenChunk


def token_logprobs(chunk: LogprobsChunk) -> list[TokenLogprob]:
    """Return the tokens of a chunk."""
    if chunk.content is not None:
        return [_token(token) for token in chunk.content]
    tokens, logprobs = chunk.tokens or [], chunk.token_logprobs or []
    tops = chunk.top_logprobs or [None] * len(tokens)
    return [
        TokenLogprob(
            token=token,
            logprob=logprob or 0.0,
            bytes=token.encode(),
            top=tuple(Alternative(name, value, name.encode()) for name, value in (top or {}).items()),
        )
        for token, logprob, top in zip(tokens, logprobs, tops, strict=False)
    ]


def _token(chunk: TokenChunk) -> TokenLogprob:
    top = tuple(Alternative(each.token, each.logprob, _bytes(each.bytes, each.token)) for each in chunk.top_logprobs)
    return TokenLogprob(chunk.token, chunk.logprob, _bytes(chunk.bytes, chunk.token), top)


def _bytes(numbers: list[int] | None, token: str) -> bytes:
    return bytes(numbers) if numbers is not None else token.encode()
