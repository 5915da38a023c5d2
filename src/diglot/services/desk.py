"""The desk: where a request is handed in.

One place that knows which service answers which kind of request, and nothing of how. `http` hands requests
in, `app` sets the desk up. It deliberately has no logic of its own.

Invariant: every kind of request of `core.request` is answered here, which `assert_never` keeps true.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import assert_never

from diglot.core.events import Event, Step
from diglot.core.ports import ResponseStore
from diglot.core.request import (
    Answering,
    Asking,
    CancelResponse,
    CheckBlob,
    CopyModel,
    CountTokens,
    CreateModel,
    DeleteModel,
    Embedding,
    FetchResponse,
    ForgetResponse,
    Generation,
    ListModels,
    ListRunning,
    Load,
    Moving,
    Ping,
    Pull,
    Push,
    Receiving,
    Rerank,
    Respond,
    ShowModel,
    Unload,
)
from diglot.core.result import Answer, Stored
from diglot.services.catalog import Catalog
from diglot.services.embed import Embed
from diglot.services.generate import Generate
from diglot.services.holdings import Holdings
from diglot.services.presence import Presence
from diglot.services.residency import Residency
from diglot.services.respond import Responses
from diglot.services.totals import Occupancy, Totals
from diglot.services.transfer import Transfer
from diglot.services.visit import Visit


class Desk:
    """Takes requests in. `answer` is for those that become events, `move` for steps, `receive` for those that bring bytes, `ask` for the others."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        residency: Residency,
        presence: Presence,
        generate: Generate,
        responses: Responses,
        embed: Embed,
        holdings: Holdings,
        transfer: Transfer,
    ) -> None:
        self._catalog = catalog
        self._residency = residency
        self._presence = presence
        self._generate = generate
        self._responses = responses
        self._embed = embed
        self._holdings = holdings
        self._transfer = transfer

    def answer(
        self,
        request: Answering,
        *,
        id: str,  # noqa: A002
        began: float | None = None,
        scratch: ResponseStore | None = None,
        visit: Visit | None = None,
    ) -> AsyncGenerator[Event]:
        """Return the events of the answer; closing the generator cancels.

        `id` is the answer's name, `began` when it was told to begin, if not now. `scratch` remembers, for one connection, what is not to be stored. What comes of it
        is written down on `visit`.
        """
        match request:
            case Generation():
                return self._generate(request, visit=visit)
            case Respond():
                return self._responses.answer(request, response=id, began=began, scratch=scratch, visit=visit)
            case Load():
                return self._presence.load(request)
            case Unload():
                return self._presence.unload(request)
            case _:
                assert_never(request)

    async def later(self, request: Respond, *, id: str, caller: str = "") -> Stored:  # noqa: A002
        """Begin an answer that goes on without the client. It becomes a visit of its own."""
        return await self._responses.later(request, response=id, caller=caller)

    def move(self, request: Moving) -> AsyncGenerator[Step]:
        """Return the steps; closing the generator gives up."""
        match request:
            case Pull():
                return self._transfer.pull(request)
            case Push():
                return self._transfer.push(request)
            case CreateModel():
                return self._transfer.create(request)
            case _:
                assert_never(request)

    async def receive(self, request: Receiving, chunks: AsyncIterator[bytes]) -> bool:
        """Take in what comes with a request."""
        return await self._holdings.receive(request, chunks)

    async def ask(self, request: Asking, *, visit: Visit | None = None) -> Answer:  # noqa: PLR0911  one line for each kind
        """Return the answer."""
        match request:
            case Ping():
                return None
            case Embedding():
                return await self._embed(request, visit=visit)
            case Rerank():
                return await self._embed.rerank(request, visit=visit)
            case ListModels():
                return await self._presence.listed()
            case ListRunning():
                return self._residency.running()
            case ShowModel():
                return await self._catalog.card(request.model, verbose=request.verbose)
            case CopyModel() | DeleteModel() | CheckBlob():
                return await self._ask_of_holdings(request)
            case _:
                return await self._ask_of_responses(request)

    async def _ask_of_holdings(self, request: CopyModel | DeleteModel | CheckBlob) -> bool | None:
        match request:
            case CopyModel():
                await self._holdings.copy(request)
                return None
            case DeleteModel():
                await self._holdings.delete(request)
                return None
            case CheckBlob():
                return await self._holdings.has(request.digest)
            case _:
                assert_never(request)

    async def _ask_of_responses(
        self, request: CountTokens | FetchResponse | ForgetResponse | CancelResponse
    ) -> Stored | int | None:
        match request:
            case CountTokens():
                return await self._responses.count(request.respond)
            case FetchResponse():
                return await self._responses.fetch(request.response)
            case ForgetResponse():
                await self._responses.forget(request.response)
                return None
            case CancelResponse():
                return await self._responses.cancel(request.response)
            case _:
                assert_never(request)

    @property
    def totals(self) -> Totals:
        """What has been asked of each model so far."""
        return self._residency.totals

    def occupancy(self) -> tuple[Occupancy, ...]:
        """Return how much of each model is taken now."""
        return self._residency.occupancy()

    async def close(self) -> None:
        """End what runs in the background, and all engines."""
        await self._transfer.close()
        await self._holdings.close()
        await self._responses.close()
        await self._residency.close()
