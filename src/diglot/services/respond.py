"""Respond: answers that can be taken up again.

An answer here is a generation with a memory: what came before is put in front of it, and what comes out is
stored if the client wants that. It can go on in the background, where the client asks for it later, or stops
it. It makes no answers of its own. Neighbours: `services.generate`, the `ResponseStore` port.

Invariant: a response that is in the store as finished holds all of it; nothing is stored that was not to be.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from msgspec.structs import replace

from diglot.core.assemble import Assembly
from diglot.core.errors import Busy, Cancelled, Fault, UnknownResponse
from diglot.core.events import Event
from diglot.core.items import Item, said
from diglot.core.ports import Clock, ResponseStore
from diglot.core.request import Conversation, Generation, Respond
from diglot.core.result import Result, Status, Stored
from diglot.services.generate import Generate

log = logging.getLogger(__name__)

_BACKGROUND = 64
_LONGEST_CHAIN = 10_000


class Responses:
    """Makes and remembers responses. `scratch` remembers what is not to be stored, for one connection."""

    def __init__(self, generate: Generate, store: ResponseStore, *, clock: Clock) -> None:
        self._generate = generate
        self._store = store
        self._clock = clock
        self._running: dict[str, asyncio.Task[None]] = {}

    async def answer(
        self, request: Respond, *, response: str, scratch: ResponseStore | None = None
    ) -> AsyncGenerator[Event]:
        """Yield the events of the answer and remember it under the id `response`."""
        generation = await self._continued(request, scratch)
        record = self._begun(request, response)
        store = self._store if request.keep else scratch
        assembly = Assembly()
        try:
            async with aclosing(self._generate(generation)) as events:
                async for event in events:
                    assembly.feed(event)
                    yield event
        except Fault as fault:
            if store is not None:
                await self._put(store, self._failed(record, fault))
            raise
        if store is not None:
            await self._put(store, self._done(record, assembly.result()))

    async def later(self, request: Respond, *, response: str) -> Stored:
        """Begin an answer that goes on without the client. `Busy` when too many do already."""
        if len(self._running) >= _BACKGROUND:
            raise Busy(retry_after=10, message="too many responses run in the background")
        await self._continued(request, None)  # What is wrong with the request is said now.
        record = replace(self._begun(request, response), status="queued")
        await self._put(self._store, record)
        task = asyncio.create_task(self._in_background(request, record), name=f"response {response}")
        self._running[response] = task
        task.add_done_callback(lambda _: self._running.pop(response, None))
        return record

    async def fetch(self, response: str) -> Stored:
        """Return a stored response."""
        return await asyncio.to_thread(self._store.get, response)

    async def forget(self, response: str) -> None:
        """Delete a stored response, and stop it where it still runs."""
        await self._stop(response)
        await asyncio.to_thread(self._store.forget, response)

    async def cancel(self, response: str) -> Stored:
        """Stop a response that runs in the background; one that has ended is returned as it is."""
        await self._stop(response)
        return await self.fetch(response)

    async def count(self, request: Respond) -> int:
        """Return how many tokens the prompt would have."""
        return await self._generate.count(await self._continued(request, None))

    async def close(self) -> None:
        """Stop what runs in the background."""
        for response in list(self._running):
            await self._stop(response)

    async def _in_background(self, request: Respond, record: Stored) -> None:
        await self._put(self._store, replace(record, status="in_progress"))
        try:
            async with aclosing(self.answer(replace(request, keep=True), response=record.id)) as events:
                async for _ in events:
                    pass
        except Fault:
            log.info("a response in the background failed")  # The record says why.
        except asyncio.CancelledError:
            ended = replace(record, status="cancelled", finished=self._clock.now())
            await asyncio.shield(self._put(self._store, ended))
            raise

    async def _stop(self, response: str) -> None:
        task = self._running.get(response)
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _continued(self, request: Respond, scratch: ResponseStore | None) -> Generation:
        """Return the generation with the conversation so far before it, and the instructions before that."""
        generation = request.generation
        assert isinstance(generation.prompt, Conversation)  # noqa: S101
        before = await asyncio.to_thread(self._history, request.previous, scratch) if request.previous else ()
        head = (said("system", request.instructions),) if request.instructions else ()
        return replace(generation, prompt=Conversation((*head, *before, *generation.prompt.items)))

    def _history(self, response: str, scratch: ResponseStore | None) -> tuple[Item, ...]:
        """Return everything that was said up to the end of a response."""
        turns: list[tuple[Item, ...]] = []
        following: str | None = response
        while following and len(turns) < _LONGEST_CHAIN:
            stored = self._find(following, scratch)
            turns.append(stored.input + stored.output)
            following = stored.previous
        return tuple(item for turn in reversed(turns) for item in turn)

    def _find(self, response: str, scratch: ResponseStore | None) -> Stored:
        try:
            if scratch is not None:
                with suppress(UnknownResponse):
                    return scratch.get(response)
            return self._store.get(response)
        except UnknownResponse as fault:
            raise UnknownResponse(fault.response, field="previous_response_id") from None

    def _begun(self, request: Respond, response: str) -> Stored:
        prompt = request.generation.prompt
        assert isinstance(prompt, Conversation)  # noqa: S101
        return Stored(
            id=response,
            status="in_progress",
            created=self._clock.now(),
            input=prompt.items,
            previous=request.previous,
            echo=request.echo,
        )

    def _done(self, record: Stored, result: Result) -> Stored:
        cut = any(choice.reason == "length" for choice in result.choices)
        status: Status = "incomplete" if cut else "completed"
        return replace(record, status=status, finished=self._clock.now(), result=result)

    def _failed(self, record: Stored, fault: Fault) -> Stored:
        status: Status = "cancelled" if isinstance(fault, Cancelled) else "failed"
        return replace(record, status=status, finished=self._clock.now(), fault=(type(fault).__name__, fault.message))

    async def _put(self, store: ResponseStore, record: Stored) -> None:
        await asyncio.to_thread(store.put, record)
