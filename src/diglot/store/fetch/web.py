"""The web: requests to hosts that are told no more than they need.

Redirects are followed here and not by the HTTP client, because what is sent along is decided anew at each of
them: a token goes to the origin that it was given for, and to no other (GO-2025-3824). Neighbour:
`registry.tokens` answers a host that wants to know who asks.

Invariant: `Authorization` is sent only to an origin that the `Credentials` name it for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Final, Literal, Protocol
from urllib.request import getproxies

import httpx2

from diglot.core.errors import AccessRefused, InvalidField, UpstreamFailed
from diglot.store.fetch.lines import VIEWS, Lines

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH"]
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_HOPS: Final = 5
_MOST_CONNECTIONS: Final = 32
_LARGE: Final = 1 << 20
_UNAUTHORISED: Final = 401
_FORBIDDEN: Final = 403


class Broken(Exception):
    """The connection or the answer broke off: it may go better the next time."""


class Credentials(Protocol):
    """What a host is told of who asks."""

    def header(self, url: httpx2.URL) -> str | None:
        """Return the value of `Authorization` for a URL, None for hosts that are told nothing."""

    async def challenged(self, web: Web, response: httpx2.Response) -> bool:
        """Do what a 401 asks for. Returns whether the request is worth another try."""


class Anonymous:
    """Tells nobody anything."""

    def header(self, url: httpx2.URL) -> str | None:  # noqa: ARG002  the protocol's
        """Return nothing."""
        return None

    async def challenged(self, web: Web, response: httpx2.Response) -> bool:  # noqa: ARG002  the protocol's
        """Return that nothing can be done."""
        return False


class Bearer:
    """Tells one origin a token that was given by setting."""

    def __init__(self, token: str, *, origin: str) -> None:
        self._token = token
        self._origin = origin_of(httpx2.URL(origin))

    def header(self, url: httpx2.URL) -> str | None:
        """Return the token for its origin."""
        return f"Bearer {self._token}" if self._token and origin_of(url) == self._origin else None

    async def challenged(self, web: Web, response: httpx2.Response) -> bool:  # noqa: ARG002  the protocol's
        """Return that nothing can be done."""
        return False


def read_url(text: str) -> httpx2.URL:
    """Read an address that a person wrote. Raises InvalidField."""
    try:
        return httpx2.URL(text)
    except httpx2.InvalidURL as error:
        raise InvalidField("model", str(error)) from error


def origin_of(url: httpx2.URL) -> tuple[str, str, int | None]:
    """Return what two URLs share when they lead to the same server."""
    return url.scheme, url.host.lower(), url.port or {"http": 80, "https": 443}.get(url.scheme)


class Web:
    """Sends requests in the name of the program `agent`. `stall` is how many seconds without a byte are too many."""

    def __init__(self, credentials: Credentials, *, agent: str = "diglot", stall: float = 30.0) -> None:
        self._credentials = credentials
        self._client = httpx2.AsyncClient(
            headers={"user-agent": agent, "accept-encoding": "identity"},
            timeout=httpx2.Timeout(stall, connect=min(stall, 10.0), pool=None),
            transport=_transport(),
            follow_redirects=False,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def open(
        self,
        method: Method,
        url: httpx2.URL,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        signed: str = "",
        follow: bool = True,
    ) -> AsyncIterator[httpx2.Response]:
        """Send, follow redirects unless told otherwise, and give the answer whose head has come; its body is read by `pieces`.

        `signed` is sent as `Authorization` to the host of `url` in place of the credentials, which then have no say.
        Raises Broken when that failed, UpstreamFailed and AccessRefused when it makes no sense to try again.
        """
        hops, tried, first = 0, bool(signed), origin_of(url)
        while True:
            told = (signed if origin_of(url) == first else None) if signed else self._credentials.header(url)
            authorisation = {"authorization": told} if told else {}
            request = self._client.build_request(
                method, url, headers={**(headers or {}), **authorisation}, content=content or None
            )
            response = await self._send(request)
            try:
                if follow and response.status_code in _REDIRECTS and "location" in response.headers:
                    hops += 1
                    url = _next(url, response, hops)
                elif response.status_code == _UNAUTHORISED and not tried:
                    tried = True
                    if not await self._credentials.challenged(self, response):
                        raise AccessRefused(url.host, reason="it wants to know who asks")
                else:
                    yield response
                    return
            finally:
                await response.aclose()

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._client.send(request, stream=True)
        except httpx2.UnsupportedProtocol as error:
            raise UpstreamFailed(request.url.host, reason="it is reached neither by http nor by https") from error
        except httpx2.TransportError as error:
            raise Broken(f"{request.url.host}: {_words(error)}") from error


async def pieces(response: httpx2.Response) -> AsyncGenerator[memoryview | bytes]:
    """Yield the body as it comes, in large pieces; each holds until the next is asked for.

    Raises Broken when it breaks off, UpstreamFailed when it is packed.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise UpstreamFailed(response.url.host, reason="it packs what was asked for as it is")
    views = response.extensions.get(VIEWS)
    try:
        async with aclosing(views() if views else _gathered(response)) as stream:
            async for piece in stream:
                yield piece
    except httpx2.TransportError as error:
        raise Broken(f"{response.url.host}: {_words(error)}") from error


