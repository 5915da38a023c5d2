"""Every limit of a request: a setting, reached with one request, and told in the form of each dialect."""

import base64
import gzip
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.core.test_images import png
from tests.http.talk import Talk
from tests.http.test_every_route import application, ask
from tests.services.world import until
from tests.serving import serving_script

CHAT: Final = "/v1/chat/completions"
RESPONSES: Final = "/v1/responses"
OLLAMA: Final = "/api/chat"
GENERATE: Final = "/api/generate"
USER: Final = {"role": "user", "content": "hi"}
PICTURE: Final = base64.b64encode(png(1, 1)).decode()
URL: Final = f"data:image/png;base64,{PICTURE}"
CALL: Final = {"function": {"name": "f", "arguments": {}}}


def tools(count: int, *, properties: int = 0) -> list[dict[str, Any]]:
    inner = {f"p{index}": {"type": "string"} for index in range(properties)}
    schema = {"type": "object", "properties": inner}
    return [{"type": "function", "function": {"name": f"f{n}", "parameters": schema}} for n in range(count)]


def flat(count: int) -> list[dict[str, Any]]:
    return [{"type": "function", "name": f"f{n}", "parameters": {}} for n in range(count)]


def deep(levels: int) -> Any:
    return [deep(levels - 1)] if levels else []


def parts(count: int) -> list[dict[str, str]]:
    return [{"type": "text", "text": "a"}] * count


CASES: Final[list[tuple[dict[str, int], str, dict[str, Any], int, str, str]]] = [
    # The settings, where to, what to send, then: the status, OpenAI's code, and words of the message.
    (
        {"max_body": 99},
        CHAT,
        {"messages": [USER] * 9},
        413,
        "request_too_large",
        "is larger than the limit of 99 bytes",
    ),
    ({"max_body": 99}, OLLAMA, {"messages": [USER] * 9}, 413, "", "is larger than the limit of 99 bytes"),
    (
        {"max_depth": 9},
        CHAT,
        {"messages": [USER], "metadata": deep(9)},
        400,
        "malformed_body",
        "deeper than the limit of 9",
    ),
    ({"max_depth": 9}, OLLAMA, {"messages": [USER], "options": {"x": deep(8)}}, 400, "", "deeper than the limit of 9"),
    ({"max_values": 20}, CHAT, {"messages": [USER] * 9}, 413, "too_many_values", "more than the limit of 20"),
    ({"max_values": 20}, OLLAMA, {"messages": [USER] * 9}, 413, "", "values are more than the limit of 20"),
    ({"max_messages": 2}, CHAT, {"messages": [USER] * 3}, 413, "too_many_messages", "messages: 3 messages are more"),
    ({"max_messages": 2}, OLLAMA, {"messages": [USER] * 3}, 413, "", "messages: 3 messages are more"),
    ({"max_messages": 2}, RESPONSES, {"input": [USER] * 3}, 413, "too_many_items", "input: 3 items are more"),
    (
        {"max_messages": 2},
        "/v1/responses/compact",
        {"input": [USER] * 3},
        413,
        "too_many_items",
        "input: 3 items are more",
    ),
    (
        {"max_messages": 2},
        "/v1/responses/input_tokens",
        {"input": [USER] * 3},
        413,
        "too_many_items",
        "3 items are more",
    ),
    ({"max_messages": 2}, "/api/create", {"from": "scripted", "messages": [USER] * 3}, 413, "", "3 messages are more"),
    (
        {"max_parts": 3},
        CHAT,
        {"messages": [{"role": "user", "content": parts(4)}]},
        413,
        "too_many_parts",
        "4 parts are more",
    ),
    ({"max_parts": 3}, RESPONSES, {"input": [{"role": "user", "content": parts(4)}]}, 413, "too_many_parts", "4 parts"),
    (
        {"max_parts": 3},
        OLLAMA,
        {"messages": [{"role": "assistant", "tool_calls": [CALL] * 4}]},
        413,
        "",
        "4 parts are more",
    ),
    (
        {"max_images": 1},
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}] * 2}]},
        413,
        "too_many_images",
        "messages: 2 images are more than the limit of 1",
    ),
    (
        {"max_images": 1},
        RESPONSES,
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": URL}] * 2}]},
        413,
        "too_many_images",
        "input: 2 images are more than the limit of 1",
    ),
    (
        {"max_images": 1},
        OLLAMA,
        {"messages": [{**USER, "images": [PICTURE] * 2}]},
        413,
        "",
        "messages: 2 images are more",
    ),
    ({"max_images": 1}, GENERATE, {"prompt": "hi", "images": [PICTURE] * 2}, 413, "", "images: 2 images are more"),
    ({"max_tools": 2}, CHAT, {"messages": [USER], "tools": tools(3)}, 413, "too_many_tools", "tools: 3 tools are more"),
    ({"max_tools": 2}, OLLAMA, {"messages": [USER], "tools": tools(3)}, 413, "", "tools: 3 tools are more"),
    ({"max_tools": 2}, RESPONSES, {"input": "hi", "tools": flat(3)}, 413, "too_many_tools", "tools: 3 tools are more"),
    (
        {"max_tools": 2},
        RESPONSES,
        {"input": "hi", "tools": [{"type": "namespace", "name": "n", "tools": flat(3)}]},
        413,
        "too_many_tools",
        "tools: 3 tools are more than the limit of 2",
    ),
    (
        {"max_tools": 2},
        RESPONSES,
        {"input": [{"type": "additional_tools", "tools": flat(2)}, {"type": "additional_tools", "tools": flat(1)}]},
        413,
        "too_many_tools",
        "input[1].tools: 3 tools are more than the limit of 2",
    ),
    (
        {},
        CHAT,
        {"messages": [USER], "tools": tools(300, properties=200)},
        413,
        "too_many_schema_values",
        "schema values are more than the limit of 100000",
    ),
    ({}, OLLAMA, {"messages": [USER], "tools": tools(300, properties=200)}, 413, "", "schema values are more than"),
    ({"max_inputs": 2}, "/v1/embeddings", {"input": ["a"] * 3}, 413, "too_many_inputs", "input: 3 inputs are more"),
    ({"max_inputs": 2}, "/api/embed", {"input": ["a"] * 3}, 413, "", "input: 3 inputs are more"),
    (
        {"max_inputs": 2},
        "/v1/rerank",
        {"query": "q", "documents": ["a"] * 3},
        413,
        "too_many_documents",
        "documents: 3 documents are more",
    ),
]


