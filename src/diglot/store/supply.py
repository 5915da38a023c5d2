"""Supply: where the store's models come from and go to. Implements `core.ports.Supply`.

It knows one way for each kind of source and does nothing itself. Each is imported when it is first needed: a
server that fetches nothing stays small. Neighbours: `registry`, `hub`, `starter`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import msgspec

from diglot.core.errors import InvalidField
from diglot.core.events import Step
from diglot.core.model import ModelCard, ModelRef
from diglot.core.ports import Clock
from diglot.core.recipe import Recipe
from diglot.core.source import FromHub, FromRegistry, FromStarter, FromUrl, Source
from diglot.store.aside import steps_aside
from diglot.store.local import LocalStore

if TYPE_CHECKING:
    from diglot.store.fetch.blob import Ways
    from diglot.store.fetch.web import Credentials, Web
    from diglot.store.registry.address import Address


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to reach other machines: the file of this one's key; what this program is called; where Hugging Face is, and the token for it.

    A content comes over so many `connections`, in parts of at least `least` bytes; `stall` seconds without a byte are too many.
    """

    identity: Path
    agent: str = "diglot"
    hub: str = "https://huggingface.co"
    hub_token: str = ""
    connections: int = 8
    least: int = 8 << 20
    stall: float = 30.0


class StoreSupply:
    """Moves models between `store` and the world."""

    def __init__(self, store: LocalStore, reach: Reach, *, clock: Clock) -> None:
        self._store = store
        self._reach = reach
        self._clock = clock

    async def pull(self, source: Source, *, insecure: bool) -> AsyncGenerator[Step]:
        """Get a model into the store."""
        match source:
            case FromRegistry():
                steps = self._from_registry(source, insecure=insecure)
            case FromHub():
                steps = self._from_hub(source)
            case FromUrl():
                _require_safety(plain=source.plain, insecure=insecure)
                steps = self._from_url(source)
            case FromStarter():
                steps = self._from_starter()
            case _:
                assert_never(source)
        async with aclosing(steps):
            async for step in steps:
                yield step

    async def push(self, ref: ModelRef, *, insecure: bool) -> AsyncGenerator[Step]:
        """Bring a model of the store to its registry."""
        from diglot.store.registry.push import Sending, push  # noqa: PLC0415

        async with (
            self._registry(ref, plain=insecure) as (web, address),
            aclosing(push(self._store, Sending(web=web, address=address, clock=self._clock))) as steps,
        ):
            async for step in steps:
                yield step

    async def make(self, ref: ModelRef, recipe: Recipe, *, base: ModelCard | None) -> AsyncGenerator[Step]:
        """Make a model in the store."""
        from diglot.store.making import make  # noqa: PLC0415

        async with aclosing(steps_aside(lambda tell: make(self._store, ref, recipe, base=base, tell=tell))) as steps:
            async for step in steps:
                yield step

    async def _from_registry(self, source: FromRegistry, *, insecure: bool) -> AsyncGenerator[Step]:
        from diglot.store.registry.pull import pull  # noqa: PLC0415

        _require_safety(plain=source.plain, insecure=insecure)
        async with (
            self._registry(source.ref, plain=insecure) as (web, address),
            aclosing(pull(self._store, web, address, clock=self._clock, ways=self._ways())) as steps,
        ):
            async for step in steps:
                yield step

    async def _from_hub(self, source: FromHub) -> AsyncGenerator[Step]:
        from diglot.store.fetch.web import Bearer  # noqa: PLC0415
        from diglot.store.hub.pull import Hub, pull  # noqa: PLC0415

        endpoint, token = self._reach.hub, self._reach.hub_token
        async with self._web(Bearer(token, origin=endpoint)) as web:
            hub = Hub(endpoint=endpoint, token=token, web=web, clock=self._clock, ways=self._ways())
            async with aclosing(pull(self._store, source, hub)) as steps:
                async for step in steps:
                    yield step

    async def _from_url(self, source: FromUrl) -> AsyncGenerator[Step]:
        from diglot.store.fetch.file import FileFetch, found  # noqa: PLC0415
        from diglot.store.fetch.web import Anonymous, read_url  # noqa: PLC0415

        yield Step("find")
        async with self._web(Anonymous()) as web:
            remote = await found(web, read_url(source.url))
            fetch = FileFetch(remote, store=self._store, web=web, clock=self._clock, ways=self._ways())
            async with aclosing(fetch.steps(str(source.ref))) as steps:
                async for step in steps:
                    yield step
        yield Step("verify")
        yield Step("write")
        await asyncio.to_thread(self._store.assemble, source.ref, fetch.digest)
        yield Step("done")

    async def _from_starter(self) -> AsyncGenerator[Step]:
        from diglot.store.starter import fetch_starter  # noqa: PLC0415

        yield Step("find")
        async with aclosing(steps_aside(lambda tell: fetch_starter(self._store, tell))) as steps:
            async for step in steps:
                yield step
        yield Step("done")

    def _ways(self) -> Ways:
        from diglot.store.fetch.blob import Ways  # noqa: PLC0415

        return Ways(connections=self._reach.connections, least=self._reach.least)

    @asynccontextmanager
    async def _web(self, credentials: Credentials) -> AsyncIterator[Web]:
        from diglot.store.fetch.web import Web  # noqa: PLC0415

        # In a thread: it reads the certificates of the machine.
        web = await asyncio.to_thread(Web, credentials, agent=self._reach.agent, stall=self._reach.stall)
        try:
            yield web
        finally:
            await web.close()

    @asynccontextmanager
    async def _registry(self, ref: ModelRef, *, plain: bool) -> AsyncIterator[tuple[Web, Address]]:
        """Open what is needed to talk to the registry of a model."""
        from diglot.store.registry.address import Address  # noqa: PLC0415
        from diglot.store.registry.tokens import Identity, Tokens  # noqa: PLC0415

        address = Address(ref, plain=plain)
        tokens = Tokens(address.root, Identity(self._reach.identity), now=self._clock.now)
        async with self._web(tokens) as web:
            yield web, address


def _require_safety(*, plain: bool, insecure: bool) -> None:
    """Raise InvalidField where http was written by somebody who does not say that it may be insecure."""
    if plain and not insecure:
        raise InvalidField("insecure", "insecure protocol http")
