"""An engine on a remote server: the peer client and what the listing found out.

Neighbours: `loader` makes it, `engines.peer` is the client. The server keeps its own slots and memory.

Invariant: it is alive until it is closed: a server that fails a request may well answer the next one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from diglot.core.errors import Fault, ModelIncapable, UpstreamFailed
from diglot.core.events import Event
from diglot.core.model import Capabilities
from diglot.core.ports import Ids
from diglot.core.request import Embedding, Generation, Rerank
from diglot.core.result import Embedded, Ranked
from diglot.engines.peer.body import Target
from diglot.engines.peer.client import Peer
from diglot.engines.peer.counting import count
from diglot.engines.peer.faults import Blame
from diglot.engines.peer.ranking import rerank
from diglot.engines.peer.transport import Transport
from diglot.engines.peer.vectors import embed
from diglot.engines.remote.listing import Offer, place_of


class RemoteEngine:
    """A model of a remote server. Implements `core.ports.Engine`. `window` is in tokens."""

    def __init__(self, offer: Offer, *, transport: Transport, window: int, ids: Ids) -> None:
        self._offer = offer
        self._window = window
        self._place = place_of(offer.address)
        self._open = True
        self._peer = Peer(
            transport,
            target=Target(offer.id, offer.host, template_tools=offer.model.capabilities.template_tools, window=window),
            blame=Blame(offer.model.name, window=window, where=self._place),
            lost=self._lost,
            ids=ids,
        )

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do, as far as the server says."""
        return self._offer.model.capabilities

    @property
    def window(self) -> int:
        """The context window, in tokens."""
        return self._window

    @property
    def slots(self) -> int:
        """How many answers are asked for at the same time."""
        return self._offer.slots

    @property
    def alive(self) -> bool:
        """Whether it is open."""
        return self._open

    @property
    def memory(self) -> int:
        """None of this machine's."""
        return 0

    @property
    def accelerator_memory(self) -> int:
        """None of this machine's."""
        return 0

    def generate(self, request: Generation) -> AsyncGenerator[Event]:
        """Answer a request."""
        if not self.capabilities.completion:
            raise ModelIncapable(self._offer.model.name, ability="completion")
        return self._peer.generate(request)

    async def count(self, request: Generation) -> int:
        """Return the tokens of the prompt."""
        return await count(self._peer, request)

    async def embed(self, request: Embedding) -> Embedded:
        """Return a vector for each input."""
        if not self.capabilities.embedding:
            raise ModelIncapable(self._offer.model.name, ability="embedding")
        return await embed(self._peer, request, window=self.window)

    async def rerank(self, request: Rerank) -> Ranked:
        """Return a score for each document."""
        if not self.capabilities.rerank:
            raise ModelIncapable(self._offer.model.name, ability="rerank")
        return await rerank(self._peer, request, window=self.window)

    async def close(self) -> None:
        """Give back the connections."""
        self._open = False
        await self._peer.close()

    async def _lost(self, how: str) -> Fault:
        return UpstreamFailed(self._place, reason="the connection was lost", detail=how)
