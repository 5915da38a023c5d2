"""What docs/proxy.md promises of nginx with the configuration that stands there, against a real server."""

import socket
import ssl
import tomllib
from typing import Any, Final

import httpx2
import openai
import pytest

from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.openai import DIALECT as OPENAI
from diglot.settings import Settings
from tests.docs.pages import blocks_of
from tests.proxy.nginx import ANN, BEN, KEY, NAME, NOBODY, PAGE, Proxy, as_its_name
from tests.serving import PATIENCE, Served, serving_script, until

MANAGING: Final = frozenset(
    {
        "/api/pull",
        "/api/push",
        "/api/create",
        "/api/copy",
        "/api/delete",
        "/api/blobs/{digest}",
    }
)
"""Where models are changed. Of a new path of this kind `test_of_every_path_it_is_known` asks what it is."""
HELLO: Final[Any] = {"model": "scripted", "messages": [{"role": "user", "content": "Say hello"}], "stream": False}
DOTTED: Final = [
    "/api//pull",
    "/api/pull/",
    "//api/pull//",
    "/api/./pull",
    "/v1/../api/pull",
    "/%61pi/pull",
    "/api%2fpull",
    "/api/pull?x=/v1/models",
    "https://models.example/api/pull",
]


def asked(client: httpx2.Client, method: str, path: str) -> httpx2.Response:
    """Ask with a body that is none, so that nothing is changed."""
    return client.request(method, path, content=b"[")


def came_through(diglot: Served, name: str) -> bool:
    """Whether a request of that name has come to the server, which writes down one that is asked after it, past the proxy."""
    with diglot.http(headers={"Authorization": f"Bearer {KEY}", "X-Request-Id": f"after-{name}"}) as past:
        assert past.get("/api/tags").status_code == 200
    until(lambda: diglot.log_has(f"id=after-{name} "))
    return diglot.log_has(f"id={name} ")


@pytest.mark.parametrize("token", [NOBODY, {"Authorization": f"Bearer {KEY}"}, {"X-Api-Key": KEY}, {"Cookie": "a=b"}])
def test_without_a_token_of_the_proxy_nothing_reaches_the_server(
    proxy: Proxy, diglot: Served, token: dict[str, str]
) -> None:
    mark = "-".join(("stranger", *token))
    with proxy.client(token, **{"X-Request-Id": mark}) as client:
        for path in ("/", "/api/tags", "/api/pull", "/v1/chat/completions", "/v1/models", "/openapi.json", "/metrics"):
            reply = client.get(path)
            assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
            assert reply.json()["error"]["code"] == "invalid_api_key"
    assert not came_through(diglot, mark)


def test_the_health_check_wants_no_token(proxy: Proxy) -> None:
    with proxy.client() as client:
        assert client.get("/health").json() == {"status": "ok"}
        assert client.head("/health").status_code == 200
        assert client.get("/health/../api/tags").status_code == 401


def test_both_protocols_answer_whoever_has_a_token(ann: httpx2.Client, diglot: Served) -> None:
    assert (
        ann.post("/api/chat", json=HELLO, headers={"X-Request-Id": "known"}).json()["message"]["content"] == "Say hello"
    )
    chat = ann.post("/v1/chat/completions", json=HELLO).json()
    assert chat["choices"][0]["message"]["content"] == "Say hello"
    assert ann.get("/v1/models").json()["data"]
    assert came_through(diglot, "known")


def test_the_key_of_the_server_is_still_demanded_of_whoever_goes_past_the_proxy(diglot: Served) -> None:
    with diglot.http() as past:
        assert past.get("/api/tags", headers=ANN).status_code == 401
        assert past.get("/api/tags", headers={"Authorization": f"Bearer {KEY}"}).status_code == 200


def test_of_every_path_it_is_known_whether_it_changes_models() -> None:
    paths = {operation.path for dialect in (OLLAMA, OPENAI) for operation in dialect.operations}
    assert paths >= MANAGING
    using = {path for path in paths if path.startswith("/v1") or path in {"/", "/rerank"}}
    reading = {f"/api/{each}" for each in ("version", "status", "tags", "ps", "show")}
    answering = {f"/api/{each}" for each in ("chat", "generate", "embed", "embeddings")}
    assert paths - MANAGING - using - reading - answering == set()


@pytest.mark.parametrize("path", sorted(MANAGING))
def test_only_a_keeper_may_change_models(proxy: Proxy, path: str) -> None:
    path = path.format(digest="sha256:" + "0" * 64)
    with proxy.client(ANN) as ann, proxy.client(BEN) as ben:
        for method in ("POST", "DELETE", "GET", "HEAD", "PUT"):
            assert asked(ann, method, path).status_code == 403
            assert asked(ben, method, path).status_code in {400, 404, 405}
        assert asked(ann, "POST", path).json()["error"]["code"] == "forbidden"


@pytest.mark.parametrize("path", DOTTED)
def test_no_other_spelling_of_a_path_gets_a_user_past(ann: httpx2.Client, path: str) -> None:
    reply = ann.post("/", content=b"[", extensions={"target": path.encode()})
    assert reply.status_code == 403


def test_the_metrics_are_a_keepers(ann: httpx2.Client) -> None:
    assert ann.get("/metrics").status_code == 403