@pytest.mark.parametrize(("limit", "path", "body", "status", "code", "words"), CASES)
async def test_a_limit_is_a_setting_and_beyond_it_stands_its_own_error(
    tmp_path: Path, *, limit: dict[str, int], path: str, body: dict[str, Any], status: int, code: str, words: str
) -> None:
    sent = msgspec.json.encode({"model": "scripted", **body})
    reply = await ask(application(tmp_path, **limit), "POST", path, sent)
    assert reply.status == status, reply.body
    assert words in (reply.error["message"] if code else reply.error)
    assert not code or reply.error["code"] == code
    if limit:
        looser = {name: 100_000 if name != "max_depth" else 100 for name in limit}
        assert (await ask(application(tmp_path, **looser), "POST", path, sent)).status != status


@pytest.mark.parametrize("path", [CHAT, OLLAMA])
async def test_a_body_may_unpack_to_so_much_and_no_more(tmp_path: Path, path: str) -> None:
    plain = msgspec.json.encode({"model": "scripted", "messages": [USER] * 99})
    packed = gzip.compress(plain)
    within, beyond = (application(tmp_path, max_body=200, max_unpacked=len(plain) - less) for less in (0, 1))
    assert (await ask(within, "POST", path, packed, content_encoding="gzip")).status == 200
    reply = await ask(beyond, "POST", path, packed, content_encoding="gzip")
    assert reply.status == 413
    assert f"unpacks to more than the limit of {len(plain) - 1} bytes".encode() in reply.body


@pytest.mark.parametrize("path", [CHAT, RESPONSES, OLLAMA, GENERATE])
async def test_a_byte_order_mark_before_json_is_passed_over(tmp_path: Path, path: str) -> None:
    body = {"model": "scripted", "stream": False, "prompt": "hi", "input": "hi", "messages": [USER]}
    body.pop("prompt" if path == RESPONSES else "input")
    sent = b"\xef\xbb\xbf" + msgspec.json.encode(body)
    assert (await ask(application(tmp_path), "POST", path, sent)).status == 200


@pytest.mark.parametrize("long", [False, True])
async def test_a_long_body_is_read_beside_the_loop_with_the_same_outcome(tmp_path: Path, long: bool) -> None:  # noqa: FBT001
    user = "a" * (200_000 if long else 10)
    body = msgspec.json.encode({"model": "scripted", "messages": [USER], "user": user})
    app = application(tmp_path)
    assert (await ask(app, "POST", CHAT, body)).status == 200
    wrong = msgspec.json.encode({"model": "scripted", "messages": [{"role": "nobody"}], "user": user})
    assert (await ask(app, "POST", CHAT, wrong)).error["param"] == "messages[0].role"


