"""Transport: how the peer client reaches a server. Two implementations: `wire` and `web`.

The seam exists because the general client costs 160 us for each piece of a stream and a bare socket 34
(docs/engines.md), and because a proxy and TLS need the general one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

Method = Literal["GET", "POST"]


class ConnectionLost(Exception):
    """The server could not be reached, or went away before its answer was whole. Whose fault that is, the owner says."""


class Reply(Protocol):
    """An answer whose head has come."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, names in small letters."""

    def pieces(self) -> AsyncGenerator[bytes]:
        """Give the body as it comes. Raises ConnectionLost."""


class Transport(Protocol):
    """Sends requests to one server."""

    def send(self, method: Method, path: str, body: bytes = b"") -> AbstractAsyncContextManager[Reply]:
        """Send, wait for the head. Leaving the context closes the connection at once. Raises ConnectionLost."""

    async def close(self) -> None:
        """Give back all connections."""


async def read_all(reply: Reply, *, limit: int) -> bytes:
    """Return the body, cut at `limit` bytes."""
    got = bytearray()
    async for piece in reply.pieces():
        got += piece
        if len(got) >= limit:
            break
    return bytes(got[:limit])
