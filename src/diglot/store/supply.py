"""Supply: where the store's models come from and go to. Implements `core.ports.Supply`.

It knows one way for each kind of source and does nothing itself. Neighbours: `starter`, `registry`, `hub`, `url`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from diglot.core.errors import NotOffered
from diglot.core.events import Step
from diglot.core.model import ModelRef
from diglot.core.source import FromStarter, Source
from diglot.store.local import LocalStore


class StoreSupply:
    """Moves models between `store` and the world."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store

    async def pull(self, source: Source, *, insecure: bool) -> AsyncGenerator[Step]:
        """Get a model into the store."""
        if not isinstance(source, FromStarter):
            raise NotOffered(str(source), where="nowhere")
        yield Step("done")

    async def push(self, ref: ModelRef, *, insecure: bool) -> AsyncGenerator[Step]:
        """Bring a model of the store to its registry."""
        raise NotOffered(str(ref), where="nowhere")
        yield
