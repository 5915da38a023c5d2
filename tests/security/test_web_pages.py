"""Web pages and strangers: no route of a real server answers them, whatever it is."""

import json
import socket
from collections.abc import Iterator
from typing import Any, Final

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.openai import DIALECT as OPENAI
from tests.security.conftest import KEY
from tests.serving import PATIENCE, Served

ROUTES: Final = sorted(
    {(operation.method, operation.path) for dialect in (OLLAMA, OPENAI) for operation in dialect.operations}
    | {("GET", "/health"), ("GET", "/openapi.json"), ("GET", "/nothing"), ("POST", "/v1/nothing")}
)
OPEN: Final = {"/", "/health"}
STRANGERS: Final = [
    {"Host": "evil.example:11435"},
    {"Host": "localhost.evil.example"},
    {"Origin": "https://evil.example", "Content-Type": "text/plain"},
    {"Origin": "null", "Content-Type": "text/plain"},
    {"Origin": "https://evil.example", "Content-Type": "application/x-www-form-urlencoded"},
    {"Origin": "https://evil.example", "Content-Type": "multipart/form-data; boundary=x"},
    {"Origin": "http://127.0.0.1.evil.example"},
]
KEYLESS: Final = [
    {},
    {"Authorization": "Bearer wrong"},
    {"Authorization": f"Basic {KEY}"},
    {"X-Api-Key": f"{KEY}x"},
    {"Authorization": "Bearer wrong", "X-Api-Key": KEY[:-1]},
    {"Cookie": f"key={KEY}"},
    {"Api-Key": KEY},
    {"Authorization": "' OR '1'='1"},
]


def filled(path: str) -> str:
    return path.replace("{digest}", "sha256:" + "0" * 64).replace("{id}", "x").replace("{model}", "scripted")


@pytest.fixture
def bare(served: Served) -> Iterator[httpx2.Client]:
    with served.http() as client:
        yield client


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda headers: " ".join(headers.values()))
def test_no_route_answers_a_page_of_a_stranger(bare: httpx2.Client, stranger: dict[str, str]) -> None:
    body = json.dumps({"model": "scripted", "name": "scripted", "messages": [], "input": "x"}).encode()
    for method, path in ROUTES:
        answer = bare.request(method, filled(path), content=body, headers=stranger)
        assert answer.status_code == 403, path
        assert "access-control-allow-origin" not in answer.headers


def test_no_preflight_of_a_stranger_is_granted(bare: httpx2.Client) -> None:
    asking = {"Origin": "https://evil.example", "Access-Control-Request-Method": "DELETE"}
    for _, path in ROUTES:
        answer = bare.options(filled(path), headers=asking)
        assert answer.status_code == 403, path
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}])
def test_no_socket_opens_for_a_page_of_a_stranger(served: Served, headers: dict[str, str]) -> None:
    with pytest.raises(InvalidStatus), socket_of(served, headers):
        pass


@pytest.mark.parametrize("headers", KEYLESS, ids=str)
def test_with_a_key_no_route_answers_who_lacks_it(keyed: Served, headers: dict[str, str]) -> None:
    with keyed.http() as client:
        for method, path in ROUTES:
            status = client.request(method, filled(path), content=b"{}", headers=headers).status_code
            assert status == (200 if path in OPEN else 401), path


def test_with_a_key_no_socket_opens_for_who_lacks_it(keyed: Served) -> None:
    for headers in KEYLESS:
        with pytest.raises(InvalidStatus), socket_of(keyed, headers):
            pass
    with socket_of(keyed, {"Authorization": f"Bearer {KEY}"}) as opened:
        opened.send('{"type": "response.create", "model": "scripted", "input": "x"}')
        assert json.loads(opened.recv(timeout=30))["type"] == "response.created"


def socket_of(served: Served, headers: dict[str, str]) -> Any:
    """Connect to the socket of the Responses API with headers that replace the client's own."""
    given = dict(headers)
    host = given.pop("Host", None)
    url = served.url.replace("http", "ws", 1) + "/v1/responses"
    if host is None:
        return connect(url, additional_headers=given, proxy=None)
    address, port = served.url.removeprefix("http://").split(":")
    line = socket.create_connection((address, int(port)), timeout=PATIENCE)
    return connect(f"ws://{host}/v1/responses", sock=line, additional_headers=given, proxy=None)
