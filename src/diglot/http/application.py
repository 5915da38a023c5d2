"""The application: every table of every dialect, mounted.

A path is looked up here once; what stands behind it is an `Endpoint`. HEAD is answered wherever GET is,
because clients ask it before anything else, and slashes too many are passed over, because people end a base URL with
one. It knows no dialect's name: the tables are handed in.

Invariant: whatever is asked, the answer has the form of the dialect that the path belongs to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

from diglot.core.errors import AnyFault, UnknownPath, WrongMethod
from diglot.dialects.operation import Dialect, Rendered
from diglot.http.guard import Guard
from diglot.http.journal import Journal, Journalled, entry_of
from diglot.http.metrics import Metrics
from diglot.http.openapi import openapi_document
from diglot.http.reply import send_whole
from diglot.http.serve import Endpoint, World
from diglot.http.websocket import SocketEndpoint
from diglot.services.visit import kind_of

Application = ASGIApp
"""What an ASGI server runs."""


class Access:
    """Who may call: further Host names, further origins, and the key if there is one."""

    def __init__(self, *, hosts: tuple[str, ...] = (), origins: tuple[str, ...] = (), key: str = "") -> None:
        self.hosts = hosts
        self.origins = origins
        self.key = key


def build_application(
    dialects: Sequence[Dialect], world: World, *, access: Access, close: Callable[[], Awaitable[None]] | None = None
) -> ASGIApp:
    """Return the ASGI application that serves these dialects; `close` is called when it ends."""
    fallback = Fallback(dialects)
    by_path: dict[str, dict[str, ASGIApp]] = defaultdict(dict)
    for dialect in dialects:
        for operation in dialect.operations:
            by_path[operation.path][operation.method] = Endpoint(operation, dialect, world)
    document = Rendered(openapi_document(dialects))
    journal = Journal(clock=world.clock, ids=world.ids, totals=world.desk.totals)
    by_path["/openapi.json"]["GET"] = Fixed(document, "GET /openapi.json")
    by_path["/health"]["GET"] = Fixed(Rendered(b'{"status":"ok"}'), "GET /health")
    by_path["/metrics"]["GET"] = Metrics(world.desk, journal)
    # The order matters only for paths with parameters: the fixed ones come first.
    routes: list[BaseRoute] = [
        Route(path, Methods(apps, fallback)) for path, apps in sorted(by_path.items(), key=lambda row: "{" in row[0])
    ]
    routes += [
        WebSocketRoute(socket.path, SocketEndpoint(socket, world, journal, dialect=dialect.name))
        for dialect in dialects
        for socket in dialect.sockets
    ]
    # A bare router: everything that raises is caught in `serve`, so no error middleware wraps every piece that is sent.
    router = Router(routes, redirect_slashes=False, default=fallback, lifespan=_ending_with(close) if close else None)
    guard = Guard(
        Straightened(router), hosts=access.hosts, origins=access.origins, key=access.key, refusal=fallback.render
    )
    return Journalled(guard, journal)


def _ending_with(close: Callable[[], Awaitable[None]]) -> Lifespan[Any]:
    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        yield
        await close()

    return lifespan


class Straightened:
    """ASGI middleware. A path with slashes too many is the one without: a redirect would turn a POST into a GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on."""
        path: str = scope.get("path", "")
        if "//" in path or path.endswith("/"):
            scope = {**scope, "path": "/" + "/".join(filter(None, path.split("/")))}
        await self._app(scope, receive, send)


class Methods:
    """The operations at one path, by method."""

    def __init__(self, apps: dict[str, ASGIApp], fallback: Fallback) -> None:
        self._apps = {**({"HEAD": apps["GET"]} if "GET" in apps else {}), **apps}
        self._fallback = fallback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on to the operation of the method, or say which methods there are."""
        app = self._apps.get(scope["method"])
        if app is not None:
            await app(scope, receive, send)
            return
        allowed = tuple(sorted(self._apps))
        fault = WrongMethod(scope["method"], path=scope["path"], allowed=allowed)
        entry_of(scope).visit.outcome = kind_of(fault)
        reply = self._fallback.render(scope["path"], fault)
        headers = {**reply.headers, "allow": ", ".join(allowed)}
        await send_whole(Rendered(reply.body, reply.status, reply.media_type, headers), send)


class Fixed:
    """A reply that is always the same."""

    def __init__(self, reply: Rendered, operation: str) -> None:
        self._reply = reply
        self._operation = operation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  ASGI
        """Send it."""
        entry_of(scope).operation = self._operation
        await send_whole(self._reply, send, head_only=scope["method"] == "HEAD")


class Fallback:
    """Renders what happens outside of every operation, in the form of the dialect with the longest matching prefix."""

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        self._dialects = sorted(dialects, key=lambda dialect: -len(dialect.prefix))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  ASGI
        """Answer for a path that nothing stands at."""
        fault = UnknownPath(scope["path"])
        entry_of(scope).visit.outcome = kind_of(fault)
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        else:
            await send_whole(self.render(scope["path"], fault), send)

    def render(self, path: str, fault: AnyFault) -> Rendered:
        """Render a fault for a path."""
        fitting = (dialect for dialect in self._dialects if path.startswith(dialect.prefix))
        return next(fitting, self._dialects[-1]).error(fault)
