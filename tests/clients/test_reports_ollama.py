"""What was reported of servers of this kind in Ollama's protocol, one test for each, as right as it should be."""

import json
from collections.abc import Iterator
from typing import Any, Final

import httpx2
import pytest

from tests.serving import CHAT, EMBEDDING, Served

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

HELLO: Final = [{"role": "user", "content": "Say hello."}]
TOOL: Final = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}


@pytest.fixture
def http(scripted: Served) -> Iterator[httpx2.Client]:
    """A client of the scripted server."""
    with scripted.http() as client:
        yield client


@pytest.fixture
def real_http(real: Served) -> Iterator[httpx2.Client]:
    """A client of the server with the starter models."""
    with real.http() as client:
        yield client


def lines_of(client: httpx2.Client, path: str, body: Any) -> list[dict[str, Any]]:
    """Return the lines of a stream, each of them JSON and none of them empty."""
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    *lines, rest = answer.text.split("\n")
    assert rest == ""
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("none", ["", None])
def test_an_empty_format_is_none(http: httpx2.Client, none: str | None) -> None:
    body = {"model": "scripted", "messages": HELLO, "format": none, "stream": False}
    assert http.post("/api/chat", json=body).json()["message"]["content"] == "Say hello."
    body = {"model": "scripted", "prompt": "Say hello.", "format": none, "stream": False}
    assert http.post("/api/generate", json=body).json()["response"] == "Say hello."


def test_a_stream_is_the_default_and_ends_with_the_counts(http: httpx2.Client) -> None:
    for more in ({}, {"stream": None}, {"stream": True}):
        lines = lines_of(http, "/api/chat", {"model": "scripted", "messages": HELLO, **more})
        assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
        assert len(lines) > 2
        assert lines[-1]["eval_count"] > 0
        assert lines[-1]["eval_duration"] > 0


def test_two_calls_have_an_index_of_their_own_and_arguments_that_are_objects(http: httpx2.Client) -> None:
    messages = [{"role": "user", "content": "two"}]
    lines = lines_of(http, "/api/chat", {"model": "scripted", "messages": messages, "tools": [TOOL]})
    calls = [call for line in lines for call in line["message"].get("tool_calls", ())]
    assert [call["function"]["index"] for call in calls] == [0, 1]
    assert [call["function"]["arguments"] for call in calls] == [{"city": "Brno"}, {"city": "Oslo"}]
    assert all(line["message"]["content"] == "" for line in lines)


def test_text_streams_in_pieces_while_tools_are_declared(real_http: httpx2.Client) -> None:
    options = {"num_predict": 16, "temperature": 0}
    messages = [{"role": "user", "content": "Count from one to ten."}]
    body = {"model": CHAT, "messages": messages, "tools": [TOOL], "options": options}
    assert sum(bool(line["message"]["content"]) for line in lines_of(real_http, "/api/chat", body)) > 4


def test_every_entry_has_a_bare_digest_that_can_be_cut(real_http: httpx2.Client) -> None:
    real_http.post("/api/generate", json={"model": CHAT})
    for path in ("/api/tags", "/api/ps"):
        models = real_http.get(path).json()["models"]
        assert models
        assert all(len(model["digest"]) == 64 and int(model["digest"], 16) for model in models)


def test_show_tells_clients_what_they_choose_by(real_http: httpx2.Client) -> None:
    shown = real_http.post("/api/show", json={"model": CHAT}).json()
    info = shown["model_info"]
    architecture = info["general.architecture"]
    assert isinstance(info[f"{architecture}.context_length"], int)
    assert isinstance(info[f"{architecture}.embedding_length"], int)
    assert isinstance(info["general.parameter_count"], int)
    assert shown["capabilities"] == ["completion", "tools"]
    assert shown["details"]["family"] == architecture
    named = real_http.post("/api/show", json={"model": CHAT}, headers={"user-agent": "GitHubCopilotChat/0.30"}).json()
    assert named["model_info"]["general.basename"] == CHAT


