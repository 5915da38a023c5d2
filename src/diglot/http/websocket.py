"""WebSockets: a connection on which requests follow one another, and their events come back as messages.

It knows no protocol: a message is read and answered by a `Socket` of a dialect, and every line that comes of it is a
message. What is said on one connection is remembered for it alone, in the scratch, as long as it lasts.
Neighbours: `streaming` sends the events, `serve` is the way of plain HTTP, `guard` stands before both.

Invariants: one request of a connection is answered at a time, in order; when the client leaves, the work ends; no
more than a few messages wait.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import msgspec
from starlette.types import Receive, Scope, Send

from diglot.core.errors import AnyFault, BodyTooLarge
from diglot.core.ports import ResponseStore
from diglot.core.request import Answering
from diglot.dialects.operation import Socket, Stamp, Wire
from diglot.http.body import read_head
from diglot.http.serve import World
from diglot.http.streaming import Streaming

log = logging.getLogger(__name__)

_WAITING: Final = 8
_TOO_MANY: Final = 1008  # "Policy violation": RFC 6455, section 7.4.1.


class SocketEndpoint:
    """An ASGI application for one socket of a dialect."""

    def __init__(self, socket: Socket, world: World) -> None:
        self._socket = socket
        self._world = world
        where = f"WebSocket {socket.path}"
        self._streaming = Streaming(where, clock=world.clock, ids=world.ids, heartbeat=world.limits.heartbeat)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the requests of one connection until it ends."""
        await receive()  # That it wants to connect.
        await send({"type": "websocket.accept"})
        waiting: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
        answering = asyncio.create_task(self._answer_all(waiting, read_head(scope), send))
        try:
            await self._read_all(receive, send, waiting)
        finally:
            answering.cancel()
            await asyncio.wait({answering})

    async def _read_all(self, receive: Receive, send: Send, waiting: asyncio.Queue[bytes]) -> None:
        """Take in messages until the client leaves or has sent too many at once."""
        while (message := await receive())["type"] != "websocket.disconnect":
            if waiting.full():
                log.info("a client sent too many messages at once")
                await send({"type": "websocket.close", "code": _TOO_MANY, "reason": "too many requests wait"})
                return
            text = message.get("text")
            waiting.put_nowait(message.get("bytes") or b"" if text is None else text.encode("utf-8", "replace"))

    async def _answer_all(self, waiting: asyncio.Queue[bytes], head: Wire, send: Send) -> None:
        scratch = self._world.scratch() if self._world.scratch else None
        while True:
            body = await waiting.get()
            messages = Messages(send)

            async def refuse(fault: AnyFault, messages: Messages = messages) -> None:
                await messages.piece(self._socket.error(fault))

            wire = msgspec.structs.replace(head, body=body)
            await self._streaming.guarded(self._answer(wire, scratch, messages), refuse)

    async def _answer(self, wire: Wire, scratch: ResponseStore | None, messages: Messages) -> None:
        world = self._world
        if len(wire.body) > world.limits.max_body:
            raise BodyTooLarge(world.limits.max_body)
        parsed = self._socket.parse(wire)
        self._streaming.tell(parsed.notes)
        assert isinstance(parsed.request, Answering), "only what yields events is asked for so"  # noqa: S101
        stamp = Stamp(id=world.ids.new(), now=world.clock.now())
        renderer = self._socket.stream(parsed.view, stamp)
        events = world.desk.answer(parsed.request, id=stamp.id, scratch=scratch)
        await self._streaming.run(events, renderer.feed, renderer=renderer, sink=messages)


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
                await self._send({"type": "websocket.send", "text": line.decode()})

    async def end(self) -> None:
        """Do nothing: the connection goes on."""
