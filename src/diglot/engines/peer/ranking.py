"""Ranking: documents scored by a server.

Neighbours: `client` asks, `counting` counts where a server only says that it failed.

Invariant: one score for each document, in the order of the documents.
"""

from __future__ import annotations

import msgspec

from diglot.core.errors import ContextExceeded, EngineFailed, UpstreamFailed
from diglot.core.request import Rerank
from diglot.core.result import Ranked
from diglot.engines.peer.client import Peer
from diglot.engines.peer.counting import tokens


class _Row(msgspec.Struct):
    index: int
    relevance_score: float


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    total_tokens: int = 0


class _Rows(msgspec.Struct):
    results: list[_Row]
    usage: _Usage = msgspec.field(default_factory=_Usage)


async def rerank(peer: Peer, request: Rerank, *, window: int) -> Ranked:
    """Score all documents. Raises ContextExceeded for one that is longer than `window` together with the query."""
    body = {"model": peer.target.model, "query": request.query, "documents": request.documents}
    try:
        rows = await peer.call("/v1/rerank", body, reply_type=_Rows)
    except (ContextExceeded, EngineFailed, UpstreamFailed):
        if not peer.target.host.counts:
            raise
        longest = await _longest(peer, request)  # llama.cpp says "too long" as a plain failure here.
        if longest <= window:
            raise
        raise ContextExceeded(tokens=longest, window=window) from None
    scores = {row.index: row.relevance_score for row in rows.results}
    if scores.keys() != set(range(len(request.documents))):
        raise peer.blame.failed(f"it gave {len(scores)} scores for {len(request.documents)} documents")
    return Ranked(
        scores=tuple(scores[place] for place in range(len(request.documents))),
        input_tokens=rows.usage.prompt_tokens or rows.usage.total_tokens,
        model=peer.blame.model,
    )


async def _longest(peer: Peer, request: Rerank) -> int:
    query = len(await tokens(peer, request.query))
    return query + max([len(await tokens(peer, document)) for document in request.documents])