def test_the_version_passes_the_gates_of_clients(http: httpx2.Client) -> None:
    for method in ("GET", "HEAD"):
        assert http.request(method, "/api/version").status_code == 200
    version = http.get("/api/version").json()["version"]
    assert tuple(map(int, version.split("."))) >= (0, 6, 4)


@pytest.mark.parametrize(
    "body",
    [{"model": "scripted"}, {"name": "scripted"}, {"model": "", "name": "scripted"}, {"model": "scripted", "name": ""}],
)
def test_show_reads_either_name(http: httpx2.Client, body: Any) -> None:
    assert http.post("/api/show", json=body).json()["details"]["family"] == "scripted"


@pytest.mark.parametrize(
    ("path", "body"),
    [("/api/generate", {}), ("/api/generate", {"prompt": ""}), ("/api/chat", {}), ("/api/chat", {"messages": []})],
)
def test_a_request_without_words_loads_or_unloads(real_http: httpx2.Client, path: str, body: Any) -> None:
    for keep_alive, reason in (("5m", "load"), (0, "unload"), (-1, "load"), ("0s", "unload")):
        answer = real_http.post(path, json={"model": CHAT, "keep_alive": keep_alive, **body})
        assert answer.headers["content-type"].startswith("application/json")
        assert (answer.json()["done"], answer.json()["done_reason"]) == (True, reason)
        running = {model["name"] for model in real_http.get("/api/ps").json()["models"]}
        assert (CHAT in running) == (reason == "load")


def test_a_window_that_is_asked_for_is_served_and_told(real_http: httpx2.Client) -> None:
    body = {"model": CHAT, "messages": HELLO, "stream": False, "options": {"num_ctx": 1024, "num_predict": 1}}
    assert real_http.post("/api/chat", json=body).status_code == 200
    windows = {model["name"]: model["context_length"] for model in real_http.get("/api/ps").json()["models"]}
    assert windows[CHAT] == 1024
    long = [{"role": "user", "content": "word " * 1500}]
    assert real_http.post("/api/chat", json={**body, "messages": long}).status_code == 400
    real_http.post("/api/generate", json={"model": CHAT, "keep_alive": 0})


@pytest.mark.parametrize("stream", [True, False])
def test_a_prompt_over_the_window_is_an_error_unless_truncation_was_asked_for(
    real_http: httpx2.Client, *, stream: bool
) -> None:
    """Nothing is ever cut off in silence, streamed or not, and the next request is answered."""
    old = {"role": "user", "content": "word " * 1200}
    body = {"model": CHAT, "messages": [old, old, old, *HELLO], "stream": stream, "options": {"num_predict": 2}}
    refused = real_http.post("/api/chat", json=body)
    assert refused.status_code == 400
    assert "2048" in refused.json()["error"]
    shorter = real_http.post("/api/chat", json={**body, "truncate": True})
    assert shorter.status_code == 200
    last = json.loads(shorter.text.splitlines()[-1])
    assert 1200 < last["prompt_eval_count"] < 2048
    assert real_http.post("/api/chat", json={**body, "messages": HELLO}).status_code == 200


def test_an_input_that_is_too_long_is_cut_only_where_that_is_the_default_of_the_protocol(
    real_http: httpx2.Client,
) -> None:
    long = "word " * 5000
    refused = real_http.post("/api/embed", json={"model": EMBEDDING, "input": long, "truncate": False})
    assert refused.status_code == 400
    kept = real_http.post("/api/embed", json={"model": EMBEDDING, "input": long})
    assert kept.status_code == 200
    assert len(kept.json()["embeddings"]) == 1


def test_a_stop_word_is_honoured_in_a_stream_as_in_a_whole_answer(http: httpx2.Client) -> None:
    body = {"model": "scripted", "prompt": "L M N O P Q R", "options": {"stop": ["O P Q"]}}
    lines = lines_of(http, "/api/generate", body)
    whole = http.post("/api/generate", json={**body, "stream": False}).json()
    assert "".join(line["response"] for line in lines) == whole["response"] == "L M N "
    assert lines[-1]["done_reason"] == whole["done_reason"] == "stop"
