"""Embed: what encoders answer: vectors for texts, and how well documents answer a query.

Neighbours: `services.catalog` chooses the model, `services.residency` lends its engine. Never streams.

Invariant: as many vectors or scores come out as texts went in, in the same order.
"""

from __future__ import annotations

from msgspec.structs import replace

from diglot.core.errors import TooMany
from diglot.core.model import Capability
from diglot.core.ports import Clock
from diglot.core.request import Embedding, Rerank
from diglot.core.result import Embedded, Ranked
from diglot.services.catalog import Catalog
from diglot.services.residency import Residency


class Embed:
    """Answers requests with at most `limit` inputs or documents."""

    def __init__(self, catalog: Catalog, residency: Residency, *, clock: Clock, limit: int) -> None:
        self._catalog = catalog
        self._residency = residency
        self._clock = clock
        self._limit = limit

    async def __call__(self, request: Embedding) -> Embedded:
        """Return the vectors. `TooMany` above the limit, `NoModel` where no model embeds."""
        if len(request.inputs) > self._limit:
            raise TooMany("input", count=len(request.inputs), limit=self._limit)
        begun = self._clock.monotonic_ns()
        model = await self._catalog.choose(request.residence.model, Capability.EMBEDDING)
        residence = request.residence
        options = residence.load.over(model.defaults.load)
        async with self._residency.turn(model, options, residence.keep_alive) as engine:
            loaded = self._clock.monotonic_ns() - begun
            if not request.inputs:
                return Embedded(vectors=(), input_tokens=0, model=model.name, total_ns=loaded, load_ns=loaded)
            embedded = await engine.embed(request)
        total = self._clock.monotonic_ns() - begun
        return replace(embedded, model=model.name, total_ns=total, load_ns=loaded)

    async def rerank(self, request: Rerank) -> Ranked:
        """Return the scores. `TooMany` above the limit, `NoModel` where no model ranks."""
        if len(request.documents) > self._limit:
            raise TooMany("documents", count=len(request.documents), limit=self._limit, kind="documents")
        model = await self._catalog.choose(request.residence.model, Capability.RERANK)
        residence = request.residence
        options = residence.load.over(model.defaults.load)
        async with self._residency.turn(model, options, residence.keep_alive) as engine:
            if not request.documents:
                return Ranked(scores=(), input_tokens=0, model=model.name)
            return replace(await engine.rerank(request), model=model.name)
