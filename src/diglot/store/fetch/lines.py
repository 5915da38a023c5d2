"""Lines: connections that are read in threads, as a transport of the HTTP client that asks.

Gigabytes come through here. The client's own transport takes them in 64 kB at a time, in Python and on the event
loop, which cost twice what a download has to; a thread that waits in the kernel brings a megabyte at once, into one buffer for
each answer (docs/benchmarks.md). Connecting stays on the loop, where it can be given up. It knows no redirects, no tokens
and no proxies. Neighbour: `web`, which decides what is sent to whom.

Invariant: no thread reads a connection that was given up for longer than it takes to shut it.
"""

from __future__ import annotations

import asyncio
import math
import select
import socket
import ssl
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from io import DEFAULT_BUFFER_SIZE
from typing import Any, Final, TypeVar

import httpx2

T = TypeVar("T")
_PIECE: Final = 1 << 20
_GATHER: Final = 0.05
"""Seconds that a piece is gathered for, so that what comes slowly is told of in time."""
_NEXT: Final = 2.0
"""Seconds after which another address of a host is tried."""
_PORTS: Final = {"http": 80, "https": 443}

VIEWS: Final = "views"
"""The extension of a response that gives its body without copies."""

_Origin = tuple[str, str, int]


class Line:
    """One connection. Its methods block, for `stall` seconds without a byte at most; one thread calls them at a time, any may `shut`."""

    def __init__(self, origin: _Origin, connected: socket.socket, *, stall: float | None) -> None:
        self.origin = origin
        self.free = False
        self._socket = connected
        self._socket.settimeout(stall)
        self._connection = HTTPConnection(origin[1], origin[2])
        self._connection.auto_open = 0  # It is connected once, and not anew behind our back.
        self._reply: HTTPResponse | None = None
        self._left: int | None = None
        self._is_bare = False  # What comes next is the body as it is, with nothing of it in another buffer.
        self._held = threading.Lock()

    def secure(self, context: ssl.SSLContext) -> None:
        """Greet by TLS. Raises OSError."""
        with self._held:
            name = self.origin[1]
            self._socket = context.wrap_socket(self._socket, server_hostname=name, do_handshake_on_connect=False)
            self._socket.do_handshake()

    def ask(self, request: httpx2.Request, content: bytes) -> HTTPResponse:
        """Send a request, and return the head of the answer. Raises OSError, HTTPException."""
        with self._held:
            self.free = False
            self._connection.sock = self._socket
            target = request.url.raw_path.decode("ascii")
            self._connection.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.raw:
                self._connection.putheader(name.decode("ascii"), value)
            self._connection.endheaders(content or None)
            self._reply = self._connection.getresponse()
            self._left, self._is_bare = self._reply.length, False
            if self._left == 0:
                self._end()
            return self._reply

    def fill(self, buffer: memoryview) -> int:
        """Take what has come by now, as much as there is room for; nothing only at the end. Raises OSError, HTTPException."""
        with self._held:
            if self._left == 0:  # To a socket no room means as much as it likes.
                return 0
            size = self._gather(buffer[: self._left])
            if self._left is not None:
                self._left -= size
                if self._left and not size:
                    raise ConnectionResetError("it ended early")
            if self._left == 0 or not size:
                self._end()
            return size

    def _gather(self, buffer: memoryview) -> int:
        until, size = math.inf, 0
        try:
            while count := self._read_into(buffer[size:]):
                size += count
                until = min(until, time.monotonic() + _GATHER)
                if size == len(buffer) or not self._goes_on(until):
                    break
        except OSError:
            if not size:  # Else the next one tells: what has come is not lost for that.
                raise
        return size

    def _read_into(self, buffer: memoryview) -> int:
        """Take what has come, waiting for the first of it only."""
        assert self._reply is not None  # noqa: S101  read before it was asked
        if self._is_bare:
            return self._socket.recv_into(buffer)
        if self._left is None:
            data = self._reply.read1(len(buffer))
        else:
            data = self._reply.read1(min(len(buffer), DEFAULT_BUFFER_SIZE))  # All that came with the head, if it did.
            self._is_bare = True
        buffer[: len(data)] = data
        return len(data)

    def _end(self) -> None:
        assert self._reply is not None  # noqa: S101
        self._reply.close()
        self.free = not self._reply.will_close

    def _goes_on(self, until: float) -> bool:
        """Whether more comes by then; of what has no length, whether it is there: its end may lie in a buffer already."""
        left = until - time.monotonic()
        return left > 0 and not self.is_quiet(left if self._left is not None else 0.0)

    def is_quiet(self, seconds: float = 0.0) -> bool:
        """Whether nothing has come since the last answer or piece, not even the end, and nothing does for so long."""
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(seconds * 1000)

    def shut(self) -> None:
        """Let a thread that waits here wait no longer."""
        with suppress(OSError):  # It may be shut already. Not by TLS: that would let the thread read on, unprotected.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close, once no thread reads any more."""
        with self._held:
            if self._reply is not None:
                self._reply.close()
            self._socket.close()


