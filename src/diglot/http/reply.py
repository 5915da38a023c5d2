"""Sending replies over ASGI. It knows bytes and headers, not what they mean. Neighbours: `serve`, `guard`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from http import HTTPStatus

from starlette.types import Send

from diglot.core.errors import AnyFault
from diglot.dialects.operation import Rendered

Refusal = Callable[[str, AnyFault], Rendered]
"""Renders a fault in the form of the dialect that a path belongs to."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


async def send_whole(reply: Rendered, send: Send, *, head_only: bool = False) -> None:
    """Send a whole reply; `head_only` leaves the body out, as HEAD wants it."""
    headers = [(b"content-type", reply.media_type.encode()), (b"content-length", str(len(reply.body)).encode())]
    headers += [(name.lower().encode(), _header(value)) for name, value in reply.headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head_only else reply.body})


def unless_known(reply: Rendered, known: str) -> Rendered:
    """Return the reply, or that it has not changed: `known` are the tags of what the client has (RFC 9110, 13.1.2)."""
    tag = reply.headers.get("ETag")
    if tag is None or tag not in {each.strip().removeprefix("W/") for each in known.split(",")}:
        return reply
    return Rendered(b"", HTTPStatus.NOT_MODIFIED, reply.media_type, reply.headers)


def _header(value: str) -> bytes:
    """Return a header's value as it can be sent: a name that a client chose can hold anything (RFC 9110, 5.5)."""
    return _CONTROL.sub(" ", value).encode("latin-1", "replace")


class Outlet:
    """A streamed reply on its way out.

    `begun` once a byte of it has gone, `quiet` while nothing has since it was last set.
    """

    def __init__(self, send: Send, *, media_type: str) -> None:
        self._send = send
        self._media_type = media_type.encode()
        self._lock = asyncio.Lock()
        self.begun = False
        self.quiet = True

    async def piece(self, data: bytes) -> None:
        """Send a piece; the first one takes the headers along."""
        if not data:
            return
        async with self._lock:
            self.quiet = False
            await self._begin()
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """End the stream, also one of no pieces."""
        await self._begin()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self) -> None:
        if not self.begun:
            self.begun = True
            headers = [(b"content-type", self._media_type), (b"cache-control", b"no-cache")]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
