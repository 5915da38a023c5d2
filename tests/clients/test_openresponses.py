"""What the compliance suite of Open Responses looks at, case by case, against a real server on a scripted model.

The suite itself is run by `make conformance`; these are the behaviours behind its seventeen names.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final

import httpx2
import pytest
import websockets

from tests.dialects.openai.material import data_url, png
from tests.serving import Served, serving_script

SCRIPT: Final = {
    "window": 8192,
    "replies": [
        {"when": "San Francisco", "call": [{"name": "get_weather", "arguments": {"location": "San Francisco, CA"}}]},
        {"echo": True},
    ],
}
REQUIRED: Final = (
    *("id", "object", "created_at", "completed_at", "status", "incomplete_details", "model", "previous_response_id"),
    *("instructions", "output", "error", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text", "top_p"),
    *("presence_penalty", "frequency_penalty", "top_logprobs", "temperature", "reasoning", "usage"),
    *("max_output_tokens", "max_tool_calls", "store", "background", "service_tier", "metadata", "safety_identifier"),
    "prompt_cache_key",
)
NUMBERS: Final = ("created_at", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs", "temperature")
TOOL: Final = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the weather of a place.",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}
ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "error")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_script(tmp_path_factory.mktemp("openresponses"), SCRIPT) as served:
        yield served


def user(text: str) -> dict[str, Any]:
    """Return what a user says."""
    return {"type": "message", "role": "user", "content": text}


def complete(response: Any) -> Any:
    """Return a response after a look at its keys."""
    assert [key for key in REQUIRED if key not in response] == []
    assert [key for key in NUMBERS if not isinstance(response[key], int | float)] == []
    assert response["status"] == "completed"
    return response


def ask(served: Served, path: str = "/v1/responses", **body: Any) -> httpx2.Response:
    """Make a request."""
    return httpx2.post(f"{served.url}{path}", json={"model": "scripted", **body}, timeout=30)


def answer(served: Served, *items: Any, **body: Any) -> Any:
    """Return a complete response with an output."""
    response = complete(ask(served, input=list(items), **body).raise_for_status().json())
    assert response["output"]
    return response


def stream(served: Served, *items: Any, **body: Any) -> list[Any]:
    """Return the events of a stream that ended well."""
    text = ask(served, input=list(items), stream=True, **body).raise_for_status().text
    events = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    complete(events[-1]["response"])
    return events


async def talk(served: Served, *turns: Any) -> list[Any]:
    """Hold a conversation over one WebSocket. A turn is a body, or makes one of the ends so far; return all ends."""
    url = served.url.replace("http", "ws", 1) + "/v1/responses"
    ends: list[Any] = []
    async with websockets.connect(url, additional_headers={"Authorization": "Bearer any"}) as socket:
        for turn in turns:
            body = turn(ends) if callable(turn) else turn
            await socket.send(json.dumps({"type": "response.create", "model": "scripted", "store": False, **body}))
            event: Any = {"type": ""}
            while event["type"] not in ENDS:
                event = json.loads(await asyncio.wait_for(socket.recv(), 30))
            ends.append(event)
    return ends


def test_basic_response(served: Served) -> None:
    message = answer(served, user("Say hello."))["output"][0]
    assert {"id", "status", "role", "content"} <= message.keys()
    assert message["content"][0].keys() >= {"text", "annotations", "logprobs"}


def test_assistant_phase(served: Served) -> None:
    said = {"type": "message", "role": "assistant", "phase": "commentary", "content": "I look."}
    final = {**said, "phase": "final_answer", "content": "Four."}
    kept = answer(served, said, final, user("Again."))
    items = httpx2.get(f"{served.url}/v1/responses/{kept['id']}/input_items?order=asc").json()["data"]
    assert [item.get("phase") for item in items] == ["commentary", "final_answer", None]


def test_streaming_response(served: Served) -> None:
    events = stream(served, user("Count."))
    assert events[0]["type"] == "response.created"
    assert events[-1]["type"] == "response.completed"


def test_system_prompt(served: Served) -> None:
    answer(served, {"type": "message", "role": "system", "content": "You are a pirate."}, user("Hello."))


def test_tool_calling(served: Served) -> None:
    response = answer(served, user("The weather in San Francisco?"), tools=[TOOL])
    call = response["output"][0]
    assert (call["type"], json.loads(call["arguments"])) == ("function_call", {"location": "San Francisco, CA"})
    assert response["tools"] == [{**TOOL, "strict": None}]


def test_tool_calling_streamed(served: Served) -> None:
    kinds = [event["type"] for event in stream(served, user("The weather in San Francisco?"), tools=[TOOL])]
    call = ["response.output_item.added", "response.function_call_arguments.delta"]
    assert kinds[2:-1] == [*call, "response.function_call_arguments.done", "response.output_item.done"]


def test_image_input(served: Served) -> None:
    parts = [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": data_url(png())}]
    answer(served, {"type": "message", "role": "user", "content": parts})


def test_multi_turn(served: Served) -> None:
    said = {"type": "message", "role": "assistant", "content": "Hello Alice!"}
    answer(served, user("I am Alice."), said, user("Who am I?"))


def test_compact_response(served: Served) -> None:
    said = {"type": "message", "role": "assistant", "content": "Tuesday, support first."}
    reply = ask(served, "/v1/responses/compact", input=[user("We launch on Tuesday."), said], prompt_cache_key="key")
    body = reply.raise_for_status().json()
    assert body.keys() == {"id", "object", "output", "created_at", "usage"}
    assert body["object"] == "response.compaction"
    assert [item["type"] for item in body["output"]] == ["message", "compaction"]


def test_compact_missing_model(served: Served) -> None:
    reply = httpx2.post(f"{served.url}/v1/responses/compact", json={"input": [user("Compact this.")]})
    assert reply.status_code == 400


async def test_websocket_response(served: Served) -> None:
    (end,) = await talk(served, {"input": [user("Count.")], "store": True})
    assert complete(end["response"])["output"]


async def test_websocket_sequential_responses(served: Served) -> None:
    ends = await talk(served, {"input": "first"}, {"input": "second"})
    texts = [complete(end["response"])["output"][0]["content"][0]["text"] for end in ends]
    assert texts == ["first", "second"]


async def test_websocket_continuation(served: Served) -> None:
    first, second = await talk(
        served, {"input": "cobalt"}, lambda ends: {"input": "And?", "previous_response_id": ends[0]["response"]["id"]}
    )
    tokens = [complete(end["response"])["usage"]["input_tokens"] for end in (first, second)]
    assert tokens[1] > tokens[0]


async def test_websocket_generate_false(served: Served) -> None:
    warm, second = await talk(
        served,
        {"input": "cobalt", "generate": False},
        lambda ends: {"input": "And?", "previous_response_id": ends[0]["response"]["id"]},
    )
    assert complete(warm["response"])["output"] == []
    assert complete(second["response"])["output"]


async def test_websocket_reconnect_store_false_recovery(served: Served) -> None:
    (first,) = await talk(served, {"input": "copper"})
    missed, recovered = await talk(
        served, {"input": "And?", "previous_response_id": first["response"]["id"]}, {"input": "Again."}
    )
    assert (missed["status"], missed["error"]["code"]) == (400, "previous_response_not_found")
    assert complete(recovered["response"])["output"]


async def test_websocket_previous_response_not_found(served: Served) -> None:
    (end,) = await talk(served, {"input": "And?", "previous_response_id": "resp_openresponses_missing_1"})
    assert end["error"].keys() >= {"code", "message", "param", "type"}
    assert end["error"]["code"] == "previous_response_not_found"


async def test_websocket_failed_continuation_evicts_cache(served: Served) -> None:
    stray = {"type": "function_call_output", "call_id": "call_missing", "output": "No such call."}

    def going_on(ends: list[Any], given: Any) -> dict[str, Any]:
        return {"input": given, "previous_response_id": ends[0]["response"]["id"]}

    _, failed, retried = await talk(
        served, {"input": "ember"}, lambda ends: going_on(ends, [stray]), lambda ends: going_on(ends, "And?")
    )
    assert failed["type"] == "error"
    assert retried["error"]["code"] == "previous_response_not_found"


async def test_websocket_compact_new_chain(served: Served) -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "OK."}]}
    body = ask(served, "/v1/responses/compact", input=[user("Remember slate."), said, user("Compress.")]).json()
    (end,) = await talk(served, {"input": [*body["output"], user("Continue.")], "tools": []})
    assert complete(end["response"])["output"]
