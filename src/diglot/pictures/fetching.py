"""Fetching: pictures behind links, from the public network only.

Each host is resolved here, all of its addresses are judged, and the connection is made to one that was: a second
lookup could be answered differently. The same is done anew at each redirect. It is deliberately no way for anything
else to be fetched, knows no proxy, keeps no connection, and sends nothing but what it wants.
Neighbour: `addresses` judges.

Invariant: no byte is sent to an address that `is_open` did not let pass, and no more than `limit` bytes are kept.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from httptools import HttpParserError, HttpResponseParser

from diglot.core.errors import InvalidField
from diglot.core.images import NotAnImage, image_of
from diglot.core.items import Image
from diglot.pictures.addresses import Open, is_public

_SUCCESS: Final = 200
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_HOPS: Final = 3
_MOST_HEAD: Final = 1 << 16
_LONGEST: Final = 8192
_PIECE: Final = 1 << 16
_PORTS: Final = {"http": 80, "https": 443}
_REQUEST: Final = (
    "GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: diglot\r\nAccept: image/png, image/jpeg, image/webp\r\n"
    "Accept-Encoding: identity\r\nConnection: close\r\n\r\n"
)


class CannotFetch(Exception):
    """A link leads to no picture; the text says why, in words for the client."""


class Fetcher:
    """Fetches the pictures of one request: within `patience` seconds, at most `limit` bytes together."""

    def __init__(
        self, *, limit: int, patience: float, is_open: Open = is_public, tls: ssl.SSLContext | None = None
    ) -> None:
        self._limit = limit
        self._patience = patience
        self._is_open = is_open
        self._tls = tls

    async def fetch(self, links: Mapping[int, str]) -> dict[int, Image]:
        """Return the pictures at their places among all. Raises InvalidField, which names the place."""
        images: dict[int, Image] = {}
        left, place = self._limit, 0
        try:
            async with asyncio.timeout(self._patience):
                for place, link in links.items():
                    data = await self._follow(link, left)
                    left -= len(data)
                    images[place] = image_of(data)
        except TimeoutError:
            raise InvalidField(f"images[{place}]", "it takes too long to fetch") from None
        except (CannotFetch, NotAnImage) as error:
            raise InvalidField(f"images[{place}]", f"it cannot be fetched: {error}") from None
        return images

    async def _follow(self, link: str, limit: int) -> bytes:
        for _ in range(_MOST_HOPS + 1):
            url = _read(link)
            reply = await self._get(url, limit)
            if reply.status not in _REDIRECTS:
                return reply.content()
            link = _joined(link, reply.location)
            if url.scheme == "https" and not link.startswith("https:"):
                raise CannotFetch("it leads from a safe connection to one that is not")
        raise CannotFetch("it is redirected too often")

    async def _get(self, url: SplitResult, limit: int) -> _Reply:
        host, port = _host(url), url.port or _PORTS[url.scheme]
        address = await self._address(host, port)
        safe = url.scheme == "https"
        try:
            reader, writer = await asyncio.open_connection(
                address, port, ssl=self._safely() if safe else None, server_hostname=host if safe else None
            )
        except OSError:
            raise CannotFetch(f"{host} cannot be reached") from None
        try:
            target = quote(url.path or "/", safe="/%:@!$&'()*+,;=~") + (
                "?" + quote(url.query, safe="/%:@!$&'()*+,;=~?") if url.query else ""
            )
            shown = f"[{host}]" if ":" in host else host
            named = shown if port == _PORTS[url.scheme] else f"{shown}:{port}"
            writer.write(_REQUEST.format(target=target, host=named).encode("ascii"))
            return await _reply(reader, host, limit)
        except OSError:
            raise CannotFetch(f"{host} broke off") from None
        finally:
            writer.transport.abort()

    async def _address(self, host: str, port: int) -> str:
        """Return the address to connect to. One that is not open shuts the host: its next answer may be that one."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError:
            raise CannotFetch(f"there is no host {host}") from None
        addresses = [str(each[4][0]) for each in found]
        if not addresses or not all(map(self._is_open, addresses)):
            raise CannotFetch(f"{host} is not on the public network")
        return addresses[0]

    def _safely(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


class _Reply:
    """An answer as it comes. Its methods are called by the parser."""

    def __init__(self, host: str, limit: int) -> None:
        self._host = host
        self._limit = limit
        self.status = 0
        self.location = ""
        self.begun = False
        self.ended = False
        self.too_large = False
        self._body = bytearray()

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"location":
            self.location = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.begun = True

    def on_body(self, body: bytes) -> None:
        self.too_large = self.too_large or len(self._body) + len(body) > self._limit
        if not self.too_large:
            self._body += body

    def on_message_complete(self) -> None:
        self.ended = True

    def content(self) -> bytes:
        """Return the body of an answer that is one."""
        if self.status != _SUCCESS:
            raise CannotFetch(f"{self._host} answers {self.status}")
        return bytes(self._body)


async def _reply(reader: asyncio.StreamReader, host: str, limit: int) -> _Reply:
    """Read an answer to its end, or to where it is clear that it is a redirect."""
    reply = _Reply(host, limit)
    parser = HttpResponseParser(reply)
    taken = 0
    while not reply.ended and (data := await reader.read(_PIECE)):
        taken += len(data)
        try:
            parser.feed_data(data)
        except HttpParserError:
            raise CannotFetch(f"{host} does not speak HTTP") from None
        if not reply.begun and taken > _MOST_HEAD:
            raise CannotFetch(f"{host} says too much before it answers")
        if reply.too_large:
            raise CannotFetch(f"it is larger than the limit of {limit} bytes that are left")
        if reply.begun and parser.get_status_code() in _REDIRECTS:
            break
    if not reply.begun:
        raise CannotFetch(f"{host} broke off")
    reply.status = parser.get_status_code()
    return reply


def _read(link: str) -> SplitResult:
    """Read a link. Raises CannotFetch."""
    try:
        url = urlsplit(link)
        ports = url.port, url.hostname
    except ValueError:
        raise CannotFetch("the link is none") from None
    if len(link) > _LONGEST or url.scheme not in _PORTS or not ports[1]:
        raise CannotFetch("the link is none")
    if "@" in url.netloc:
        raise CannotFetch("a link may not say who asks")
    return url


def _joined(link: str, place: str) -> str:
    try:
        return urljoin(link, place)
    except ValueError:
        raise CannotFetch("the link is none") from None


def _host(url: SplitResult) -> str:
    """Return the host as resolvers and certificates name it."""
    try:
        return (url.hostname or "").encode("idna").decode("ascii")
    except UnicodeError:
        raise CannotFetch("the link is none") from None
