"""WebSockets: a connection on which requests follow one another, and their events come back as messages.

It knows no protocol: a message is read and answered by a `Socket` of a dialect, and every line that comes of it is a
message. What is said on one connection is remembered for it alone, in the scratch, as long as it lasts.
Neighbours: `streaming` sends the events, `serve` is the way of plain HTTP, `guard` stands before both,
`socket_protocol` tells when the server goes down.

Invariants: one request of a connection is answered at a time, in order; when the client leaves, the work ends; no
more than a few messages wait; when the server goes down, what has come is answered before the connection is closed.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from contextlib import suppress
from typing import Final

import msgspec
from starlette.types import Receive, Scope, Send

from diglot.core.errors import AnyFault, BodyTooLarge
from diglot.core.ports import ResponseStore
from diglot.core.request import Answering
from diglot.dialects.operation import Socket, Stamp, Wire
from diglot.http.body import aside, measured, read_head
from diglot.http.journal import Entry, Journal, entry_of
from diglot.http.serve import World
from diglot.http.socket_protocol import GOING_DOWN
from diglot.http.streaming import Streaming
from diglot.services.visit import Visit

log = logging.getLogger(__name__)

_WAITING: Final = 8
_TOO_MANY: Final = 1008  # "Policy violation": RFC 6455, section 7.4.1.
_GOING_DOWN: Final = 1012  # "Service restart": the IANA registry of close codes.


class SocketEndpoint:
    """An ASGI application for one socket of a dialect."""

    def __init__(self, socket: Socket, world: World, journal: Journal, *, dialect: str) -> None:
        self._socket = socket
        self._dialect = dialect
        self._journal = journal
        self._world = world
        self._where = f"WebSocket {socket.path}"
        self._streaming = Streaming(self._where, clock=world.clock, ids=world.ids, heartbeat=world.limits.heartbeat)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the requests of one connection until it ends."""
        entry = entry_of(scope)
        entry.dialect, entry.operation = self._dialect, self._where
        await receive()  # That it wants to connect.
        await send({"type": "websocket.accept"})
        waiting: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
        answering = asyncio.create_task(self._answer_all(waiting, read_head(scope), send, connection=entry))
        closing: set[asyncio.Task[None]] = set()
        try:
            await self._read_all(receive, send, waiting=waiting, closing=closing)
        finally:
            for task in (answering, *closing):
                task.cancel()
            await asyncio.wait({answering, *closing})

    async def _read_all(
        self, receive: Receive, send: Send, *, waiting: asyncio.Queue[bytes], closing: set[asyncio.Task[None]]
    ) -> None:
        """Take in messages until the client leaves or has sent too many at once; none once the server goes down."""
        while (message := await receive())["type"] != "websocket.disconnect":
            if message["type"] == GOING_DOWN:
                closing.add(asyncio.create_task(_close_after(waiting, send)))
            if closing:
                continue
            if waiting.full():
                log.info("a client sent too many messages at once")
                await _close(send, _TOO_MANY, "too many requests wait")
                return
            text = message.get("text")
            waiting.put_nowait(message.get("bytes") or b"" if text is None else text.encode("utf-8", "replace"))

    async def _answer_all(self, waiting: asyncio.Queue[bytes], head: Wire, send: Send, *, connection: Entry) -> None:
        scratch = self._world.scratch() if self._world.scratch else None
        for number in itertools.count(1):
            body = await waiting.get()
            messages = Messages(send)

            async def refuse(fault: AnyFault, messages: Messages = messages) -> None:
                await messages.piece(self._socket.error(fault))

            wire = msgspec.structs.replace(head, body=body)
            with self._journal.message(connection, number) as entry:
                answering = self._answer(wire, scratch, messages, visit=entry.visit)
                await self._streaming.guarded(answering, refuse, visit=entry.visit)
            waiting.task_done()

    async def _answer(self, wire: Wire, scratch: ResponseStore | None, messages: Messages, *, visit: Visit) -> None:
        world = self._world
        if len(wire.body) > world.limits.max_body:
            raise BodyTooLarge(world.limits.max_body)
        parsed = await aside(self._socket.parse, await measured(wire, wire.body, world.limits))
        self._streaming.tell(parsed.notes)
        assert isinstance(parsed.request, Answering), "only what yields events is asked for so"  # noqa: S101
        stamp = Stamp(id=world.ids.new(), now=world.clock.now())
        renderer = self._socket.stream(parsed.view, stamp)
        events = world.desk.answer(parsed.request, id=stamp.id, began=stamp.now, scratch=scratch, visit=visit)
        await self._streaming.run(events, renderer.feed, renderer=renderer, sink=messages, visit=visit)


async def _close_after(waiting: asyncio.Queue[bytes], send: Send) -> None:
    """Close the connection once everything that has come on it is answered."""
    await waiting.join()
    await _close(send, _GOING_DOWN, "the server is going down")


async def _close(send: Send, code: int, reason: str) -> None:
    with suppress(OSError):  # ASGI's word for a client that has left, which `receive` tells too.
        await send({"type": "websocket.close", "code": code, "reason": reason})


class Messages:
    """One answer on its way out, each line a message. Implements `streaming.Sink`."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._lock = asyncio.Lock()
        self.begun = False
        self.quiet = True

    async def piece(self, data: bytes) -> None:
        """Send the lines of a piece."""
        async with self._lock:
            for line in filter(None, data.split(b"\n")):
                self.begun, self.quiet = True, False
                with suppress(OSError):  # As above: the work is ended from there.
                    await self._send({"type": "websocket.send", "text": line.decode()})

    async def end(self) -> None:
        """Do nothing: the connection goes on."""
