"""A server on the loopback interface that says what a test wants it to say."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

Route = Callable[[dict[str, Any]], "Said"]


class Said:
    """An answer: a status and a JSON body, or a stream of events; `cut` closes it before its end."""

    def __init__(
        self, body: Any = None, *, status: int = 200, stream: list[Any] | None = None, cut: bool = False
    ) -> None:
        self.body = body
        self.status = status
        self.stream = stream
        self.cut = cut


class Loopback:
    """The server; `asked` holds the path and the body of each request."""

    def __init__(self, routes: dict[str, Route]) -> None:
        self.routes = routes
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.keys: set[str] = set()
        self.address = ""

    def last(self, path: str) -> dict[str, Any]:
        """Return the last body that was sent to a path."""
        return [body for asked, body in self.asked if asked == path][-1]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        path = head[0].split(" ")[1]
        self.keys.add(headers.get("authorization", ""))
        asked = json.loads(body or b"{}")
        self.asked.append((path, asked))
        said = self.routes[path](asked) if path in self.routes else Said({"detail": "Not Found"}, status=404)
        writer.write(written(said))
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()


def written(said: Said) -> bytes:
    """Write an answer down."""
    if said.stream is None:
        data = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
        kind = "application/json" if not isinstance(said.body, bytes) else "text/html"
        head = f"HTTP/1.1 {said.status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        return head.encode() + data
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
    events = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in said.stream]
    if not said.cut:
        events.append(b"data: [DONE]\n\n")
    out = head.encode() + b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events)
    return out if said.cut else out + b"0\r\n\r\n"


@contextlib.asynccontextmanager
async def loopback(routes: dict[str, Route]) -> AsyncIterator[Loopback]:
    """Run a server for as long as the context is open."""
    made = Loopback(routes)
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield made
