"""Transfer: models fetched from elsewhere, brought there, and made of others, as steps that can be watched.

Whoever asks for what is on its way already watches the same work. The work ends when the last one who
watches has left; what has come of it stays, and the next one goes on from there. Neighbours:
`core.ports.Supply` moves the bytes, `services.holdings` lets what was replaced go.

Invariant: a model is fetched once at a time, however many ask for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Literal

from diglot.core.errors import Cancelled, InvalidField, ModelNotFound
from diglot.core.events import Step
from diglot.core.model import InvalidName, ModelCard, ModelRef
from diglot.core.ports import Supply
from diglot.core.request import CreateModel, Pull, Push
from diglot.core.source import FromHub, FromRegistry, FromUrl, Source, read_source
from diglot.services.catalog import Catalog, read_name
from diglot.services.holdings import Holdings

_Key = tuple[Literal["pull", "push"], Source | ModelRef, bool]


class Work:
    """One transfer that goes on: the newest step of each of its contents, for all who watch it.

    Steps that nobody was quick enough to see are passed over, so that a slow client holds nothing up.
    """

    def __init__(self, steps: AsyncGenerator[Step], *, then: Callable[[Work], None]) -> None:
        self.watchers = 0
        self._then = then
        self._seen: list[Step] = []
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._run(steps), name="transfer")

    async def watch(self) -> AsyncGenerator[Step]:
        """Yield all steps from the beginning, those of one content drawn together, as quickly as they are taken.

        Raises what ended the work.
        """
        self.watchers += 1
        told: list[Step] = []
        try:
            while True:
                news, ended = self._news, self.task.done()
                for place, step in enumerate(self._seen):
                    if place == len(told):
                        told.append(step)
                    elif told[place] is step:
                        continue
                    told[place] = step
                    yield step
                if ended:
                    break
                if news is self._news:
                    await news.wait()
            self._outcome()
        finally:
            self.watchers -= 1
            if not self.watchers:
                self._then(self)  # Whoever comes now begins anew.
                self.task.cancel()
                await asyncio.shield(asyncio.wait({self.task}))

    def _outcome(self) -> None:
        if self.task.cancelled():
            raise Cancelled
        self.task.result()

    async def _run(self, steps: AsyncGenerator[Step]) -> None:
        try:
            async for step in steps:
                self._note(step)
        finally:
            await steps.aclose()
            self._then(self)
            self._tell()

    def _note(self, step: Step) -> None:
        """Remember a step, in the place of an older one of the same content."""
        for place in range(len(self._seen) - 1, -1, -1):
            old = self._seen[place]
            if (old.stage, old.digest, old.subject) == (step.stage, step.digest, step.subject):
                self._seen[place] = step
                break
        else:
            self._seen.append(step)
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class Transfer:
    """Fetches, brings and makes models."""

    def __init__(self, supply: Supply, holdings: Holdings, catalog: Catalog) -> None:
        self._supply = supply
        self._holdings = holdings
        self._catalog = catalog
        self._works: dict[_Key, Work] = {}

    def pull(self, request: Pull) -> AsyncGenerator[Step]:
        """Return the steps of getting a model. Raises what `Supply` raises, `InvalidField` for what is no source."""
        source = _read(request.name)
        key: _Key = ("pull", source, request.insecure)
        return self._watched(key, lambda: self._pulled(source, insecure=request.insecure))

    def push(self, request: Push) -> AsyncGenerator[Step]:
        """Return the steps of bringing a model to its registry. Raises as `pull`."""
        ref = read_name(request.name)
        key: _Key = ("push", ref, request.insecure)
        return self._watched(key, lambda: self._supply.push(ref, insecure=request.insecure))

    async def create(self, request: CreateModel) -> AsyncGenerator[Step]:
        """Yield the steps of making a model. Its base may be any that is listed, and is fetched where none is. Raises as `pull`."""
        ref, recipe = read_name(request.name), request.recipe
        base: ModelCard | None = None
        if recipe.base:
            try:
                base = await self._catalog.card(recipe.base, verbose=False)
            except ModelNotFound:
                async with aclosing(self.pull(Pull(recipe.base))) as steps:
                    async for step in steps:
                        if step.stage != "done":
                            yield step
                base = await self._catalog.card(recipe.base, verbose=False)
        async with aclosing(self._supply.make(ref, recipe, base=base)) as steps:
            async for step in steps:
                if step.stage == "done":
                    await self._holdings.changed(ref)
                yield step

    async def _watched(self, key: _Key, begin: Callable[[], AsyncGenerator[Step]]) -> AsyncGenerator[Step]:
        work = self._works.get(key)
        if work is None:
            work = self._works[key] = Work(begin(), then=lambda work: self._forget(key, work))
        steps = work.watch()
        try:
            async for step in steps:
                yield step
        finally:
            await steps.aclose()

    def _forget(self, key: _Key, work: Work) -> None:
        if self._works.get(key) is work:
            del self._works[key]

    async def _pulled(self, source: Source, *, insecure: bool) -> AsyncGenerator[Step]:
        steps = self._supply.pull(source, insecure=insecure)
        try:
            async for step in steps:
                if step.stage == "done" and isinstance(source, FromRegistry | FromHub | FromUrl):
                    await self._holdings.changed(source.ref)
                yield step
        finally:
            await steps.aclose()

    async def close(self) -> None:
        """Give everything up that is on its way."""
        tasks = {work.task for work in self._works.values()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _read(name: str) -> Source:
    try:
        return read_source(name)
    except InvalidName as error:
        raise InvalidField("model", error.reason) from error
