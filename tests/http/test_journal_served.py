"""The journal behind a real server: also what is refused before or outside of a request has a name on the wire."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.serving import Served, serving_script, until

UPGRADE = (
    "GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_script(
        tmp_path_factory.mktemp("home"), {"replies": [{"say": "hi"}]}, "--log-format", "json"
    ) as server:
        yield server


def head_of(served: Served, request: str) -> tuple[str, dict[str, str]]:
    """Send bytes, and return the status line and the headers of what comes back."""
    place = urlsplit(served.url)
    with socket.create_connection((place.hostname, place.port), timeout=30) as line:
        line.sendall(request.encode())
        heard = b""
        while b"\r\n\r\n" not in heard:
            heard += line.recv(65536)
    first, *rest = heard.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    return first, dict(row.lower().split(": ", 1) for row in rest)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (f"{UPGRADE}X-Request-Id: mine\r\n\r\n", "101"),
        (f"{UPGRADE}X-Request-Id: mine\r\nOrigin: https://evil.example\r\n\r\n", "403"),
        ("GET /nothing HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: mine\r\n\r\n", "404"),
    ],
)
def test_a_name_comes_back_whatever_becomes_of_the_request(served: Served, request_: str, status: str) -> None:
    first, headers = head_of(served, request_)
    assert status in first
    assert headers["x-request-id"] == "mine"


def test_a_head_that_is_too_large_is_refused_with_a_name_that_the_log_has(served: Served) -> None:
    first, headers = head_of(served, f"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: {'a' * 70_000}\r\n\r\n")
    assert "431" in first
    until(lambda: served.log_has(headers["x-request-id"]))


def test_the_log_is_json_line_by_line_and_a_refusal_is_no_error(served: Served) -> None:
    head_of(served, f"{UPGRADE}X-Request-Id: refused\r\nOrigin: https://evil.example\r\n\r\n")
    until(lambda: served.log_has('"id":"refused"'))
    records = [json.loads(line) for line in served.log if line.startswith("{")]
    assert {"outcome": "forbidden", "status": 403}.items() <= next(
        each for each in records if each.get("id") == "refused"
    ).items()
    assert not [each for each in records if each["level"] == "error"]


def test_a_proper_request_is_told_with_all_that_came_of_it(served: Served) -> None:
    with served.http() as client:
        body = {"model": "scripted", "messages": [{"role": "user", "content": "x"}]}
        name = client.post("/v1/chat/completions", json=body).headers["x-request-id"]
        assert client.get("/metrics").text.count('diglot_requests_total{model="scripted:latest"') == 1
    until(lambda: served.log_has(f'"id":"{name}"'))
    line = json.loads(next(line for line in served.log if f'"id":"{name}"' in line))
    assert (line["model"], line["outcome"], line["output_tokens"]) == ("scripted:latest", "ok", 1)
