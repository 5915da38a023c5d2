"""The general HTTP client, for servers elsewhere: TLS, proxies, kept connections.

Neighbours: implements `transport`; `wire` is the quick one for the loopback interface.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping

import httpx2

from diglot.engines.peer.transport import ConnectionLost, Method, Reply

_CONNECT_SECONDS = 10.0
_SILENCE_SECONDS = 600.0
_CONNECTIONS = 256


class _Answer:
    """An answer of the general client, in the form of the port."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def pieces(self) -> AsyncGenerator[bytes]:
        try:
            async for piece in self._response.aiter_raw():
                yield piece
        except httpx2.TransportError as error:
            raise ConnectionLost(type(error).__name__) from error


class Web:
    """A transport to the server at `base`, an address without a trailing slash and without `/v1`."""

    def __init__(self, base: str, *, key: str | None = None) -> None:
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        self._client = httpx2.AsyncClient(
            base_url=base,
            headers=headers,
            timeout=httpx2.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=_CONNECTIONS, keepalive_expiry=4.0),
        )

    @contextlib.asynccontextmanager
    async def send(self, method: Method, path: str, body: bytes = b"") -> AsyncIterator[Reply]:
        """Send over a kept connection where there is one."""
        try:
            async with self._client.stream(method, path, content=body) as response:
                yield _Answer(response)
        except httpx2.TransportError as error:
            raise ConnectionLost(type(error).__name__) from error

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()
