"""Embed: what encoders answer: vectors for texts, and how well documents answer a query.

A long list is done in pieces, so that others have their turn in between. Neighbours: `services.catalog` chooses the
model, `services.residency` lends its engine. Never streams.

Invariant: as many vectors or scores come out as texts went in, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from diglot.core.errors import TooMany
from diglot.core.events import Usage
from diglot.core.model import Capability
from diglot.core.ports import Clock
from diglot.core.request import Embedding, Rerank
from diglot.core.result import Embedded, Ranked
from diglot.services.catalog import Catalog
from diglot.services.residency import Residency
from diglot.services.visit import Visit

T = TypeVar("T", str, str | tuple[int, ...])

_PIECE = 16
_PIECE_LENGTH = 16_384
"""Texts, and characters or tokens, that are done at one go: a second or less for a small encoder on one core."""


class Embed:
    """Answers requests with at most `limit` inputs or documents."""

    def __init__(self, catalog: Catalog, residency: Residency, *, clock: Clock, limit: int) -> None:
        self._catalog = catalog
        self._residency = residency
        self._clock = clock
        self._limit = limit

    async def __call__(self, request: Embedding, *, visit: Visit | None = None) -> Embedded:
        """Return the vectors. `TooMany` above the limit, `NoModel` where no model embeds."""
        if len(request.inputs) > self._limit:
            raise TooMany("input", count=len(request.inputs), limit=self._limit)
        visit = visit or Visit()
        begun = self._clock.monotonic_ns()
        model = await self._catalog.choose(request.residence.model, Capability.EMBEDDING)
        visit.kind, visit.model = "embed", model.name
        residence = request.residence
        options = residence.load.over(model.defaults.load)
        vectors: list[tuple[float, ...]] = []
        async with self._residency.turn(model, options, residence.keep_alive, visit=visit) as engine:
            loaded = self._clock.monotonic_ns() - begun
            for piece in _pieces(request.inputs):
                embedded = await engine.embed(replace(request, inputs=piece))
                vectors += embedded.vectors
                visit.add(Usage(input=embedded.input_tokens))
        total = self._clock.monotonic_ns() - begun
        return Embedded(
            vectors=tuple(vectors),
            input_tokens=visit.usage.input,
            model=model.name,
            total_ns=total,
            load_ns=loaded,
        )

    async def rerank(self, request: Rerank, *, visit: Visit | None = None) -> Ranked:
        """Return the scores. `TooMany` above the limit, `NoModel` where no model ranks."""
        if len(request.documents) > self._limit:
            raise TooMany("documents", count=len(request.documents), limit=self._limit, kind="documents")
        visit = visit or Visit()
        model = await self._catalog.choose(request.residence.model, Capability.RERANK)
        visit.kind, visit.model = "rerank", model.name
        residence = request.residence
        options = residence.load.over(model.defaults.load)
        scores: list[float] = []
        async with self._residency.turn(model, options, residence.keep_alive, visit=visit) as engine:
            for piece in _pieces(request.documents):
                ranked = await engine.rerank(replace(request, documents=piece))
                scores += ranked.scores
                visit.add(Usage(input=ranked.input_tokens))
        return Ranked(scores=tuple(scores), input_tokens=visit.usage.input, model=model.name)


def _pieces(texts: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Cut a list into pieces that are short, and of one text at least."""
    piece: list[T] = []
    length = 0
    for text in texts:
        if piece and (len(piece) == _PIECE or length + len(text) > _PIECE_LENGTH):
            yield tuple(piece)
            piece, length = [], 0
        piece.append(text)
        length += len(text)
    if piece:
        yield tuple(piece)