class Lines(httpx2.AsyncBaseTransport):
    """Reads up to `most` connections at once, and keeps them for the next request to the same origin."""

    def __init__(self, *, most: int, secure: ssl.SSLContext | None = None) -> None:
        self._secure = secure
        self._threads = ThreadPoolExecutor(most, "line")
        self._open: set[Line] = set()
        self._idle: list[Line] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises the HTTP client's TransportError."""
        content, origin = await request.aread(), _origin(request.url)
        line = self._kept(origin) or await self._connected(origin, request.extensions["timeout"])
        try:
            reply = await self.run(line.ask, request, content)
        except BaseException:
            self.give_back(line)
            raise
        head = [(name.encode("ascii"), value.encode("latin-1")) for name, value in reply.getheaders()]
        body = _Body(line, self)
        return httpx2.Response(reply.status, headers=head, stream=body, extensions={VIEWS: body.views})

    async def aclose(self) -> None:
        """Close all connections."""
        self._idle.clear()
        for line in tuple(self._open):
            line.free = False
            self.give_back(line)
        await asyncio.to_thread(self._threads.shutdown)

    def give_back(self, line: Line) -> None:
        """Keep a connection for the next request, or close it if its answer was not read to the end."""
        if line not in self._open or line in self._idle:
            return
        if line.free:
            self._idle.append(line)
        else:
            self._open.discard(line)
            line.shut()
            self._threads.submit(line.close)

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do in a thread what waits for the network. Raises the HTTP client's TransportError."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(str(error)) from error
        except (OSError, HTTPException) as error:
            raise httpx2.ReadError(str(error)) from error

    def _kept(self, origin: _Origin) -> Line | None:
        for line in [line for line in self._idle if line.origin == origin]:
            self._idle.remove(line)
            if line.is_quiet():
                return line
            line.free = False
            self.give_back(line)
        return None

    async def _connected(self, origin: _Origin, patience: dict[str, float | None]) -> Line:
        try:
            async with asyncio.timeout(patience["connect"]):
                line = Line(origin, await _socket_to(origin), stall=patience["read"])
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from error
        self._open.add(line)
        if origin[0] == "https":
            try:
                if self._secure is None:  # It takes reading all the certificates that this machine trusts.
                    self._secure = await self.run(httpx2.create_ssl_context)
                await self.run(line.secure, self._secure)
            except BaseException:
                self.give_back(line)
                raise
        return line


class _Body(httpx2.AsyncByteStream):
    """The body of one answer."""

    def __init__(self, line: Line, lines: Lines) -> None:
        self._line = line
        self._lines = lines

    async def views(self) -> AsyncGenerator[memoryview]:
        """Yield it as it comes, a megabyte at most. What was yielded holds until the next is asked for."""
        buffer = memoryview(bytearray(_PIECE))
        while not self._line.free and (count := await self._lines.run(self._line.fill, buffer)):
            yield buffer[:count]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self.views()) as views:
            async for view in views:
                yield bytes(view)

    async def aclose(self) -> None:
        self._lines.give_back(self._line)


def _origin(url: httpx2.URL) -> _Origin:
    if url.scheme not in _PORTS:
        raise httpx2.UnsupportedProtocol(f"{url.scheme} is not spoken here")
    return url.scheme, url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme]


async def _socket_to(origin: _Origin) -> socket.socket:
    """Connect to the first address of a host that takes us. Raises OSError."""
    loop = asyncio.get_running_loop()
    known = await loop.getaddrinfo(origin[1], origin[2], type=socket.SOCK_STREAM)
    failure = OSError("it has no address")
    for place, (family, kind, protocol, _, address) in enumerate(known):
        connected = socket.socket(family, kind, protocol)
        try:
            connected.setblocking(False)
            async with asyncio.timeout(None if place + 1 == len(known) else _NEXT):
                await loop.sock_connect(connected, address)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            connected.close()
            failure = error
        except BaseException:
            connected.close()
            raise
        else:
            return connected
    raise failure
