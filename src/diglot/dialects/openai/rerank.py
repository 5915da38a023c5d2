"""POST /v1/rerank: which of some documents answer a query best.

OpenAI has no such operation; this one is that of Jina and Cohere, as llama.cpp and vLLM serve it under this path.

Invariant: `index` is the place of a document in the request, and the best stands first.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.request import Rerank
from diglot.core.result import Ranked
from diglot.dialects.openai.body import decode
from diglot.dialects.openai.chunks import encode
from diglot.dialects.openai.embeddings import EmbeddingUsageReply
from diglot.dialects.openai.sampling import ResidenceBody, residence_of
from diglot.dialects.operation import Operation, Parsed, Rendered, Stamp, Wire


class DocumentBody(msgspec.Struct, kw_only=True):
    """A document as an object."""

    text: str


class RerankBody(ResidenceBody, kw_only=True):
    """A query and what may answer it."""

    query: str
    documents: list[str | DocumentBody]
    top_n: Annotated[int, msgspec.Meta(ge=1)] | None = None
    return_documents: bool | None = None
    max_tokens_per_doc: Any = None
    max_chunks_per_doc: Any = None
    truncate_prompt_tokens: Any = None


class DocumentReply(msgspec.Struct, frozen=True):
    """A document of the request."""

    text: str


class ResultReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """How well one document answers the query: the higher the better, on the model's own scale."""

    index: int
    relevance_score: float
    document: DocumentReply | None = None


class RerankReply(msgspec.Struct, frozen=True, kw_only=True):
    """The documents, the best first."""

    id: str
    object: Literal["list"] = "list"
    model: str
    results: list[ResultReply]
    usage: EmbeddingUsageReply


class RerankView(msgspec.Struct, frozen=True):
    """What the renderer must know. `documents` are there if they are to be shown."""

    model: str | None
    most: int | None
    documents: tuple[str, ...] | None


_DECODER = msgspec.json.Decoder(RerankBody)
_CUTTING = ("max_tokens_per_doc", "max_chunks_per_doc", "truncate_prompt_tokens")


def parse(wire: Wire) -> Parsed:
    """Read what to rank."""
    body = decode(wire.body, _DECODER)
    for field in _CUTTING:
        if getattr(body, field) is not None:
            raise UnsupportedField(field, "documents are not cut; one that does not fit is an error")
    if not body.query:
        raise InvalidField("query", "must not be empty")
    documents = tuple(each if isinstance(each, str) else each.text for each in body.documents)
    view = RerankView(body.model or None, body.top_n, documents if body.return_documents else None)
    return Parsed(Rerank(residence_of(body), body.query, documents), view)


def whole(view: RerankView, stamp: Stamp, ranked: Ranked) -> Rendered:
    """Render the order."""
    order = sorted(range(len(ranked.scores)), key=lambda place: (-ranked.scores[place], place))
    reply = RerankReply(
        id=f"rerank-{stamp.id}",
        model=view.model or ranked.model,
        results=[
            ResultReply(place, ranked.scores[place], DocumentReply(view.documents[place]) if view.documents else None)
            for place in order[: view.most]
        ],
        usage=EmbeddingUsageReply(prompt_tokens=ranked.input_tokens, total_tokens=ranked.input_tokens),
    )
    return Rendered(body=encode(reply))


OPERATION = Operation(
    method="POST",
    path="/v1/rerank",
    summary="Put documents in the order in which they answer a query.",
    parse=parse,
    whole=whole,
    body=RerankBody,
    reply=RerankReply,
)
