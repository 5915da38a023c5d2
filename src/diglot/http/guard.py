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
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diglot.core.errors import AnyFault, Forbidden, KeyMissing
from diglot.dialects.operation import Rendered
from diglot.http.reply import send_whole

log = logging.getLogger(__name__)

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104  a name to compare with, not to bind
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
_METHODS = b"GET, POST, DELETE, HEAD, OPTIONS"
_HEADERS = (
    b"Authorization, Content-Type, User-Agent, Accept, X-Requested-With, OpenAI-Beta, OpenAI-Organization, "
    b"OpenAI-Project, x-stainless-arch, x-stainless-async, x-stainless-custom-poll-interval, x-stainless-helper-method, "
    b"x-stainless-lang, x-stainless-os, x-stainless-package-version, x-stainless-poll-helper, x-stainless-retry-count, "
    b"x-stainless-runtime, x-stainless-runtime-version, x-stainless-timeout"
)

Refusal = Callable[[str, AnyFault], Rendered]
"""Renders a fault in the form of the dialect that a path belongs to."""


class Guard:
    """ASGI middleware. `hosts` and `origins` are allowed besides the local ones; `*` allows every origin."""

    def __init__(
        self, app: ASGIApp, *, hosts: tuple[str, ...], origins: tuple[str, ...], key: str, refusal: Refusal
    ) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._key = key.encode()
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        origin = headers.get(b"origin", "")
        host = headers.get(b"host", "")
        if not self._known_host(host):
            fault = Forbidden(f"the Host {host!r} is not served here; the setting `hosts` allows further names")
            await self._refuse(scope, send, fault)
        elif origin and not self._known_origin(origin, host):
            fault = Forbidden(f"the Origin {origin!r} may not call; the setting `origins` allows further ones")
            await self._refuse(scope, send, fault)
        elif scope.get("method") == "OPTIONS" and origin:
            await _preflight(origin, send)
        elif self._key and scope["path"] not in ("/", "/health") and not self._has_key(headers):
            await self._refuse(scope, send, KeyMissing())
        else:
            await self._app(scope, receive, _with_origin(send, origin) if origin else send)

    def _known_host(self, host: str) -> bool:
        name = _host_name(host)
        if not name or name in self._hosts or name in _LOCAL_NAMES or name.endswith(".localhost"):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True  # A page cannot make a browser send a bare address that is not the one it connects to.

    def _known_origin(self, origin: str, host: str) -> bool:
        if "*" in self._origins or origin.lower().rstrip("/") in self._origins:
            return True
        parts = urlsplit(origin.lower())
        if parts.scheme in _APP_SCHEMES:
            return True
        if parts.scheme not in ("http", "https"):
            return False
        return (parts.hostname or "") in _LOCAL_NAMES or parts.netloc == host.lower()

    def _has_key(self, headers: dict[bytes, str]) -> bool:
        scheme, _, token = headers.get(b"authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else headers.get(b"x-api-key", "")
        return hmac.compare_digest(given.encode(), self._key)

    async def _refuse(self, scope: Scope, send: Send, fault: AnyFault) -> None:
        log.warning("refused %s %s: %s", scope.get("method", "WEBSOCKET"), scope["path"], fault.message)
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send_whole(self._refusal(scope["path"], fault), send)


def _host_name(host: str) -> str:
    """Return the name in a Host header, without port and brackets, in lower case."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return host.lower()


async def _preflight(origin: str, send: Send) -> None:
    headers = [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _HEADERS),
        (b"access-control-max-age", b"600"),
        (b"vary", b"Origin"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _with_origin(send: Send, origin: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            extra = [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return sending