def test_another_name_that_leads_here_is_not_served(proxy: Proxy, diglot: Served) -> None:
    mark = {"X-Request-Id": "misled"}
    with proxy.client(ANN, Host="evil.example", **mark) as client:
        assert client.get("/api/tags").status_code == 421
    with httpx2.Client(verify=proxy.trust, trust_env=False) as nameless, pytest.raises(httpx2.ConnectError):
        nameless.get(f"https://127.0.0.1:{proxy.port}/api/tags", headers=ANN | mark)
    assert not came_through(diglot, "misled")


def test_the_connection_is_one_of_today(proxy: Proxy) -> None:
    old = ssl.create_default_context(cafile=proxy.folder / "certificate.pem")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_2
    for trust in (old, proxy.trust):
        with httpx2.Client(verify=trust, trust_env=False, event_hooks={"request": [as_its_name]}) as client:
            assert client.get(f"https://127.0.0.1:{proxy.port}/health", headers={"Host": NAME}).status_code == 200


def test_pages_of_the_same_name_may_call_and_those_of_others_may_not(ann: httpx2.Client) -> None:
    same = ann.post("/api/chat", json=HELLO, headers={"Origin": f"https://{NAME}"})
    assert (same.status_code, same.headers["access-control-allow-origin"]) == (200, f"https://{NAME}")
    other = ann.post("/api/chat", json=HELLO, headers={"Origin": "https://evil.example"})
    assert other.status_code == 403
    assert "access-control-allow-origin" not in other.headers


def test_a_preflight_carries_no_token_and_is_answered_by_the_server(proxy: Proxy) -> None:
    with proxy.client() as client:
        asking = {"Access-Control-Request-Method": "POST"}
        assert client.options("/api/chat", headers={"Origin": f"https://{NAME}", **asking}).status_code == 204
        assert client.options("/api/chat", headers={"Origin": "https://evil.example", **asking}).status_code == 403


def test_a_large_body_goes_through_and_one_over_the_limit_is_refused_in_words_of_the_protocol(
    ann: httpx2.Client,
) -> None:
    large = {**HELLO, "messages": [{"role": "system", "content": " " * 3_000_000}, *HELLO["messages"]]}
    assert ann.post("/api/chat", json=large).json()["message"]["content"] == "Say hello"
    refused = ann.post("/api/chat", content=b" " * (8 * 1024 * 1024 + 1))
    assert refused.status_code == 413
    assert str(8 * 1024 * 1024) in refused.json()["error"]


def test_a_body_that_will_be_too_large_is_refused_before_it_is_sent(proxy: Proxy) -> None:
    head = (
        f"POST /api/chat HTTP/1.1\r\nHost: {NAME}\r\nAuthorization: {ANN['Authorization']}\r\nContent-Length: 9000000"
    )
    with (
        socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE) as plain,
        proxy.trust.wrap_socket(plain, server_hostname=NAME) as line,
    ):
        line.sendall(head.encode() + b"\r\n\r\n")
        assert line.recv(1024).startswith(b"HTTP/1.1 413 ")


def test_what_a_proxy_tells_of_its_client_changes_nothing(ann: httpx2.Client, diglot: Served) -> None:
    made_up = {
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-For": "203.0.113.9",
        "X-Forwarded-Proto": "http",
        "X-Real-IP": "203.0.113.9",
        "Forwarded": "for=203.0.113.9;host=evil.example",
        "X-Original-URL": "/api/delete",
        "X-HTTP-Method-Override": "DELETE",
    }
    assert ann.post("/api/chat", json=HELLO, headers=made_up).json()["message"]["content"] == "Say hello"
    with diglot.http(headers={"Authorization": f"Bearer {KEY}"}) as past:
        forged = {"Host": "evil.example", "X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"}
        assert past.get("/api/tags", headers=forged).status_code == 403


def test_a_name_that_the_setting_does_not_have_is_refused_by_the_server(tmp_path_factory: Any, proxy: Proxy) -> None:
    with serving_script(tmp_path_factory.mktemp("unnamed"), {}) as served, served.http() as client:
        refused = client.get("/api/tags", headers={"Host": NAME})
        assert refused.status_code == 403
        assert "`hosts`" in refused.json()["error"]
        assert client.get("/api/tags", headers={"Host": "diglot"}).status_code == 403  # As nginx sends by itself.


def test_the_settings_of_the_page_are_settings() -> None:
    (block,) = (block for block in blocks_of(PAGE) if block.language == "toml")
    told = tomllib.loads(block.text)
    assert told == {"key": KEY, "hosts": [NAME]}
    assert set(told) <= set(Settings.__struct_fields__)


def test_openais_package_streams(proxy: Proxy) -> None:
    url, key = f"https://127.0.0.1:{proxy.port}/v1", "the-token-of-ann"
    with openai.OpenAI(base_url=url, api_key=key, http_client=proxy.client(), max_retries=0) as client:
        chunks = list(client.chat.completions.create(model="scripted", messages=HELLO["messages"], stream=True))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Say hello"


def test_a_client_that_hangs_up_frees_the_slot_behind_the_proxy(ann: httpx2.Client, diglot: Served) -> None:
    """The only slot: the next answer comes once it is free."""
    body = {**HELLO, "messages": [{"role": "user", "content": "hang"}], "stream": True}
    with ann.stream("POST", "/api/chat", json=body) as stream:
        assert "Hel" in next(stream.iter_text())
    answers = until(lambda: (got := ann.post("/api/chat", json=HELLO)).status_code == 200 and got)
    assert answers.json()["message"]["content"] == "Say hello"
    assert not diglot.log_has("Traceback")
