"""The guard: by Host, by Origin, by key. Rows are (header, whether it may call)."""

import hmac
import logging
from typing import Any

import pytest

from diglot.http.application import Access
from tests.http.world import World

HOSTS = [
    ("localhost", True),
    ("LOCALHOST:11435", True),
    ("localhost.", True),
    ("127.0.0.1:11435", True),
    ("127.9.9.9", True),
    ("[::1]:11435", True),
    ("0.0.0.0:11435", True),
    ("192.168.1.5:11435", True),
    ("app.localhost", True),
    ("box.local", True),
    ("host.docker.internal:11435", True),
    ("proxy.example", True),
    ("", True),
    ("evil.example", False),
    ("evil.example:11435", False),
    ("localhost.evil.example", False),
    ("notlocalhost", False),
    ("127.0.0.1.evil.example", False),
    ("evil.example@127.0.0.1", False),
    ("localhost/evil.example", False),
    ("[::1", False),
    ("[::1].evil.example", False),
    ("localhost:11435:1", False),
    ("localhost evil.example", False),
    ("²", False),
]

ORIGINS = [
    ("", True),
    ("http://localhost", True),
    ("http://localhost:3000", True),
    ("https://127.0.0.1:8443", True),
    ("http://[::1]:5173", True),
    ("http://0.0.0.0:1", True),
    ("HTTP://LOCALHOST:3000", True),
    ("https://chat.example", True),
    ("https://chat.example/", True),
    ("http://192.168.1.5:11435", True),  # The very host that it calls.
    ("vscode-webview://1abc", True),
    ("chrome-extension://abc", True),
    ("tauri://localhost", True),
    ("http://tauri.localhost", True),
    ("http://app.localhost:3000", True),
    ("null", False),
    ("https://evil.example", False),
    ("http://localhost.evil.example", False),
    ("http://evil.example@localhost", False),
    ("http://localhost@evil.example", False),
    ("http://192.168.1.6", False),
    ("http://chat.example", False),
    ("https://chat.example:444", False),
    ("http://box.local", False),
    ("http://localhost.", True),
    ("ftp://localhost", False),
    ("http://[::1", False),
    ("http://", False),
    ("localhost", False),
]


@pytest.mark.parametrize(("host", "may"), HOSTS)
async def test_only_names_that_are_ours_are_served(host: str, may: bool) -> None:  # noqa: FBT001
    world = World(access=Access(hosts=("Proxy.example",)))
    reply = await world.get("POST", "/say", headers={"host": host})
    assert reply.status == (200 if may else 403)
    assert bool(world.loader.begun) is may


async def test_two_hosts_are_one_too_many() -> None:
    world = World()
    for hosts in ({"host": "evil.example", "Host": "localhost"}, {"host": "localhost", "Host": "localhost"}):
        assert (await world.get("POST", "/say", headers=hosts)).status == 403
    assert not world.loader.begun


@pytest.mark.parametrize(("origin", "may"), ORIGINS)
@pytest.mark.parametrize("kind", ["text/plain", "application/json"])
async def test_only_pages_that_are_ours_may_call_and_read(origin: str, kind: str, may: bool) -> None:  # noqa: FBT001
    world = World(access=Access(origins=("https://chat.example",)))
    headers = {"origin": origin, "content-type": kind, "host": "192.168.1.5:11435"}
    reply = await world.get("POST", "/say", headers=headers)
    assert reply.status == (200 if may else 403)
    assert reply.headers.get("access-control-allow-origin") == (origin if may and origin else None)
    assert bool(world.loader.begun) is may


@pytest.mark.parametrize(("origin", "may"), ORIGINS)
async def test_a_preflight_is_answered_as_the_call_would_be(origin: str, may: bool) -> None:  # noqa: FBT001
    world = World(access=Access(origins=("https://chat.example",), key="secret"))
    asked = {"origin": origin, "host": "192.168.1.5:11435", "access-control-request-private-network": "true"}
    reply = await world.get("OPTIONS", "/say", headers=asked)
    assert reply.status == (204 if may else 403)
    if may:
        assert reply.headers.get("access-control-allow-origin", "") == origin
        assert reply.headers["access-control-allow-private-network"] == "true"
        for name in ("Authorization", "X-Api-Key", "Content-Type", "x-stainless-os"):
            assert name in reply.headers["access-control-allow-headers"]
        assert "POST" in reply.headers["access-control-allow-methods"]


@pytest.mark.parametrize("header", ["host", "origin"])
async def test_what_a_stranger_wrote_stands_in_no_log_above_debug(
    header: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert (await World().get("GET", "/a-path", headers={header: "http://a.stranger"})).status == 403
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "outcome=forbidden" in caplog.text
    assert "stranger" not in caplog.text
    assert "a-path" not in caplog.text


async def test_every_page_may_call_where_the_setting_says_so() -> None:
    world = World(access=Access(origins=("*",)))
    assert (await world.get("GET", "/", headers={"origin": "https://any.example"})).status == 200


@pytest.mark.parametrize("path", ["/say", "/embed", "/models/x", "/openapi.json", "/nothing", "//", "/health/"])
@pytest.mark.parametrize(
    ("headers", "may"),
    [
        ({}, False),
        ({"authorization": "Bearer wrong"}, False),
        ({"authorization": "Bearer"}, False),
        ({"authorization": "secret"}, False),
        ({"authorization": "Basic secret"}, False),
        ({"x-api-key": "Secret"}, False),
        ({"authorization": "Bearer secr\u00e9t"}, False),
        ({"authorization": "Bearer secret"}, True),
        ({"authorization": "bearer  secret "}, True),
        ({"x-api-key": "secret"}, True),
    ],
)
async def test_with_a_key_every_path_wants_it(path: str, headers: dict[str, str], may: bool) -> None:  # noqa: FBT001
    world = World(access=Access(key="secret"))
    reply = await world.get("GET", path, headers=headers)
    assert (reply.status == 401) is not may


async def test_the_health_checks_want_no_key_but_a_known_host() -> None:
    world = World(access=Access(key="secret"))
    for method in ("GET", "HEAD"):
        for path in ("/", "/health"):
            assert (await world.get(method, path)).status == 200
    assert (await world.get("GET", "/", headers={"host": "evil.example"})).status == 403


async def test_a_key_beyond_ascii_is_compared_as_the_bytes_that_clients_send() -> None:
    world = World(access=Access(key="klíč"))
    sent = "Bearer klíč".encode().decode("latin-1")
    assert (await world.get("POST", "/say", headers={"authorization": sent})).status == 200


async def test_keys_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []
    compare = hmac.compare_digest

    def noted(given: bytes, key: bytes) -> bool:
        compared.append((given, key))
        return compare(given, key)

    monkeypatch.setattr(hmac, "compare_digest", noted)
    await World(access=Access(key="secret")).get("POST", "/say", headers={"x-api-key": "wrong"})
    assert compared == [(b"wrong", b"secret")]


async def test_a_refusal_forges_no_line_of_log_whatever_the_path(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        await World().get("GET", "/a\nforged line", headers={"host": "evil.example"})
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("diglot")]
    assert any("forged line" in line for line in lines)
    assert not any("\n" in line for line in lines)


@pytest.mark.parametrize(("host", "code"), [("localhost", 1000), ("evil.example", 1008)])
async def test_a_web_socket_is_turned_away(host: str, code: int) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/nothing", "headers": [(b"host", host.encode())], "query_string": b""}
    await World().application(scope, receive, send)
    assert sent == [{"type": "websocket.close", "code": code}]
