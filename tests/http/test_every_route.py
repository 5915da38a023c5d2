"""The guard before every route of the real application: the table is walked, so that none is forgotten."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.types import ASGIApp, Message

from diglot.app import build
from diglot.settings import Settings

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
PUBLIC: Final = frozenset({"/", "/health"})
PLAIN: Final = b'{"model": "scripted", "prompt": "hi", "input": "hi"}'
EVIL: Final = "https://evil.example"
SIMPLE: Final = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "")
"""What a page may send anywhere without a preflight (Fetch, "CORS-safelisted request-header")."""


class Reply(msgspec.Struct):
    """What came back, and whether anybody read the request's body."""

    status: int
    body: bytes
    headers: dict[str, str]
    read: bool

    @property
    def error(self) -> Any:
        """What stands under `error`."""
        return msgspec.json.decode(self.body)["error"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def application(home: Path, **settings: Any) -> ASGIApp:
    return build(Settings(home=home, engine="scripted", read_ollama=False, **settings))


def paths(app: Any) -> Iterator[tuple[str, bool]]:
    """Yield each path of the route table, with whether it is a WebSocket's, and some that are not there."""
    while not hasattr(app, "routes"):
        app = app._app  # noqa: SLF001  the table is behind the guard
    for route in app.routes:
        assert isinstance(route, Route | WebSocketRoute | Mount), "a route of a kind that is not walked"
        yield re.sub(r"{\w+(:\w+)?}", "a", route.path) or "/", isinstance(route, WebSocketRoute)
    for path in ("/nothing", "/v1/nothing", "/api/nothing", "//", "/v1//models", "/health/", "/invocations"):
        yield path, False
    yield "/nothing", True


def scope_of(kind: str, path: str, headers: dict[str, str], method: str = "GET") -> dict[str, Any]:
    told = [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items() if value]
    return {"type": kind, "http_version": "1.1", "method": method, "path": path, "query_string": b"", "headers": told}


async def ask(app: ASGIApp, method: str, path: str, body: bytes = PLAIN, /, **headers: str) -> Reply:
    """Ask, with a body that would be right for most routes."""
    sent: list[Message] = []
    read = False

    async def receive() -> Message:
        nonlocal read
        if read:
            await asyncio.Event().wait()  # It stays for the answer.
        read = True
        return {"type": "http.request", "body": body}

    async def send(message: Message) -> None:
        sent.append(message)

    named = {name.replace("_", "-"): value for name, value in headers.items()}
    await app(scope_of("http", path, named, method), receive, send)
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Reply(sent[0]["status"], b"".join(each["body"] for each in sent[1:]), told, read)


async def connect(app: ASGIApp, path: str, **headers: str) -> list[Message]:
    """Open a WebSocket and leave."""
    sent: list[Message] = []
    coming: list[Message] = [{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}]

    async def receive() -> Message:
        return coming.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = scope_of("websocket", path, headers)
    await app(scope, receive, send)
    return sent


def has_the_form_of_its_dialect(path: str, reply: Reply) -> bool:
    return isinstance(reply.error, str if path.startswith("/api") else dict)


def test_the_table_is_really_walked(home: Path) -> None:
    found = dict(paths(application(home)))
    assert {"/", "/api/chat", "/v1/chat/completions", "/api/blobs/a", "/openapi.json", "/health"} <= found.keys()
    assert found["/v1/responses"], "the WebSocket comes last in the table"


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example"}, {"host": "localhost.evil.example:11435"}, {"origin": EVIL}, {"origin": "null"}],
)
async def test_no_route_answers_a_foreign_host_or_origin(home: Path, headers: dict[str, str]) -> None:
    app = application(home)
    for path, is_socket in paths(app):
        if is_socket:
            assert await connect(app, path, **headers) == [{"type": "websocket.close", "code": 1008}]
            continue
        for method in (*METHODS, "OPTIONS"):
            reply = await ask(app, method, path, **headers)
            assert (reply.status, reply.read) == (403, False), (method, path)
            assert has_the_form_of_its_dialect(path, reply), path
            assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("kind", SIMPLE)
@pytest.mark.parametrize(
    "sender",
    [{"origin": EVIL, "sec_fetch_site": "cross-site"}, {"origin": "null"}, {"sec_fetch_site": "cross-site"}],
)
async def test_no_route_answers_a_simple_post_of_another_site(home: Path, sender: dict[str, str], kind: str) -> None:
    app = application(home)
    for path, is_socket in paths(app):
        if not is_socket:
            reply = await ask(app, "POST", path, content_type=kind, **sender)
            assert (reply.status, reply.read) == (403, False), path
            assert "access-control-allow-origin" not in reply.headers


async def test_a_link_on_another_site_leads_here_and_changes_nothing(home: Path) -> None:
    app = application(home)
    assert (await ask(app, "GET", "/", sec_fetch_site="cross-site", sec_fetch_mode="navigate")).status == 200
    assert (await ask(app, "DELETE", "/api/delete", sec_fetch_site="cross-site")).status == 403


@pytest.mark.parametrize("kind", SIMPLE)
async def test_a_program_may_leave_the_content_type_as_it_is(home: Path, kind: str) -> None:
    reply = await ask(application(home), "POST", "/api/generate", content_type=kind)
    assert reply.status == 200


@pytest.mark.parametrize("key", ["", "wrong", "secret and more"])
async def test_with_a_key_only_the_health_checks_do_without(home: Path, key: str) -> None:
    app = application(home, key="secret")
    bearer = {"authorization": f"Bearer {key}" if key else ""}
    for path, is_socket in paths(app):
        if is_socket:
            assert await connect(app, path, **bearer) == [{"type": "websocket.close", "code": 1008}]
            continue
        for method in METHODS:
            reply = await ask(app, method, path, **bearer)
            if path in PUBLIC:
                assert reply.status != 401
            else:
                assert (reply.status, reply.read) == (401, False), (method, path)
                assert method == "HEAD" or has_the_form_of_its_dialect(path, reply), path


async def test_with_the_key_a_web_socket_opens(home: Path) -> None:
    app = application(home, key="secret")
    sent = await connect(app, "/v1/responses", authorization="Bearer secret")
    assert sent[0]["type"] == "websocket.accept"


async def test_a_page_that_may_call_can_read_why_it_was_refused(home: Path) -> None:
    app = application(home, key="secret", origins=("https://chat.example",))
    reply = await ask(app, "POST", "/v1/chat/completions", origin="https://chat.example")
    assert (reply.status, reply.headers["access-control-allow-origin"]) == (401, "https://chat.example")
    assert reply.headers["access-control-expose-headers"] == "*"
