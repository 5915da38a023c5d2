"""Embed: vectors for texts.

Neighbours: `services.catalog` chooses the model, `services.residency` lends its engine. Never streams.

Invariant: as many vectors come out as inputs went in, in the same order.
"""

from __future__ import annotations

from msgspec.structs import replace

from diglot.core.errors import TooManyInputs
from diglot.core.model import Capability
from diglot.core.ports import Clock
from diglot.core.request import Embedding
from diglot.core.result import Embedded
from diglot.services.catalog import Catalog
from diglot.services.residency import Residency


class Embed:
    """Answers requests for embeddings of at most `limit` inputs."""

    def __init__(self, catalog: Catalog, residency: Residency, *, clock: Clock, limit: int) -> None:
        self._catalog = catalog
        self._residency = residency
        self._clock = clock
        self._limit = limit

    async def __call__(self, request: Embedding) -> Embedded:
        """Return the vectors. `TooManyInputs` above the limit, `NoModel` where no model embeds."""
        if len(request.inputs) > self._limit:
            raise TooManyInputs("input", count=len(request.inputs), limit=self._limit)
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
