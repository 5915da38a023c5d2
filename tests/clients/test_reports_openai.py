"""What was reported of servers of this kind in OpenAI's protocol, one test for each, as right as it should be."""

import asyncio
import base64
import json
import struct
from collections.abc import Iterator
from typing import Any, Final

import httpx2
import pytest

from tests.serving import CHAT, EMBEDDING, Served

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

CHAT_PATH: Final = "/v1/chat/completions"
TOOL: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 24}},
            "required": ["city"],
        },
    },
}
HARD: Final = "\N{PARTY POPPER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{ROCKET}日本語č"


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


def asked(text: str = "Say a b c d e f", **more: Any) -> dict[str, Any]:
    """Return a request of one message."""
    return {"model": "scripted", "messages": [{"role": "user", "content": text}], **more}


def chunks_of(client: httpx2.Client, path: str, body: Any) -> list[dict[str, Any]]:
    """Return the chunks of a stream, which ends as it should. A slow one has comments in between, signs of life."""
    answer = client.post(path, json={**body, "stream": True})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, last, rest = answer.text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events if not event.startswith(":")]


def choice_of(client: httpx2.Client, body: Any) -> dict[str, Any]:
    """Return the one choice of a whole answer."""
    answer = client.post(CHAT_PATH, json=body)
    assert answer.status_code == 200, answer.text
    (choice,) = answer.json()["choices"]
    return dict(choice)


def deltas_of(client: httpx2.Client, body: Any) -> list[dict[str, Any]]:
    """Return the deltas of a streamed answer."""
    return [choice["delta"] for chunk in chunks_of(client, CHAT_PATH, body) for choice in chunk["choices"]]


def error_of(answer: httpx2.Response) -> tuple[int, str | None, str | None]:
    """Return status, code and field of a refusal."""
    error = answer.json()["error"]
    assert error["message"]
    assert error["type"]
    return answer.status_code, error["code"], error["param"]


@pytest.mark.parametrize("options", [{}, {"stream_options": None}, {"stream_options": {}}])
def test_no_usage_chunk_is_sent_that_nobody_asked_for(http: httpx2.Client, options: Any) -> None:
    chunks = chunks_of(http, CHAT_PATH, asked(**options))
    assert all(len(chunk["choices"]) == 1 and not chunk.get("usage") for chunk in chunks)


def test_the_usage_chunk_comes_once_behind_the_end_where_it_was_asked_for(http: httpx2.Client) -> None:
    chunks = chunks_of(http, CHAT_PATH, asked(stream_options={"include_usage": True}))
    assert [chunk["choices"] == [] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["total_tokens"] > 0


def test_max_completion_tokens_caps_and_wins(http: httpx2.Client) -> None:
    cases: tuple[dict[str, Any], ...] = ({"max_completion_tokens": 3}, {"max_completion_tokens": 3, "max_tokens": 50})
    for limits in cases:
        answer = http.post(CHAT_PATH, json=asked(**limits)).json()
        assert answer["usage"]["completion_tokens"] == 3
        assert answer["choices"][0]["finish_reason"] == "length"


def test_a_stop_word_across_tokens_ends_the_answer_streamed_or_not(http: httpx2.Client) -> None:
    body = asked("L M N O P Q R", stop="O P Q")
    choice = choice_of(http, body)
    assert (choice["message"]["content"], choice["finish_reason"]) == ("L M N ", "stop")
    assert "".join(delta.get("content") or "" for delta in deltas_of(http, body)) == "L M N "


@pytest.mark.parametrize("strict", [True, None])
def test_a_schema_is_enforced_and_nothing_outside_of_it_comes(real_http: httpx2.Client, *, strict: bool | None) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}, "b": {"enum": ["x", "y"]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    shape = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema, "strict": strict}}
    choice = choice_of(real_http, asked("Write a poem.", response_format=shape) | {"model": CHAT})
    found = json.loads(choice["message"]["content"])
    assert set(found) == {"a", "b"}
    assert found["b"] in {"x", "y"}


def test_a_schema_that_is_not_strict_never_fails_for_what_cannot_be_enforced(real_http: httpx2.Client) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?<=x)y"}}, "required": ["a"]}
    shape = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema, "strict": False}}
    body = asked("Well?", response_format=shape, max_tokens=60) | {"model": CHAT}
    assert choice_of(real_http, body)["message"]["content"].lstrip().startswith("{")


