"""A bare HTTP/1.1 client for a server of ours on the loopback interface.

One connection for each request: llama.cpp closes it after a stream although it announces to keep it, so a
kept one fails now and then. No TLS, no proxies, no redirects, no compression: `web` has those.
Neighbours: implements `transport`.

Invariant: a body that is not read is not buffered: reading pauses at `_HIGH` bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

import httptools

from diglot.engines.peer.transport import ConnectionLost, Method, Reply

_HIGH = 1 << 18
_CONNECT_SECONDS = 5.0


class _Exchange(asyncio.Protocol):
    """One request and its answer."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._woken: asyncio.Future[None] | None = None
        self._body: list[bytes] = []
        self._size = 0
        self._has_head = False
        self._ended = False
        self._lost = False
        self._broken = False
        self.status = 0
        self.headers: dict[str, str] = {}

    async def head(self) -> None:
        while not self._has_head:
            if self._lost:
                raise ConnectionLost("closed before it answered")
            await self._wait()

    async def pieces(self) -> AsyncGenerator[bytes]:
        while True:
            if self._body:
                piece = self._body[0] if len(self._body) == 1 else b"".join(self._body)
                self._body.clear()
                if self._size > _HIGH and self._transport is not None:
                    self._transport.resume_reading()
                self._size = 0
                yield piece
            elif self._ended:
                return
            elif self._lost:
                raise ConnectionLost("closed in the middle of an answer")
            else:
                await self._wait()

    async def _wait(self) -> None:
        self._woken = asyncio.get_running_loop().create_future()
        try:
            await self._woken
        finally:
            self._woken = None

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._broken = True
            self.connection_lost(None)
        if self._size > _HIGH and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  its kind makes no difference
        self._lost = True
        self._wake()

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        self._body.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        self._ended = True


class Wire:
    """A transport to `port` of the loopback interface, with `key` as bearer token."""

    def __init__(self, port: int, *, key: str) -> None:
        self._port = port
        self._head = (
            f" HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
            "Content-Type: application/json\r\nConnection: close\r\nContent-Length: "
        )

    @contextlib.asynccontextmanager
    async def send(self, method: Method, path: str, body: bytes = b"") -> AsyncIterator[Reply]:
        """Send over a connection of its own."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                transport, exchange = await loop.create_connection(_Exchange, "127.0.0.1", self._port)
        except OSError as error:  # TimeoutError is one.
            raise ConnectionLost(str(error)) from error
        try:
            transport.write(f"{method} {path}{self._head}{len(body)}\r\n\r\n".encode() + body)
            await exchange.head()
            yield exchange
        finally:
            transport.abort()

    async def close(self) -> None:
        """Do nothing: every connection ends with its request."""
