"""Requests that are made to exhaust: each is refused or bounded, soon, and the server answers the next one."""

from __future__ import annotations

import base64
import gzip
import json
import socket
import struct
import sys
import zlib
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.serving import PATIENCE, Served

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.timeout(120)  # Much is sent, on whatever machine this is.

CHAT: Final = "/v1/chat/completions"
HELLO: Final = [{"role": "user", "content": "Hi"}]
LOOP: Final = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    return schema


def property_of(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": keywords}, "required": ["a"], "additionalProperties": False}


SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "brackets": property_of(type="string", pattern="^" + "(" * 60_000 + "a" + ")" * 60_000 + "$"),
    "open brackets": property_of(type="string", pattern="(" * 60_000),
    "repeated nothing": property_of(type="string", pattern="^+a$"),
    "repeated beginning": property_of(type="string", pattern="^{2}x$"),
    "look behind": property_of(type="string", pattern="^(?<=x)*y$"),
    "catastrophe": property_of(type="string", pattern="^(a+)+(a+)+(a+)+$|^(([a-z])+.)+[A-Z]([a-z])+$" * 50),
    "countless repetitions": property_of(type="string", pattern="^(a{1,65535}){1,65535}$"),
    "back reference": property_of(type="string", pattern=r"^(a)\1$"),
    "unknown type": property_of(type="foo"),
    "type that is none": property_of(type={"a": 1}),
    "pattern that is none": property_of(type="string", pattern={"a": 1}),
    "circle": LOOP,
    "pointer to itself": {"$ref": "#"},
    "pointer to nowhere": {"$ref": "#/$defs/none"},
    "depth": nested(2000),
    "countless properties": {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(30_000)}},
    "countless values": property_of(enum=[f"v{n}" for n in range(60_000)]),
    "countless items": property_of(type="array", items={"type": "string"}, minItems=10**9),
    "endless text": property_of(type="string", minLength=10**12, maxLength=10**13),
    "countless ways": {"anyOf": [nested(8) for _ in range(3_000)]},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_schema_holds_the_server_up(http: httpx2.Client, name: str) -> None:
    schema = SCHEMAS[name]
    function = {"name": "f", "parameters": schema, "strict": True}
    named = {"type": "json_schema", "name": "s", "schema": schema, "strict": True}
    requests: list[tuple[str, dict[str, Any]]] = [
        (CHAT, {"messages": HELLO, "response_format": {"type": "json_schema", "json_schema": named}}),
        (CHAT, {"messages": HELLO, "tools": [{"type": "function", "function": function}]}),
        ("/v1/responses", {"input": "Hi", "text": {"format": named}}),
        ("/v1/responses", {"input": "Hi", "tools": [{"type": "function", **function}]}),
        ("/api/chat", {"messages": HELLO, "format": schema, "stream": False}),
        ("/api/generate", {"prompt": "Hi", "format": schema, "stream": False}),
    ]
    for path, body in requests:
        content = written({"model": "scripted", **body})
        answer = http.post(path, content=content)
        assert answer.status_code in {200, 400}, (path, answer.text[:300])
        assert len(answer.content) < 100_000


