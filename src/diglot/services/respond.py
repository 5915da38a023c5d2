"""Respond: answers that can be taken up again.

An answer here is a generation with a memory: what came before is put in front of it, and what comes out is
stored if the client wants that. It can go on in the background, where the client asks for it later, or stops
it. It makes no answers of its own. Neighbours: `services.generate`, the `ResponseStore` port.

The store is asked in a thread of its own: where its disk is slow or its file locked, nothing else waits for it.

Invariants: a response that is in the store as finished holds all of it; nothing is stored that was not to be; one that
was to be stored and could not is told as failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from functools import partial
from typing import Final, ParamSpec, TypeVar

from msgspec.structs import replace

from diglot.core.assemble import Assembly
from diglot.core.errors import (
    Busy,
    Cancelled,
    Fault,
    InvalidField,
    NoSpace,
    ResponsesUnavailable,
    UnknownResponse,
)
from diglot.core.events import Event, Finished, ReasoningDelta, TextDelta, ToolCallDone
from diglot.core.items import Item, ToolCall, ToolResult, said
from diglot.core.ports import Clock, ResponseStore
from diglot.core.request import Conversation, Generation, Respond, ToolSpec
from diglot.core.result import Result, Status, Stored
from diglot.core.tools import flat_name
from diglot.services.generate import Generate
from diglot.services.totals import Totals
from diglot.services.visit import Visit, kind_of

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
_BACKGROUND = 64
_UNFINISHED: Final = ("queued", "in_progress")
_LONGEST_CHAIN = 10_000


class Responses:
    """Makes and remembers responses. `scratch` remembers what is not to be stored, for one connection."""

    def __init__(self, generate: Generate, store: ResponseStore, *, clock: Clock, totals: Totals | None = None) -> None:
        self._generate = generate
        self._store = store
        self._clock = clock
        self._totals = totals or Totals()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._beginning = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="responses")

    async def answer(
        self,
        request: Respond,
        *,
        response: str,
        began: float | None = None,
        scratch: ResponseStore | None = None,
        visit: Visit | None = None,
    ) -> AsyncGenerator[Event]:
        """Yield the events of the answer and remember it under the id `response`, as of when it `began`."""
        assembly = Assembly()
        record: Stored | None = None
        store = self._store if request.keep else scratch
        try:
            request = await self._resolved(request)
            generation = await self._continued(request, scratch)
            record = self._begun(request, response, began)
            async with aclosing(self._events(request, generation, visit)) as events:
                async for event in events:
                    assembly.feed(event)
                    yield event
        except Fault as fault:
            if scratch is not None and request.previous:
                with suppress(UnknownResponse):  # What could not be gone on from is let go.
                    scratch.forget(request.previous)
            if store is not None and record is not None:
                with suppress(NoSpace, ResponsesUnavailable):  # Why it failed matters more than where it is remembered.
                    await self._put(store, self._failed(record, fault, assembly.result()))
            raise
        if store is not None:
            await self._put(store, self._done(record, assembly.result()))

    async def _events(self, request: Respond, generation: Generation, visit: Visit | None) -> AsyncGenerator[Event]:
        """Yield the events of the answer, or of taking the conversation in: one token is made then, and dropped."""
        if request.prime:
            generation = replace(generation, sampling=replace(generation.sampling, max_tokens=1))
        async with aclosing(self._generate(generation, visit=visit)) as events:
            async for event in events:
                match event:
                    case TextDelta() | ReasoningDelta() | ToolCallDone() if request.prime:
                        pass
                    case Finished() if request.prime:
                        yield replace(event, reason="stop", usage=replace(event.usage, output=0, reasoning=0))
                    case _:
                        yield event

    async def later(self, request: Respond, *, response: str, caller: str = "") -> Stored:
        """Begin an answer that goes on without the client. `Busy` when too many do already."""
        visit = Visit.at(self._clock.monotonic_ns(), caller=caller, background=True)
        if len(self._running) + self._beginning >= _BACKGROUND:
            raise Busy(retry_after=10, message="too many responses run in the background")
        self._beginning += 1
        try:
            request = await self._resolved(request)
            await self._continued(request, None)  # What is wrong with the request is said now.
            record = replace(self._begun(request, response), status="queued")
            await self._put(self._store, record)
        finally:
            self._beginning -= 1
        task = asyncio.create_task(self._in_background(request, record, visit), name=f"response {response}")
        self._running[response] = task
        task.add_done_callback(lambda _: self._running.pop(response, None))
        return record

    async def fetch(self, response: str) -> Stored:
        """Return a stored response. One that was going on when the server or its task died has failed."""
        stored = await self._beside(self._store.get, response)
        if stored.status in _UNFINISHED and response not in self._running:
            return replace(stored, status="failed", fault=("EngineFailed", "the server ended while this was made"))
        return stored

    async def forget(self, response: str) -> None:
        """Delete a stored response, and stop it where it still runs."""
        await self._stop(response)
        await self._beside(self._store.forget, response)

    async def cancel(self, response: str) -> Stored:
        """Stop a response that runs in the background; one that has ended is returned as it is."""
        await self._stop(response)
        return await self.fetch(response)

    async def count(self, request: Respond) -> int:
        """Return how many tokens the prompt would have."""
        return await self._generate.count(await self._continued(await self._resolved(request), None))

    async def close(self) -> None:
        """Stop what runs in the background."""
        for response in list(self._running):
            with suppress(Fault):  # What its record could not be told, `fetch` tells.
                await self._stop(response)

    async def _in_background(self, request: Respond, record: Stored, visit: Visit) -> None:
        visit.outcome = "cancelled"
        try:
            await self._put(self._store, replace(record, status="in_progress"))
            async with aclosing(
                self.answer(replace(request, keep=True), response=record.id, began=record.created, visit=visit)
            ) as events:
                async for _ in events:
                    pass
            visit.outcome = "ok"
        except Fault as fault:  # The record says why.
            visit.outcome = kind_of(fault)
        finally:
            visit.end(self._clock.monotonic_ns())
            self._totals.add(visit)
            log.info("response %s in the background: %s", record.id, visit.outcome)

    async def _stop(self, response: str) -> None:
        """Stop a response that runs, and say so in its record."""
        task = self._running.get(response)
        if task is None:
            return
        task.cancel()
        await asyncio.wait({task})
        if task.cancelled():
            record = await self._beside(self._store.get, response)
            await self._put(self._store, replace(record, status="cancelled", finished=self._clock.now()))

    async def _resolved(self, request: Respond) -> Respond:
        """Return the request with the items that it refers to."""
        if not request.references:
            return request
        items = list(_items(request))
        for position, reference in request.references.items():
            try:
                items[position] = (await self.fetch(reference.response)).output[reference.output]
            except (UnknownResponse, IndexError):
                raise InvalidField(reference.field, "no such item is stored here") from None
        generation = replace(request.generation, prompt=Conversation(tuple(items)))
        return replace(request, generation=generation, references={})

    async def _continued(self, request: Respond, scratch: ResponseStore | None) -> Generation:
        """Return the generation with the conversation so far before it, and the instructions before that."""
        before: tuple[Item, ...] = ()
        found = request.found
        if request.previous:
            before, earlier = await self._beside(self._history, request.previous, scratch)
            found += earlier
            _refuse_strangers(before, _items(request))
        head = (said("system", request.instructions),) if request.instructions else ()
        return replace(
            request.generation,
            prompt=Conversation((*head, *before, *_items(request))),
            tools=_joined(request.generation.tools, found),
        )

    def _history(self, response: str, scratch: ResponseStore | None) -> tuple[tuple[Item, ...], tuple[ToolSpec, ...]]:
        """Return everything that was said up to the end of a response, and the tools found on the way, newest first."""
        turns: list[tuple[Item, ...]] = []
        found: list[ToolSpec] = []
        following: str | None = response
        while following and len(turns) < _LONGEST_CHAIN:
            stored = self._find(following, scratch)
            turns.append(stored.input + stored.output)
            found += stored.found
            following = stored.previous
        return tuple(item for turn in reversed(turns) for item in turn), tuple(found)

    def _find(self, response: str, scratch: ResponseStore | None) -> Stored:
        try:
            if scratch is not None:
                with suppress(UnknownResponse):
                    return scratch.get(response)
            return self._store.get(response)
        except UnknownResponse as fault:
            raise UnknownResponse(fault.response, field="previous_response_id") from None

    def _begun(self, request: Respond, response: str, began: float | None = None) -> Stored:
        return Stored(
            id=response,
            status="in_progress",
            created=self._clock.now() if began is None else began,
            input=_items(request),
            found=request.found,
            previous=request.previous,
            echo=request.echo,
        )

    def _done(self, record: Stored, result: Result) -> Stored:
        cut = any(choice.reason == "length" for choice in result.choices)
        status: Status = "incomplete" if cut else "completed"
        finished = record.created + result.timings.total / 1e9  # By the clock that does not jump.
        return replace(record, status=status, finished=finished, result=result)

    def _failed(self, record: Stored, fault: Fault, result: Result) -> Stored:
        """Return the record of a response that broke, with what had come of it."""
        status: Status = "cancelled" if isinstance(fault, Cancelled) else "failed"
        why = (type(fault).__name__, fault.message)
        made = result if result.choices or result.compacted else None
        return replace(record, status=status, finished=self._clock.now(), result=made, fault=why)

    async def _put(self, store: ResponseStore, record: Stored) -> None:
        await self._beside(store.put, record)

    async def _beside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what blocks beside the loop, one after the other."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(work, *args, **kwargs))


def _items(request: Respond) -> tuple[Item, ...]:
    prompt = request.generation.prompt
    assert isinstance(prompt, Conversation)  # noqa: S101
    return prompt.items


def _joined(tools: tuple[ToolSpec, ...], found: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Return the declared tools and those that were found; of two with one name the first counts."""
    names = {flat_name(tool) for tool in tools}
    news = {name: tool for tool in reversed(found) if (name := flat_name(tool)) not in names}
    return (*tools, *reversed(news.values()))


def _refuse_strangers(before: tuple[Item, ...], items: tuple[Item, ...]) -> None:
    """Refuse a result that belongs to no call: who goes on from a response knows its calls."""
    calls = {item.call_id for item in (*before, *items) if isinstance(item, ToolCall)}
    for item in items:
        if isinstance(item, ToolResult) and item.call_id not in calls and item.name is None:
            raise InvalidField("input", f"there is no call {item.call_id!r} in the conversation")
