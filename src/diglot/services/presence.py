"""Presence: models brought into memory and sent out of it on demand, and listed with the window they are served with.

Neighbours: `services.catalog` finds models, `services.residency` holds them.

Invariant: the window that is listed is the one that a request would meet.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from diglot.core.errors import ModelIncapable
from diglot.core.events import Event, Finished, Started, Timings
from diglot.core.model import Capability, Model
from diglot.core.ports import Clock
from diglot.core.request import Load, Residence, Unload
from diglot.services.catalog import Catalog
from diglot.services.residency import Residency


class Presence:
    """Loads, unloads and lists."""

    def __init__(self, catalog: Catalog, residency: Residency, *, clock: Clock) -> None:
        self._catalog = catalog
        self._residency = residency
        self._clock = clock

    async def load(self, request: Load) -> AsyncGenerator[Event]:
        """Load a model; its events say when it is there and how long it took."""
        begun = self._clock.monotonic_ns()
        residence = request.residence
        model = await self._meant(residence)
        if request.must_think and not model.capabilities.thinking:
            raise ModelIncapable(residence.model or model.name, ability="thinking")
        options = residence.load.over(model.defaults.load)
        async with self._residency.lease(model, options, residence.keep_alive):
            yield Started(input_tokens=0, model=model.name)
        took = self._clock.monotonic_ns() - begun
        yield Finished(reason="load", timings=Timings(total=took, load=took))

    async def unload(self, request: Unload) -> AsyncGenerator[Event]:
        """Let a model go once nobody uses it."""
        model = await self._meant(request.residence)
        await self._residency.unload(model)
        yield Started(input_tokens=0, model=model.name)
        yield Finished(reason="unload")

    async def listed(self) -> tuple[Model, ...]:
        """Return all models; their details tell the window that is served."""
        return tuple(
            replace(model, details=replace(model.details, context_length=self._residency.window(model)))
            for model in await self._catalog.list()
        )

    async def _meant(self, residence: Residence) -> Model:
        if residence.model:
            return await self._catalog.find(residence.model)
        return await self._catalog.choose(None, Capability.COMPLETION)