def written(body: Any) -> bytes:
    """Write JSON of any depth."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        return json.dumps(body).encode()
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        (CHAT, "n", 100_000),
        (CHAT, "top_logprobs", 100_000),
        (CHAT, "top_logprobs", -1),
        (CHAT, "logit_bias", {"-1": 1}),
        (CHAT, "temperature", -1),
        (CHAT, "max_tokens", -(2**63)),
        (CHAT, "max_completion_tokens", 2**70),
        (CHAT, "stop", ["x"] * 100_000),
        ("/v1/completions", "n", 100_000),
        ("/v1/completions", "best_of", 100_000),
        ("/v1/completions", "logprobs", 100_000),
        ("/v1/embeddings", "input", [""] * 100_000),
        ("/v1/embeddings", "dimensions", -5),
        ("/v1/embeddings", "input", [[-1]]),
        ("/v1/responses", "top_logprobs", 100_000),
        ("/v1/responses", "max_output_tokens", 0),
        ("/api/chat", "options", {"num_ctx": -1}),
        ("/api/chat", "options", {"top_k": "x"}),
        ("/api/chat", "top_logprobs", 100_000),
        ("/api/generate", "context", [2**70]),
    ],
)
def test_a_number_out_of_range_is_refused_by_its_field(http: httpx2.Client, path: str, field: str, value: Any) -> None:
    base: dict[str, Any] = {"model": "scripted", "messages": HELLO, "prompt": "Hi", "input": "Hi", "stream": False}
    if "embed" in path:
        base["model"] = "scripted-embed"
    answer = http.post(path, json={**base, field: value})
    assert answer.status_code in {400, 413}, answer.text[:300]
    assert field in answer.text or next(iter(value), "") in answer.text


@pytest.mark.parametrize("value", [-1, -(2**31), 2**31, "x", 0])
@pytest.mark.parametrize("field", ["n_discard", "n_keep", "n_probs", "id_slot", "cache_prompt", "samplers", "grammar"])
def test_a_field_of_the_engines_own_does_not_reach_it(http: httpx2.Client, field: str, value: Any) -> None:
    """What llama.cpp reads of a request beyond the protocols is not passed on; by name, or passed over."""
    for path in (CHAT, "/v1/completions", "/v1/responses", "/api/chat", "/api/generate"):
        body = {"model": "scripted", "messages": HELLO, "prompt": "Hi", "input": "Hi", "stream": False}
        assert http.post(path, json={**body, field: value}).status_code in {200, 400}


@pytest.mark.parametrize(
    "arguments",
    [
        {"tokenize": True},
        {"add_generation_prompt": False},
        {"chat_template": "{{ cycler.__init__.__globals__ }}"},
        {"conversation": []},
        {"tools": []},
        {"messages": []},
        {"continue_final_message": True},
    ],
    ids=str,
)
def test_an_argument_for_the_template_that_changes_what_it_is_for_is_refused(
    http: httpx2.Client, arguments: dict[str, Any]
) -> None:
    answer = http.post(CHAT, json={"model": "scripted", "messages": HELLO, "chat_template_kwargs": arguments})
    assert answer.status_code == 400
    assert "chat_template_kwargs" in answer.text


def test_a_template_in_a_request_is_never_rendered(http: httpx2.Client) -> None:
    template = "{{ 7 * 7 }}{{ cycler.__init__.__globals__ }}"
    for path, body in (
        (CHAT, {"messages": HELLO, "chat_template": template}),
        ("/api/generate", {"prompt": "Hi", "template": template, "stream": False}),
    ):
        answer = http.post(path, json={"model": "scripted", **body})
        assert "49" not in json.dumps(answer.json().get("choices", answer.json().get("response", "")))
    said = http.post(CHAT, json={"model": "scripted", "messages": [{"role": "user", "content": template}]}).json()
    assert said["choices"][0]["message"]["content"] == template


@pytest.mark.parametrize("body", [{"prompt": ""}, {"prompt": []}, {"prompt": [[]]}, {"prompt": None}, {}])
def test_an_empty_prompt_harms_nobody(http: httpx2.Client, body: dict[str, Any]) -> None:
    assert http.post("/v1/completions", json={"model": "scripted", **body}).status_code in {200, 400}


CODINGS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstd.compress,
}


@pytest.mark.parametrize("coding", CODINGS)
def test_a_bomb_is_not_unpacked(http: httpx2.Client, coding: str) -> None:
    bomb = CODINGS[coding](bytes(80 * 1024 * 1024))
    assert len(bomb) < 200_000
    for path in (CHAT, "/api/chat", "/v1/responses", "/v1/embeddings"):
        assert http.post(path, content=bomb, headers={"Content-Encoding": coding}).status_code == 413


def test_depth_without_end_is_refused(http: httpx2.Client) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        deep = b'{"model": "scripted", "messages": ' + opening * 200_000 + b"1" + closing * 200_000 + b"}"
        for path in (CHAT, "/api/chat", "/v1/responses"):
            assert http.post(path, content=deep).status_code == 400


def test_a_header_without_end_is_cut_off(served: Served, http: httpx2.Client) -> None:
    parts = urlsplit(served.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        try:
            for _ in range(160):
                line.sendall(b"x" * 65536)
            reply = line.recv(1000)
        except ConnectionError:
            reply = b""
    assert not reply or b" 431 " in reply.partition(b"\r\n")[0]


def png(width: int, height: int, data: bytes = b"") -> bytes:
    """Write a PNG that says it is so large, whatever it holds."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


PICTURES: Final[dict[str, bytes]] = {
    "nothing": b"",
    "one pixel": png(1, 1, bytes(4)),
    "30,000 by 30,000": png(30_000, 30_000),
    "no width": png(0, 10),
    "cut off": png(64, 64, bytes(64 * 193))[:40],
    "noise": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "a page": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    "an old format": b"BM" + bytes(100),
    "a moving one": b"GIF89a" + bytes(100),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_that_is_none_is_refused_without_a_word_of_the_inside(http: httpx2.Client, name: str) -> None:
    data = base64.b64encode(PICTURES[name]).decode()
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    item = {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": part["image_url"]}]}
    item["content"] = [{"type": "input_image", "image_url": f"data:image/png;base64,{data}"}]
    for path, body in (
        (CHAT, {"messages": [{"role": "user", "content": [part]}]}),
        ("/v1/responses", {"input": [item]}),
        ("/api/chat", {"messages": [{"role": "user", "content": "x", "images": [data]}], "stream": False}),
    ):
        answer = http.post(path, json={"model": "scripted", **body})
        assert answer.status_code in ({200, 400} if name == "one pixel" else {400}), (path, answer.text)
        assert not [word for word in ("0x", "Traceback", "<_io", "object at") if word in answer.text]
