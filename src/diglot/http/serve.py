"""Serving: the one way from a request to its reply, for every operation of every dialect.

It reads, lets the operation parse, hands the request in at the desk, and sends what the operation renders.
It knows no protocol. This is one of the three borders where an unknown exception is caught: it becomes
`EngineFailed` with an id that finds the log line.

Invariants: headers go out with the first bytes that a renderer gives, so that every fault before them is a
status code; a stream that broke ends in its dialect's own way; when the client leaves, the work ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec
from starlette.types import Receive, Scope, Send

from diglot.core.assemble import gather
from diglot.core.errors import AnyFault, EngineFailed, Fault
from diglot.core.ports import Clock, Ids
from diglot.core.request import (
    Answering,
    Generation,
    Load,
    Moving,
    Pull,
    Push,
    Receiving,
    Request,
    Respond,
    StoreBlob,
    Unload,
)
from diglot.dialects.operation import Dialect, Ending, Operation, Stamp
from diglot.http.body import chunks_of, read_head, read_wire, while_listening
from diglot.http.reply import Outlet, send_whole
from diglot.services.desk import Desk

log = logging.getLogger(__name__)
E = TypeVar("E")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one request may take: bytes of its body, seconds for it to arrive, seconds of silence before a sign of life."""

    max_body: int
    body_timeout: float
    heartbeat: float


class World(msgspec.Struct, frozen=True, kw_only=True):
    """What every endpoint is given."""

    desk: Desk
    clock: Clock
    ids: Ids
    limits: Limits


class Endpoint:
    """An ASGI application for one operation."""

    def __init__(self, operation: Operation, dialect: Dialect, world: World) -> None:
        self._operation = operation
        self._error = operation.error or dialect.error
        self._world = world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        outlet = Outlet(send, media_type=self._operation.stream_type)
        try:
            await self._serve(scope, receive, send, outlet)
        except Fault as error:
            self._note(_known(error))
            await self._refuse(_known(error), send, outlet)
        except Exception as error:  # noqa: BLE001  a border: a bug must be answered too
            await self._refuse(self._unknown(error), send, outlet)

    async def _refuse(self, fault: AnyFault, send: Send, outlet: Outlet) -> None:
        if not outlet.begun:
            await send_whole(self._error(fault), send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, outlet: Outlet) -> None:
        world, operation = self._world, self._operation
        if operation.upload:
            await self._take_in(scope, receive, send)
            return
        wire = await read_wire(scope, receive, limit=world.limits.max_body, patience=world.limits.body_timeout)
        parsed = operation.parse(wire)
        stamp = Stamp(id=world.ids.new(), now=world.clock.now())
        if parsed.stream and operation.stream is not None:
            renderer = operation.stream(parsed.view, stamp)
            assert isinstance(parsed.request, Answering), "only what yields events is streamed so"  # noqa: S101
            events = world.desk.answer(parsed.request, id=stamp.id)
            await while_listening(self._stream(events, renderer.feed, renderer, outlet), receive)
        elif parsed.stream and operation.steps is not None:
            teller = operation.steps(parsed.view, stamp)
            assert isinstance(parsed.request, Moving), "only what yields steps is streamed so"  # noqa: S101
            steps = world.desk.move(parsed.request)
            await while_listening(self._stream(steps, teller.feed, teller, outlet), receive)
        else:
            answer = await while_listening(self._answer(parsed.request, stamp), receive)
            reply = operation.whole(parsed.view, stamp, answer)
            await send_whole(reply, send, head_only=scope["method"] == "HEAD")

    async def _take_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose body is handed on as it comes."""
        world, operation = self._world, self._operation
        parsed = operation.parse(read_head(scope))
        assert isinstance(parsed.request, Receiving), "only what takes bytes is uploaded to"  # noqa: S101
        answer = await world.desk.receive(parsed.request, chunks_of(receive, patience=world.limits.body_timeout))
        await send_whole(operation.whole(parsed.view, Stamp(id=world.ids.new(), now=world.clock.now()), answer), send)

    async def _answer(self, request: Request, stamp: Stamp) -> Any:
        match request:
            case Respond(background=True):
                return await self._world.desk.later(request, id=stamp.id)
            case Generation() | Respond() | Load() | Unload():
                async with aclosing(self._world.desk.answer(request, id=stamp.id)) as events:
                    return await gather(events)
            case Pull() | Push():
                async with aclosing(self._world.desk.move(request)) as steps:
                    async for _ in steps:
                        pass
                return None
            case StoreBlob():
                raise AssertionError("what brings bytes is taken in, not asked")
            case _:
                return await self._world.desk.ask(request)

    async def _stream(
        self, events: AsyncGenerator[E], feed: Callable[[E, float], bytes], renderer: Ending, outlet: Outlet
    ) -> None:
        pulse = asyncio.create_task(self._pulse(renderer, outlet))
        now = self._world.clock.now
        try:
            async with aclosing(events):
                async for event in events:
                    await outlet.piece(feed(event, now()))
            await outlet.piece(renderer.close())
        except Fault as error:
            fault = _known(error)
            if not outlet.begun:
                raise
            self._note(fault)
            await outlet.piece(renderer.fail(fault))
        except Exception as error:
            fault = self._unknown(error)
            if not outlet.begun:
                raise fault from error
            await outlet.piece(renderer.fail(fault))
        finally:
            pulse.cancel()
        await outlet.end()

    async def _pulse(self, renderer: Ending, outlet: Outlet) -> None:
        """Send a sign of life whenever nothing was sent for a while."""
        while True:
            outlet.quiet = True
            await self._world.clock.sleep(self._world.limits.heartbeat)
            if outlet.quiet:
                await outlet.piece(renderer.beat())

    def _note(self, fault: AnyFault) -> None:
        """Log a fault. Its message can hold a client's words, so above debug only its kind is written."""
        detail = getattr(fault, "detail", "")
        level = logging.WARNING if detail else logging.INFO
        if not isinstance(fault, EngineFailed) or not fault.id:
            log.log(level, "%s %s: %s", self._operation.method, self._operation.path, type(fault).__name__)
        log.debug("%s %s", fault.message, detail)

    def _unknown(self, error: Exception) -> EngineFailed:
        name = self._world.ids.new()
        log.error("error %s in %s %s", name, self._operation.method, self._operation.path, exc_info=error)
        return EngineFailed(f"internal error {name}, see the server's log", id=name)


def _known(error: Fault) -> AnyFault:
    """Return the fault as one of the closed set; `Fault` itself is never raised."""
    assert isinstance(error, AnyFault)  # noqa: S101
    return error
