"""The server as the command line sees it: over HTTP, like every other client.

The HTTP client is imported when the first request goes out. Whatever goes wrong is told as `NoServer` or
`Refused`. Neighbours: `wire` (what comes back), every command that asks the server.

Invariant: a stream that is left is closed at once, and so the answer is given up on the other side.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Self, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from diglot.cli.failure import Failure, NoServer, Refused
from diglot.cli.wire import ErrorReply
from diglot.core.foreign import UNREADABLE
from diglot.framing.ndjson import NdjsonDecoder
from diglot.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

T = TypeVar("T")
CONNECT: Final = 5.0
PATIENCE: Final = 30.0
_PIECE: Final = 1 << 20
_NOT_FOUND: Final = 404
_ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104  read, not bound to

url_option = click.option("--url", metavar="URL", help="Base URL of the server, instead of host and port.")


def base_url(settings: Settings) -> str:
    """Return where a server with these settings answers on this machine."""
    host = _ANYWHERE.get(settings.host, settings.host)
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def is_loopback(host: str) -> bool:
    """Whether this names the machine itself."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class _Content:
    """The bytes of an open file, on their way."""

    def __init__(self, file: BinaryIO, progress: Callable[[int, int], None]) -> None:
        self._file = file
        self._progress = progress
        self.size = os.fstat(file.fileno()).st_size

    def __iter__(self) -> Iterator[bytes]:
        done = 0
        while piece := self._file.read(_PIECE):
            yield piece
            done += len(piece)
            self._progress(done, self.size)


class Server:
    """A server at a base URL. Used in a `with` block. `patience` is how long a whole answer may take to begin."""

    def __init__(self, url: str, *, key: str = "", patience: float = PATIENCE) -> None:
        self.url = url.rstrip("/")
        self._patience = patience
        self._key = key
        self._open: httpx2.Client | None = None

    @classmethod
    def at(cls, settings: Settings, url: str | None) -> Self:
        """Return the server at `url`, else the one that these settings describe. Raises click.UsageError."""
        if url is None:
            return cls(base_url(settings), key=settings.key)
        url = url if "://" in url else f"http://{url}"
        try:
            parts = urlsplit(url)
            known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            known = False
        if not known:
            raise click.UsageError(f"{url} is no address of a server")
        return cls(url, key=settings.key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()

    def get(self, path: str, kind: type[T]) -> T:
        """Return what stands at `path`. Raises NoServer, Refused."""
        with self._sent("GET", path, None) as response:
            return _decoded(response.read(), kind)

    def post(self, path: str, body: Mapping[str, Any], kind: type[T]) -> T:
        """Return the answer to `body`. Raises NoServer, Refused."""
        with self._sent("POST", path, body) as response:
            return _decoded(response.read(), kind)

    def post_raw(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Return the bytes of the answer to `body`. Raises NoServer, Refused."""
        with self._sent("POST", path, body) as response:
            return response.read()

    def tell(self, method: str, path: str, body: Mapping[str, Any]) -> None:
        """Send `body` where only success or failure is the answer. Raises NoServer, Refused."""
        with self._sent(method, path, body):
            pass

    def has(self, path: str) -> bool:
        """Whether something stands at `path`. Raises NoServer, Refused."""
        try:
            with self._sent("HEAD", path, None):
                return True
        except Refused as refusal:
            if refusal.status != _NOT_FOUND:
                raise
            return False

    def upload(self, path: str, source: Path, progress: Callable[[int, int], None]) -> None:
        """Send a file, telling bytes done and bytes in all. Raises NoServer, Refused, OSError."""
        with source.open("rb") as file, self._sent("POST", path, _Content(file, progress), endless=True):
            pass

    def stream(self, path: str, body: Mapping[str, Any], kind: type[T]) -> Iterator[T]:
        """Yield the answer line by line as it is made. Raises NoServer, Refused."""
        decoder = NdjsonDecoder()
        with self._sent("POST", path, body, endless=True) as response:
            for piece in response.iter_bytes():
                yield from (_decoded(line, kind) for line in decoder.feed(piece))
            yield from (_decoded(line, kind) for line in decoder.close())

    @contextmanager
    def _sent(
        self, method: str, path: str, body: Mapping[str, Any] | _Content | None, *, endless: bool = False
    ) -> Iterator[httpx2.Response]:
        """Send a request and give its response, whose body is not read yet."""
        import httpx2  # noqa: PLC0415  only who talks to a server pays for it

        timeout = httpx2.Timeout(None if endless else self._patience, connect=CONNECT)
        try:
            sent = body if body is None or isinstance(body, _Content) else msgspec.json.encode(body)
            sized = {"content-length": str(sent.size)} if isinstance(sent, _Content) else None
            request = self._client().build_request(method, path, content=sent, headers=sized, timeout=timeout)
            response = self._client().send(request, stream=True)
            try:
                if response.is_error:
                    raise _refusal(response)
                yield response
            finally:
                response.close()
        except httpx2.ConnectError:
            raise NoServer(self.url) from None
        except httpx2.TransportError as error:
            raise Failure(
                f"the server at {self.url} stopped answering: {str(error) or type(error).__name__}"
            ) from error

    def _client(self) -> httpx2.Client:
        """Return the client, made when it is first needed. No proxy stands between us and this machine."""
        import httpx2  # noqa: PLC0415

        if self._open is None:
            headers = {"content-type": "application/json"}
            if self._key:
                headers["authorization"] = f"Bearer {self._key}"
            near = is_loopback(urlsplit(self.url).hostname or "")
            self._open = httpx2.Client(base_url=self.url, headers=headers, trust_env=not near)
        return self._open


def _refusal(response: httpx2.Response) -> Refused:
    text = response.read()
    try:
        message = msgspec.json.decode(text, type=ErrorReply).error
    except UNREADABLE:
        message = ""
    status = response.status_code
    return Refused(message or f"the server answered {status} {response.reason_phrase}", status=status)


def _decoded(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except UNREADABLE as error:
        raise Failure(f"the server gave an answer that makes no sense: {error}") from error
