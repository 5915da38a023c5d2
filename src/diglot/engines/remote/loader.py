"""The loader of remote models, which are loaded already. Implements `core.ports.EngineLoader`.

Stands in front of the loader of local models and passes on what is not remote. Neighbours: `models`, `engine`.

Invariant: remote models take no memory here, so they never push a local one out.
"""

from __future__ import annotations

import asyncio

from diglot.core.model import Model
from diglot.core.ports import Engine, EngineLoader, Ids, LoadProgress
from diglot.core.request import LoadOptions
from diglot.engines.peer.web import Web
from diglot.engines.remote.engine import RemoteEngine
from diglot.engines.remote.listing import FORMAT
from diglot.engines.remote.models import RemoteModels

_ASSUMED_WINDOW = 32_768  # For a server that does not say; a request may ask for another.


class RemoteLoader:
    """Loads the models of `models`, and all others with `otherwise`."""

    def __init__(self, models: RemoteModels, *, otherwise: EngineLoader, ids: Ids) -> None:
        self._models = models
        self._otherwise = otherwise
        self._ids = ids

    def estimate(self, model: Model, options: LoadOptions) -> int:
        """Return the bytes that loading takes here."""
        return 0 if _is_remote(model) else self._otherwise.estimate(model, options)

    def window(self, model: Model, options: LoadOptions) -> int:
        """Return the context window of the remote server, assumed where it does not say."""
        if not _is_remote(model):
            return self._otherwise.window(model, options)
        return model.anatomy.context_length or options.window or _ASSUMED_WINDOW

    def slots(self, model: Model) -> int:
        """Return how many answers are asked for at the same time."""
        return self._models.slots(model.ref) if _is_remote(model) else self._otherwise.slots(model)

    async def load(self, model: Model, options: LoadOptions, progress: LoadProgress) -> Engine:
        """Return an engine. Raises ModelNotFound when the server no longer has the model."""
        if not _is_remote(model):
            return await self._otherwise.load(model, options, progress)
        offer = await asyncio.to_thread(self._models.offer, model.ref)
        transport = Web(offer.address, key=self._models.key)
        return RemoteEngine(offer, transport=transport, window=self.window(model, options), ids=self._ids)


def _is_remote(model: Model) -> bool:
    return model.details.format == FORMAT
