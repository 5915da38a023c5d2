"""The desk: where a request is handed in.

One place that knows which service answers which kind of request, and nothing of how. `http` hands requests
in, `app` sets the desk up. It deliberately has no logic of its own.

Invariant: every kind of request of `core.request` is answered here, which `assert_never` keeps true.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import assert_never

from diglot.core.events import Event, Finished, Started, Timings
from diglot.core.model import Capability
from diglot.core.ports import Clock
from diglot.core.request import (
    Answering,
    Asking,
    Embedding,
    Generation,
    ListModels,
    ListRunning,
    Load,
    Ping,
    ShowModel,
    Unload,
)
from diglot.core.result import Answer
from diglot.services.catalog import Catalog
from diglot.services.embed import Embed
from diglot.services.generate import Generate
from diglot.services.residency import Residency


class Desk:
    """Takes requests in. `answer` is for those that become events, `ask` for the others."""

    def __init__(
        self, *, catalog: Catalog, residency: Residency, generate: Generate, embed: Embed, clock: Clock
    ) -> None:
        self._catalog = catalog
        self._residency = residency
        self._generate = generate
        self._embed = embed
        self._clock = clock

    def answer(self, request: Answering) -> AsyncGenerator[Event]:
        """Return the events of the answer; closing the generator cancels."""
        match request:
            case Generation():
                return self._generate(request)
            case Load():
                return self._load(request)
            case Unload():
                return self._unload(request)
            case _:
                assert_never(request)

    async def ask(self, request: Asking) -> Answer:
        """Return the answer."""
        match request:
            case Ping():
                return None
            case Embedding():
                return await self._embed(request)
            case ListModels():
                return await self._catalog.list()
            case ListRunning():
                return self._residency.running()
            case ShowModel():
                return await self._catalog.card(request.model, verbose=request.verbose)
            case _:
                assert_never(request)

    async def close(self) -> None:
        """End all engines."""
        await self._residency.close()

    async def _load(self, request: Load) -> AsyncGenerator[Event]:
        begun = self._clock.monotonic_ns()
        residence = request.residence
        if residence.model:
            model = await self._catalog.find(residence.model)
        else:
            model = await self._catalog.choose(None, Capability.COMPLETION)
        options = residence.load.over(model.defaults.load)
        async with self._residency.lease(model, options, residence.keep_alive):
            yield Started(input_tokens=0, model=model.name)
        took = self._clock.monotonic_ns() - begun
        yield Finished(reason="load", timings=Timings(total=took, load=took))

    async def _unload(self, request: Unload) -> AsyncGenerator[Event]:
        residence = request.residence
        if residence.model:
            model = await self._catalog.find(residence.model)
        else:
            model = await self._catalog.choose(None, Capability.COMPLETION)
        await self._residency.unload(model)
        yield Started(input_tokens=0, model=model.name)
        yield Finished(reason="unload")
