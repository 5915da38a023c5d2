"""Secrets: prompts, keys and tokens stay where they belong, and nothing that a client names is fetched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.security.conftest import KEY, SCRIPT, Trap
from tests.serving import Served, serving, serving_script

PROMPT: Final = "an utterly private sentence"
SECRET: Final = "sk-of-somebody-else"
BODIES: Final[dict[str, dict[str, Any]]] = {
    "/api/chat": {"messages": [{"role": "user", "content": PROMPT}]},
    "/api/generate": {"prompt": PROMPT, "system": PROMPT},
    "/api/embed": {"input": PROMPT, "model": "scripted-embed"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": PROMPT}]},
    "/v1/completions": {"prompt": PROMPT},
    "/v1/embeddings": {"input": PROMPT, "model": "scripted-embed"},
    "/v1/responses": {"input": PROMPT, "instructions": PROMPT},
    "/v1/responses/compact": {"input": [{"role": "user", "content": PROMPT}], "model": "scripted"},
}
VARIED: Final[list[dict[str, Any]]] = [
    {},
    {"stream": True},
    {"temperature": PROMPT},
    {"messages": PROMPT},
    {"input": {PROMPT: 1}},
    {"model": PROMPT},
    {PROMPT: 1},
]


def every_url(url: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give requests that hold a URL in every place where some server has followed one."""
    picture = [{"type": "image_url", "image_url": {"url": url}}]
    chat = "/v1/chat/completions"
    hello = [{"role": "user", "content": "Hi"}]
    for scheme in ("", "file:///etc/passwd?", "ftp://", "http:\\\\", "data:text/uri-list,"):
        named = [{"type": "image_url", "image_url": {"url": scheme + url}}]
        yield chat, {"messages": [{"role": "user", "content": named}]}
        yield "/v1/responses", {"input": [user({"type": "input_image", "image_url": scheme + url})]}
    yield "/api/chat", {"messages": [{"role": "user", "content": "Hi", "images": [url]}]}
    yield "/api/generate", {"prompt": "Hi", "images": [url]}
    yield chat, {"messages": [{"role": "user", "content": f"![a picture]({url}/x.png)"}]}
    yield "/api/chat", {"messages": [{"role": "user", "content": f"![a picture]({url}/x.png)"}]}
    yield "/v1/responses", {"input": [user({"type": "input_file", "file_url": url})]}
    yield "/v1/responses", {"input": "Hi", "tools": [{"type": "mcp", "server_label": "x", "server_url": url}]}
    yield "/v1/embeddings", {"model": "scripted-embed", "input": url}
    for field in ("api_base", "base_url", "api_url", "webhook_url", "proxy", "tokenizer", "lora_request"):
        yield chat, {"messages": hello, field: url}
        yield "/api/chat", {"messages": hello, field: url}
    yield chat, {"messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": url}}]}]}
    yield chat, {"messages": [{"role": "user", "content": [{"type": "audio_url", "audio_url": {"url": url}}]}]}
    yield chat, {"messages": [{"role": "tool", "tool_call_id": "x", "content": picture}, *hello]}
    yield chat, {"messages": hello, "tools": [{"type": "function", "function": {"name": "f", "parameters": ref(url)}}]}
    yield "/api/chat", {"messages": hello, "format": ref(url)}


def user(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [part]}


def ref(url: str) -> dict[str, Any]:
    """Return a schema that points to another machine."""
    return {"type": "object", "properties": {"a": {"$ref": f"{url}/schema.json"}}}


def test_no_url_of_a_conversation_is_followed(http: httpx2.Client, trap: Trap) -> None:
    for path, body in every_url(trap.url):
        answer = http.post(path, json={"model": "scripted", "stream": False, **body})
        assert answer.status_code in {200, 400}, (path, body, answer.text)
    assert trap.sprung() == 0


def test_a_key_for_a_remote_server_goes_to_that_one_alone(tmp_path: Path, trap: Trap, keyed: Served) -> None:
    """No field of a request says where it is sent."""
    with serving(tmp_path / "home", "--remotes", f"{keyed.url}/v1", "--remote-key", KEY) as served:
        with served.http() as client:
            answers = [
                client.post(path, json={"model": "scripted", "stream": False, **body})
                for path, body in every_url(trap.url)
            ]
        assert sum(answer.status_code == 200 for answer in answers) > 10
        assert not [answer for answer in answers if KEY in answer.text]
        assert trap.sprung() == 0
        assert not served.log_has(KEY)


def test_what_people_write_is_in_no_log_unless_it_is_at_debug(tmp_path: Path) -> None:
    with serving_script(tmp_path / "home", SCRIPT, "--log", "info", "--key", KEY) as served:
        with served.http(headers={"Authorization": f"Bearer {KEY}"}) as client:
            for path, body in BODIES.items():
                for more in VARIED:
                    client.post(path, json={"model": "scripted", **body, **more})
            client.post("/v1/chat/completions", content=PROMPT.encode())
            client.get(f"/nothing/{SECRET}?key={SECRET}", headers={"Authorization": f"Bearer {SECRET}"})
        served.process.terminate()
        _, log = served.ended()
    assert PROMPT not in log
    assert KEY not in log
    assert "Traceback" not in log


def test_a_key_is_in_no_answer_and_no_log(keyed: Served) -> None:
    with keyed.http(headers={"Authorization": f"Bearer {KEY}"}) as client:
        paths = ("/", "/openapi.json", "/api/tags", "/api/ps", "/api/status", "/v1/models", "/metrics", "/nothing")
        texts = [client.get(path).text for path in paths]
        texts += [client.post(path, json=body).text for path, body in BODIES.items()]
        texts += [client.post(path, content=b"{").text for path in BODIES]
    assert not [text for text in texts if KEY in text]
    assert not keyed.log_has(KEY)


@pytest.mark.parametrize("header", ["' OR '1'='1", "x'; DROP TABLE responses; --", '" UNION SELECT 1 --'])
def test_what_a_client_sends_is_never_part_of_a_query(served: Served, header: str) -> None:
    with served.http(headers={"Authorization": f"Bearer {header}", "X-Api-Key": header}) as client:
        made = client.post("/v1/responses", json={"model": "scripted", "input": "Hi"}).json()
        for identifier in (header, f"{made['id']}' OR '1'='1", "resp_%", f"{made['id'][:-1]}_"):
            assert client.get(f"/v1/responses/{identifier}").status_code == 404
            assert client.delete(f"/v1/responses/{identifier}").status_code == 404
            body = {"model": "scripted", "input": "Hi", "previous_response_id": identifier}
            assert client.post("/v1/responses", json=body).status_code in {400, 404}
        assert client.get(f"/v1/responses/{made['id']}").status_code == 200


def test_an_error_of_the_server_tells_nothing_of_its_inside(http: httpx2.Client) -> None:
    for path in BODIES:
        for content in (
            b"{",
            b"[]",
            b"\xff",
            b'{"model": {}}',
            b'{"model": "scripted", "messages": [7], "input": [7]}',
        ):
            text = http.post(path, content=content).text
            assert not [word for word in ("Traceback", ".py", "site-packages", "0x", "line ") if word in text], text
            json.loads(text)