@pytest.mark.parametrize(
    ("limit", "body", "words"),
    [
        ({"max_depth": 5}, {"input": "hi", "metadata": deep(9)}, "deeper than the limit of 5"),
        ({"max_values": 5}, {"input": "hi", "include": ["a"] * 9}, "values are more than the limit of 5"),
        ({"max_messages": 2}, {"input": [USER] * 3}, "3 items are more than the limit of 2"),
        ({"max_body": 200}, {"input": "a" * 200}, "is larger than the limit of 200 bytes"),
    ],
)
async def test_over_a_web_socket_the_limits_are_the_same(
    tmp_path: Path, limit: dict[str, int], body: dict[str, Any], words: str
) -> None:
    talk = Talk(application(tmp_path, **limit), path=RESPONSES)
    talk.say({"type": "response.create", "model": "scripted", **body})
    await until(lambda: talk.lines)
    assert msgspec.json.decode(talk.lines[0])["type"] == "error"
    assert words in talk.lines[0]
    await talk.leave()


@pytest.fixture(scope="module")
def stern(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """Where a server listens whose bounds on heads and connections are within reach."""
    with serving_script(tmp_path_factory.mktemp("stern"), {}, "--max-head", "2000", "--max-connections", "2") as served:
        yield "127.0.0.1", int(served.url.rpartition(":")[2])


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """Where one listens that waits for no head. It is another one: who is slow must not be taken for one too many."""
    with serving_script(tmp_path_factory.mktemp("hasty"), {}, "--head-timeout", "0.3") as served:
        yield "127.0.0.1", int(served.url.rpartition(":")[2])


def said(address: tuple[str, int], sent: bytes) -> tuple[int, Any]:
    """Send, and return the status and the error of what comes back until the connection ends."""
    with socket.create_connection(address) as line:
        line.sendall(sent)
        heard = b"".join(iter(lambda: line.recv(65536), b""))
    head, _, body = heard.partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in head
    return int(head.split()[1]), msgspec.json.decode(body)["error"]


def test_a_head_that_is_too_large_is_told_in_the_form_of_its_path(stern: tuple[str, int]) -> None:
    sent = b"GET %b HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 3000 + b"\r\n\r\n"
    words = "the request head is larger than the limit of 2000 bytes"
    assert said(stern, sent % b"/api/chat") == (431, words)
    status, error = said(stern, sent % b"/v1/models")
    assert (status, error["message"], error["code"]) == (431, words, "head_too_large")


def test_a_head_that_does_not_come_is_told_so(hasty: tuple[str, int]) -> None:
    status, error = said(hasty, b"GET /v1/models HTTP/1.1\r\n")
    assert (status, error["code"]) == (408, "request_timeout")
    assert error["message"] == "the head of the request did not arrive within 0.3 seconds"


def test_one_connection_too_many_is_told_when_to_come_back(stern: tuple[str, int]) -> None:
    with socket.create_connection(stern) as one, socket.create_connection(stern) as two:
        status, error = said(stern, b"")
        for line in (one, two):  # Both have to be gone when the next test comes.
            line.shutdown(socket.SHUT_WR)
            assert line.recv(1) == b""
    assert (status, error["message"]) == (503, "too many connections are open")


@pytest.mark.parametrize(
    ("size", "words"), [((2, 3), "more than the limit of 5 pixels"), ((2, 2), "the image is damaged")]
)
async def test_a_picture_is_decoded_before_a_model_sees_it(tmp_path: Path, size: tuple[int, int], words: str) -> None:
    data = base64.b64encode(png(*size)).decode()  # Its frame is right, and it holds one pixel.
    url = f"data:image/png;base64,{data}"
    app = application(tmp_path, max_pixels=5)
    for path, body in (
        (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}),
        (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]}),
        (OLLAMA, {"messages": [{**USER, "images": [data]}]}),
        (GENERATE, {"prompt": "hi", "images": [data]}),
    ):
        reply = await ask(app, "POST", path, msgspec.json.encode({"model": "scripted", **body}))
        assert reply.status == 400
        assert words in (reply.error if path.startswith("/api") else reply.error["message"])
        assert path.startswith("/api") or reply.error["param"] == "images[0]"
