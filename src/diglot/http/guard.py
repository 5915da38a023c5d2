"""The guard: keeps strangers and web pages out.

A server on loopback can still be reached by a web page: by a plain POST from any origin, or by a name that
an attacker's DNS points to 127.0.0.1. So the Host must be one of ours, and an Origin, where there is one,
must be local or allowed by setting. With a key set, every request but the health check must bring it. It is
deliberately no authentication of people: that is a proxy's business (SECURITY.md).

Invariant: a request that is refused has touched nothing behind the guard.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diglot.core.errors import AnyFault, Forbidden, KeyMissing
from diglot.http.journal import entry_of
from diglot.http.reply import Refusal, send_whole
from diglot.services.visit import kind_of

log = logging.getLogger(__name__)

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104  a name to compare with, not to bind
_LOCAL_DOMAINS = (".localhost", ".local", ".internal")  # Public DNS has none of these: RFC 6761, RFC 6762, ICANN.
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]*)(:\d*)?")
_PUBLIC_PATHS = frozenset({"/", "/health"})
_APP_SCHEMES = frozenset(
    {
        "app",
        "file",
        "tauri",
        "vscode-webview",
        "vscode-file",
        "chrome-extension",
        "moz-extension",
        "safari-web-extension",
    }
)
_SAFE = frozenset({"GET", "HEAD"})
_METHODS = b"GET, POST, DELETE, HEAD, OPTIONS"
_HEADERS = (
    b"Authorization, X-Api-Key, Content-Type, User-Agent, Accept, X-Requested-With, OpenAI-Beta, OpenAI-Organization, "
    b"OpenAI-Project, x-stainless-arch, x-stainless-async, x-stainless-custom-poll-interval, x-stainless-helper-method, "
    b"x-stainless-lang, x-stainless-os, x-stainless-package-version, x-stainless-poll-helper, x-stainless-retry-count, "
    b"x-stainless-runtime, x-stainless-runtime-version, x-stainless-timeout"
)


class Guard:
    """ASGI middleware. `hosts` and `origins` are allowed besides the local ones; `*` allows every origin."""

    def __init__(
        self, app: ASGIApp, *, hosts: tuple[str, ...], origins: tuple[str, ...], key: str, refusal: Refusal
    ) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._key = key.encode()  # As clients send it: RFC 9110 leaves it to us how to read bytes beyond ASCII.
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        origin = headers.get(b"origin", b"").decode("latin-1")
        host = headers.get(b"host", b"").decode("latin-1")
        if sum(name.lower() == b"host" for name, _ in scope["headers"]) > 1:
            fault: AnyFault = Forbidden("there is more than one Host")  # Two readers of them may not read the same one.
        elif not self._knows_host(host):
            fault = Forbidden(f"the Host {host!r} is not served here; the setting `hosts` allows further names")
        elif origin and not self._knows_origin(origin, host):
            fault = Forbidden(f"the Origin {origin!r} may not call; the setting `origins` allows further ones")
        elif not origin and _is_of_another_site(scope, headers):
            fault = Forbidden("another site may not call without saying who it is")
        elif scope.get("method") == "OPTIONS":
            await _preflight(headers, send)
            return
        else:
            send = _with_origin(send, origin) if origin else send
            if not self._key or scope["path"] in _PUBLIC_PATHS or self._has_key(headers):
                await self._app(scope, receive, send)
                return
            fault = KeyMissing()
        await self._refuse(scope, send, fault)

    def _knows_host(self, host: str) -> bool:
        name = _host_name(host)
        if name is None:
            return False
        if not name or name in self._hosts or name in _LOCAL_NAMES or name.endswith(_LOCAL_DOMAINS):
            return True
        return _is_address(name)  # A page cannot make a browser send an address but the one it connects to.

    def _knows_origin(self, origin: str, host: str) -> bool:
        origin = origin.lower().rstrip("/")
        if "*" in self._origins or origin in self._origins:
            return True
        scheme, _, place = origin.partition("://")
        if scheme in _APP_SCHEMES:
            return True
        name = _host_name(place) or ""
        local = name in _LOCAL_NAMES or name.endswith(".localhost")  # Tauri's pages on Windows: http://tauri.localhost.
        return scheme in ("http", "https") and (local or place == host.lower())

    def _has_key(self, headers: dict[bytes, bytes]) -> bool:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        given = token.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"")
        return hmac.compare_digest(given, self._key)

    async def _refuse(self, scope: Scope, send: Send, fault: AnyFault) -> None:
        entry_of(scope).visit.outcome = kind_of(fault)
        # These are a client's words; the journal has a line without them.
        log.debug("refused %r: %s", scope["path"], fault.message)
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send_whole(self._refusal(scope["path"], fault), send)


def _is_of_another_site(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Say whether a browser tells that another site is behind a request that may change something.

    Browsers send an Origin with those, but for old ones with forms (Fetch Metadata, 2.2). Links may lead here.
    """
    return headers.get(b"sec-fetch-site") == b"cross-site" and scope.get("method") not in _SAFE


def _host_name(host: str) -> str | None:
    """Return the name in a Host header, without port and brackets, in lower case; None where it is malformed."""
    found = _HOST.fullmatch(host.lower())
    return found[1].strip("[]").rstrip(".") if found else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def _preflight(asked: dict[bytes, bytes], send: Send) -> None:
    headers = [
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _HEADERS),
        (b"access-control-max-age", b"600"),
        (b"vary", b"Origin"),
    ]
    if b"origin" in asked:
        headers.append((b"access-control-allow-origin", asked[b"origin"]))
    if b"access-control-request-private-network" in asked:  # Chromium asks before a public page reaches loopback.
        headers.append((b"access-control-allow-private-network", b"true"))
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _with_origin(send: Send, origin: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            extra = [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-expose-headers", b"*"),  # So that a page learns when to come back.
                (b"vary", b"Origin"),
            ]
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return sending