def test_logprobs_are_there_where_they_were_asked_for(http: httpx2.Client) -> None:
    logprobs = choice_of(http, asked(logprobs=True, top_logprobs=3))["logprobs"]
    assert all(len(token["top_logprobs"]) == 3 for token in logprobs["content"])
    assert "".join(token["token"] for token in logprobs["content"]) == "Say a b c d e f"


@pytest.mark.parametrize("path", [CHAT_PATH, "/v1/completions", "/v1/embeddings", "/api/chat", "/api/generate"])
@pytest.mark.parametrize("body", [b"[]", b'"x"', b"1", b"null", b"", b"{", b"\xff"])
def test_a_body_that_is_no_object_is_refused(http: httpx2.Client, path: str, body: bytes) -> None:
    answer = http.post(path, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_two_calls_have_an_index_and_an_id_of_their_own(http: httpx2.Client) -> None:
    pieces = [call for delta in deltas_of(http, asked("two", tools=[TOOL])) for call in delta.get("tool_calls") or ()]
    assert [piece["index"] for piece in pieces] == [0, 1]
    assert len({piece["id"] for piece in pieces}) == 2
    assert [json.loads(piece["function"]["arguments"]) for piece in pieces] == [{"city": "Brno"}, {"city": "Oslo"}]


def test_a_call_ends_with_tool_calls_streamed_or_not(http: httpx2.Client) -> None:
    body = asked("two", tools=[TOOL])
    assert choice_of(http, body)["finish_reason"] == "tool_calls"
    assert chunks_of(http, CHAT_PATH, body)[-1]["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("most", [1, 4])
def test_a_call_that_is_cut_off_ends_with_length_and_is_not_sent_in_half(real_http: httpx2.Client, most: int) -> None:
    body = asked("Weather?", tools=[TOOL], tool_choice="required", max_tokens=most) | {"model": CHAT}
    choice = choice_of(real_http, body)
    assert choice["finish_reason"] == "length"
    assert not choice["message"].get("tool_calls")
    assert not any(delta.get("tool_calls") for delta in deltas_of(real_http, body))


def test_text_streams_in_pieces_while_tools_are_declared(http: httpx2.Client, real_http: httpx2.Client) -> None:
    for client, model in ((http, "scripted"), (real_http, CHAT)):
        deltas = deltas_of(client, asked("Count from one to ten.", tools=[TOOL], max_tokens=16) | {"model": model})
        assert sum(bool(delta.get("content")) for delta in deltas) > 4


@pytest.mark.parametrize(
    "broken", ['<tool_call>{"name": ', '<tool_call>{"name":"get_weather","arguments":[]}</tool_call>', "[TOOL_CALLS][{"]
)
def test_a_call_in_a_broken_form_is_text_and_no_fault(real_http: httpx2.Client, broken: str) -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"enum": [broken]}}}
    body = asked("Weather?", tools=[TOOL], response_format=shape) | {"model": CHAT}
    assert json.loads(choice_of(real_http, body)["message"]["content"]) == broken
    assert json.loads("".join(delta.get("content") or "" for delta in deltas_of(real_http, body))) == broken


def test_vectors_are_packed_as_asked(http: httpx2.Client) -> None:
    body = {"model": "scripted-embed", "input": "a b"}
    plain = http.post("/v1/embeddings", json=body).json()["data"][0]["embedding"]
    packed = http.post("/v1/embeddings", json={**body, "encoding_format": "base64"}).json()["data"][0]["embedding"]
    assert len(plain) == 32
    assert struct.unpack("<32f", base64.b64decode(packed)) == pytest.approx(plain, abs=1e-6)


@pytest.mark.parametrize(
    ("given", "count"), [("a", 1), (["a", "b", "c"], 3), ([1, 2, 3], 1), ([[1, 2], [3]], 2), ("", 1), ([], None)]
)
def test_inputs_are_texts_or_tokens_in_order(real_http: httpx2.Client, given: Any, count: int | None) -> None:
    answer = real_http.post("/v1/embeddings", json={"model": EMBEDDING, "input": given})
    if count is None:
        assert error_of(answer) == (400, "invalid_value", "input")
    else:
        assert [each["index"] for each in answer.json()["data"]] == list(range(count))