async def _gathered(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield what comes in small pieces in large ones, and before it breaks off what has come."""
    some, size = [], 0
    async with aclosing(response.aiter_raw()) as stream:
        try:
            async for piece in stream:
                some.append(piece)
                size += len(piece)
                if size >= _LARGE:
                    yield b"".join(some)
                    some, size = [], 0
        except httpx2.TransportError:
            yield b"".join(some)
            raise
    yield b"".join(some)


async def read(response: httpx2.Response, *, limit: int) -> bytes:
    """Return the whole of a small body. Raises as `pieces`, and UpstreamFailed over `limit` bytes."""
    got = bytearray()
    stream = pieces(response)
    try:
        async for piece in stream:
            got += piece
            if len(got) > limit:
                raise UpstreamFailed(response.url.host, reason=f"it sends more than the {limit} bytes that may be")
    finally:
        await stream.aclose()
    return bytes(got)


async def require_success(response: httpx2.Response) -> None:
    """Raise what an answer that is no success means: Broken where it may pass, else UpstreamFailed or AccessRefused."""
    if response.is_success:
        return
    host, status = response.url.host, response.status_code
    if status in {_UNAUTHORISED, _FORBIDDEN}:
        raise AccessRefused(host, reason=f"it answers {status}")
    if status in {408, 425, 429} or status >= 500:  # noqa: PLR2004  what HTTP has for "later"
        raise Broken(f"{host}: it answers {status}")
    said = (await read(response, limit=1 << 16)).decode(errors="replace").strip()
    raise UpstreamFailed(host, reason=f"it answers {status}", detail=said[:1000])


def _transport() -> httpx2.AsyncBaseTransport | None:
    """Return the quick way to the world; None, which is the client's own, where a proxy stands between."""
    return None if getproxies().keys() - {"no"} else Lines(most=_MOST_CONNECTIONS)


def _next(url: httpx2.URL, response: httpx2.Response, hops: int) -> httpx2.URL:
    """Return where a redirect leads."""
    if hops > _MOST_HOPS:
        raise UpstreamFailed(url.host, reason="it leads in circles")
    try:
        target = url.join(response.headers["location"])
    except httpx2.InvalidURL as error:
        raise UpstreamFailed(url.host, reason="it leads nowhere") from error
    if url.scheme == "https" and target.scheme != "https":
        raise UpstreamFailed(url.host, reason="it leads from a safe connection to one that is not")
    return target


def _words(error: httpx2.TransportError) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "nothing came for too long"
    return str(error) or type(error).__name__
