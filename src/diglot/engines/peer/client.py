"""The peer client: one model behind an OpenAI-compatible server, asked over HTTP.

Nothing here knows how the server came to be there: `llamacpp` and `remote` own that, and say what a lost
connection means. Neighbours: `body` writes, `transport` carries, `answer` reads; `counting` and `vectors` ask
for what is no answer.

Invariant: leaving `generate` at any event closes its connection before control returns.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import TypeVar

import msgspec

from diglot.core.errors import Fault
from diglot.core.events import Event
from diglot.core.foreign import UNREADABLE
from diglot.core.ports import Ids
from diglot.core.request import Generation
from diglot.engines.peer.answer import Answer
from diglot.engines.peer.body import Target, encode, generation_body
from diglot.engines.peer.chunks import Chunk, decode_chunk
from diglot.engines.peer.faults import MAX_ERROR, Blame, fault_of
from diglot.engines.peer.transport import ConnectionLost, Method, Reply, Transport, read_all
from diglot.framing.lines import LineTooLong
from diglot.framing.sse import SseDecoder

MAX_REPLY = 256 * 1024 * 1024
_DONE = b"[DONE]"
T = TypeVar("T")
Lost = Callable[[str], Awaitable[Fault]]
"""Says what a lost connection means, given how it was lost."""


class Peer:
    """One model of one server."""

    def __init__(self, transport: Transport, *, target: Target, blame: Blame, lost: Lost, ids: Ids) -> None:
        self.target = target
        self.blame = blame
        self._transport = transport
        self._lost = lost
        self._ids = ids

    async def generate(self, request: Generation) -> AsyncGenerator[Event]:
        """Answer a request. Faults as in `core.ports.Engine.generate`."""
        path, body = generation_body(request, self.target)
        answer = Answer(request, model=self.blame.model, ids=self._ids)
        try:
            async with self._transport.send("POST", path, body) as reply:
                await self._accepted(reply, request)
                async with aclosing(self._chunks(reply, request)) as chunks:
                    async for some in chunks:
                        for chunk in some:
                            for event in answer.feed(chunk):
                                yield event
        except ConnectionLost as lost:
            raise await self._lost(str(lost)) from lost
        if answer.reason is None:
            raise await self._lost("ended without a reason to finish")
        for event in answer.close():
            yield event

    async def _accepted(self, reply: Reply, request: Generation | None) -> None:
        """Raise the fault that a status tells."""
        if reply.status != HTTPStatus.OK:
            body = await read_all(reply, limit=MAX_ERROR)
            raise fault_of(reply.status, body, blame=self.blame, headers=reply.headers, request=request)

    async def _chunks(self, reply: Reply, request: Generation) -> AsyncGenerator[list[Chunk]]:
        """Give the chunks of a stream up to its end, those that came together together."""
        if not reply.headers.get("content-type", "").startswith("text/event-stream"):
            raise self.blame.failed("it sent no stream of events")
        decoder = SseDecoder()
        async with aclosing(reply.pieces()) as pieces:
            async for piece in pieces:
                try:
                    messages = decoder.feed(piece)
                except LineTooLong as error:
                    raise self.blame.failed(str(error)) from error
                if messages and messages[-1].data == _DONE:
                    yield [self._chunk(message.data, request) for message in messages[:-1]]
                    return
                yield [self._chunk(message.data, request) for message in messages]

    def _chunk(self, data: bytes, request: Generation) -> Chunk:
        """Read one chunk. An error among the chunks carries its status as a field."""
        try:
            chunk = decode_chunk(data)
        except UNREADABLE as error:
            detail = data[:MAX_ERROR].decode(errors="replace")
            raise self.blame.failed("its stream cannot be read", detail=detail) from error
        if chunk.error is None:
            return chunk
        status = chunk.error.code if isinstance(chunk.error.code, int) else HTTPStatus.INTERNAL_SERVER_ERROR
        raise fault_of(status, data, blame=self.blame, headers={}, request=request)

    async def call(self, path: str, body: object, *, reply_type: type[T], request: Generation | None = None) -> T:
        """Post a body and read a whole answer of a known type."""
        return await self._whole("POST", path, body=encode(body), reply_type=reply_type, request=request)

    async def get(self, path: str, *, reply_type: type[T]) -> T:
        """Get a whole answer of a known type."""
        return await self._whole("GET", path, body=b"", reply_type=reply_type, request=None)

    async def _whole(
        self, method: Method, path: str, *, body: bytes, reply_type: type[T], request: Generation | None
    ) -> T:
        try:
            async with self._transport.send(method, path, body) as reply:
                await self._accepted(reply, request)
                data = await read_all(reply, limit=MAX_REPLY)
        except ConnectionLost as lost:
            raise await self._lost(str(lost)) from lost
        try:
            return msgspec.json.decode(data, type=reply_type)
        except UNREADABLE as error:
            detail = f"{path}: {error}"
            raise self.blame.failed("its answer cannot be read", detail=detail) from error

    async def close(self) -> None:
        """Give back the connections."""
        await self._transport.close()