async def test_300_embeddings_at_once_are_served_or_told_to_come_back(real: Served) -> None:
    limits = httpx2.Limits(max_connections=300)
    async with httpx2.AsyncClient(base_url=real.url, timeout=120, trust_env=False, limits=limits) as client:
        body = {"model": EMBEDDING, "prompt": "A cat sleeps."}
        answers = await asyncio.gather(*(client.post("/api/embeddings", json=body) for _ in range(300)))
        assert {answer.status_code for answer in answers} <= {200, 503}
        assert sum(answer.status_code == 200 for answer in answers) >= 4
        assert all(answer.headers["retry-after"] for answer in answers if answer.status_code == 503)
        assert (await client.post("/api/embeddings", json=body)).status_code == 200


def test_an_input_that_is_too_long_is_refused_and_harms_nobody(real_http: httpx2.Client) -> None:
    long = real_http.post("/v1/embeddings", json={"model": EMBEDDING, "input": "word " * 200_000})
    assert error_of(long)[:2] == (400, "context_length_exceeded")
    assert real_http.post("/v1/embeddings", json={"model": EMBEDDING, "input": "word"}).status_code == 200


@pytest.mark.parametrize("name", ["scripted", "scripted:latest", "Scripted:LATEST"])
def test_a_name_without_a_tag_is_the_latest(http: httpx2.Client, name: str) -> None:
    assert http.get(f"/v1/models/{name}").json()["id"] == name
    assert choice_of(http, asked() | {"model": name})["message"]["content"]
    assert http.post("/api/show", json={"model": name}).status_code == 200
    assert http.post("/api/chat", json={**asked(), "model": name, "stream": False}).json()["model"] == name


@pytest.mark.parametrize("name", ["scripted:7b", "hf.co/user/scripted:Q4_K_M", "user/scripted"])
def test_a_tag_or_a_path_is_never_cut_off(http: httpx2.Client, name: str) -> None:
    answer = http.post(CHAT_PATH, json=asked() | {"model": name})
    assert error_of(answer) == (404, "model_not_found", "model")
    assert name in answer.json()["error"]["message"]
    assert error_of(http.get(f"/v1/models/{name}"))[:2] == (404, "model_not_found")


def test_characters_of_several_tokens_come_whole(real_http: httpx2.Client) -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"enum": [HARD]}, "strict": True}}
    body = asked("Well?", response_format=shape) | {"model": CHAT}
    text = [delta.get("content") or "" for delta in deltas_of(real_http, body)]
    assert json.loads("".join(text)) == HARD
    lines = real_http.post(
        "/api/chat", json={"model": CHAT, "messages": body["messages"], "format": {"enum": [HARD]}}
    ).text.splitlines()
    said = [json.loads(line)["message"]["content"] for line in lines]
    assert json.loads("".join(said)) == HARD
    assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in (*text, *said))


def test_characters_of_several_tokens_come_whole_in_arguments(real_http: httpx2.Client) -> None:
    parameters = {"type": "object", "properties": {"city": {"enum": [HARD]}}, "required": ["city"]}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    deltas = deltas_of(real_http, asked("Well?", tools=[tool], tool_choice="required") | {"model": CHAT})
    arguments = "".join(call["function"]["arguments"] for delta in deltas for call in delta.get("tool_calls") or ())
    assert json.loads(arguments) == {"city": HARD}


@pytest.mark.parametrize("stream", [True, False])
def test_a_prompt_over_the_window_is_an_error_with_both_numbers_and_harms_nobody(
    real_http: httpx2.Client, *, stream: bool
) -> None:
    long = real_http.post(CHAT_PATH, json=asked("word " * 5000, stream=stream) | {"model": CHAT})
    assert error_of(long)[:2] == (400, "context_length_exceeded")
    message = long.json()["error"]["message"]
    assert "2048" in message
    assert any(number > 5000 for number in map(int, filter(str.isdigit, message.replace(",", " ").split())))
    assert choice_of(real_http, asked("Hi", max_tokens=1) | {"model": CHAT})["message"]["content"]


@pytest.mark.parametrize("field", ["options", "num_ctx", "keep_alive"])
def test_what_belongs_to_the_other_protocol_is_honoured_or_refused_by_its_name(http: httpx2.Client, field: str) -> None:
    values: dict[str, Any] = {"options": {"num_ctx": 512}, "num_ctx": 512, "keep_alive": "5m"}
    answer = http.post(CHAT_PATH, json=asked() | {field: values[field]})
    assert answer.status_code == 200 or error_of(answer)[2] == field
