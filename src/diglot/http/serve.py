"""Serving: the one way from a request to its reply, for every operation of every dialect.

It reads, lets the operation parse, hands the request in at the desk, and sends what the operation renders.
It knows no protocol. Neighbours: `streaming` sends events and catches what goes wrong, `websocket` is the other way in.

Invariants: headers go out with the first bytes that a renderer gives, so that every fault before them is a
status code; a stream that broke ends in its dialect's own way; when the client leaves, the work ends.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from diglot.core.assemble import gather
from diglot.core.errors import AnyFault
from diglot.core.ports import Clock, Ids, ResponseStore
from diglot.core.request import (
    Answering,
    CreateModel,
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
from diglot.dialects.operation import Dialect, Operation, Stamp
from diglot.http.body import Limits, aside, chunks_of, read_head, read_wire, uncoded, while_listening
from diglot.http.journal import entry_of
from diglot.http.reply import Outlet, send_whole, unless_known
from diglot.http.streaming import Streaming
from diglot.services.desk import Desk
from diglot.services.visit import Visit


class World(msgspec.Struct, frozen=True, kw_only=True):
    """What every endpoint is given. `scratch` makes what one connection remembers its responses in."""

    desk: Desk
    clock: Clock
    ids: Ids
    limits: Limits
    scratch: Callable[[], ResponseStore] | None = None


class Endpoint:
    """An ASGI application for one operation."""

    def __init__(self, operation: Operation, dialect: Dialect, world: World) -> None:
        self._operation = operation
        self._error = operation.error or dialect.error
        self._world = world
        where = f"{operation.method} {operation.path}"
        self._named = (dialect.name, where)
        self._streaming = Streaming(where, clock=world.clock, ids=world.ids, heartbeat=world.limits.heartbeat)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        entry = entry_of(scope)
        entry.dialect, entry.operation = self._named
        outlet = Outlet(send, media_type=self._operation.stream_type)

        async def refuse(fault: AnyFault) -> None:
            if not outlet.begun:
                await send_whole(self._error(fault), send)

        serving = self._serve(scope, receive, send, outlet=outlet)
        await self._streaming.guarded(serving, refuse, visit=entry.visit)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, *, outlet: Outlet) -> None:
        world, operation, visit = self._world, self._operation, entry_of(scope).visit
        if operation.upload:
            await self._take_in(scope, receive, send)
            return
        wire = await read_wire(scope, receive, world.limits)
        parsed = await aside(operation.parse, wire)
        self._streaming.tell(parsed.notes)
        stamp = Stamp(id=world.ids.new(), now=world.clock.now())
        if parsed.stream and operation.stream is not None:
            renderer = operation.stream(parsed.view, stamp)
            assert isinstance(parsed.request, Answering), "only what yields events is streamed so"  # noqa: S101
            events = world.desk.answer(parsed.request, id=stamp.id, began=stamp.now, visit=visit)
            sending = self._streaming.run(events, renderer.feed, renderer=renderer, sink=outlet, visit=visit)
            await while_listening(sending, receive)
        elif parsed.stream and operation.steps is not None:
            teller = operation.steps(parsed.view, stamp)
            assert isinstance(parsed.request, Moving), "only what yields steps is streamed so"  # noqa: S101
            steps = world.desk.move(parsed.request)
            sending = self._streaming.run(steps, teller.feed, renderer=teller, sink=outlet, visit=visit)
            await while_listening(sending, receive)
        else:
            answer = await while_listening(self._answer(parsed.request, stamp, visit), receive)
            reply = unless_known(operation.whole(parsed.view, stamp, answer), wire.headers.get("if-none-match", ""))
            await send_whole(reply, send, head_only=scope["method"] == "HEAD")

    async def _take_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose body is handed on as it comes."""
        world, operation = self._world, self._operation
        parsed = operation.parse(uncoded(read_head(scope)))
        assert isinstance(parsed.request, Receiving), "only what takes bytes is uploaded to"  # noqa: S101
        answer = await world.desk.receive(parsed.request, chunks_of(receive, patience=world.limits.body_timeout))
        await send_whole(operation.whole(parsed.view, Stamp(id=world.ids.new(), now=world.clock.now()), answer), send)

    async def _answer(self, request: Request, stamp: Stamp, visit: Visit) -> Any:
        match request:
            case Respond(background=True):
                return await self._world.desk.later(request, id=stamp.id, caller=visit.caller)
            case Generation() | Respond() | Load() | Unload():
                async with aclosing(
                    self._world.desk.answer(request, id=stamp.id, began=stamp.now, visit=visit)
                ) as events:
                    return await gather(events)
            case Pull() | Push() | CreateModel():
                async with aclosing(self._world.desk.move(request)) as steps:
                    async for _ in steps:
                        pass
                return None
            case StoreBlob():
                raise AssertionError("what brings bytes is taken in, not asked")
            case _:
                return await self._world.desk.ask(request, visit=visit)
