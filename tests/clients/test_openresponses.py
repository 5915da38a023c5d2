"""What the openresponses compliance suite looks at (`make conformance`), in our own words: 17 behaviours of one server.

Every response is held against the keys that the specification requires; every event against its order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from websockets.sync.client import ClientConnection, connect

from diglot.framing.sse import SseDecoder
from tests.serving import Served, serving_script

pytestmark = pytest.mark.timeout(120)
REQUIRED: Final = {
    *("id", "object", "created_at", "completed_at", "status", "incomplete_details", "model", "previous_response_id"),
    *("instructions", "output", "error", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text", "top_p"),
    *("presence_penalty", "frequency_penalty", "top_logprobs", "temperature", "reasoning", "usage", "store"),
    *("max_output_tokens", "max_tool_calls", "background", "service_tier", "metadata", "safety_identifier"),
    "prompt_cache_key",
}
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WEATHER: Final = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}
ENDS: Final = {"response.completed", "response.incomplete", "response.failed", "error"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    call = {"when": "weather", "call": [{"name": "get_weather", "arguments": {"location": "Brno"}}]}
    with serving_script(tmp_path_factory.mktemp("served"), {"replies": [call, {"echo": True}]}) as served:
        yield served


def message(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content, **more}


def post(served: Served, path: str = "/v1/responses", **fields: Any) -> Any:
    """Send a request and return its body, which must be a success."""
    with served.http() as client:
        answer = client.post(path, json={"model": "scripted", **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def answered(served: Served, *items: dict[str, Any], **fields: Any) -> str:
    """Ask, and return the text of a response that is whole and completed."""
    response = post(served, input=list(items), **fields)
    assert set(response) >= REQUIRED
    assert response["status"] == "completed"
    assert response["completed_at"] >= response["created_at"]
    return text_of(response)


def text_of(response: Any) -> str:
    """Return the text of the one message of a response."""
    (item,) = response["output"]
    assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
    (part,) = item["content"]
    assert part["annotations"] == []
    return str(part["text"])


def in_order(events: list[Any]) -> Any:
    """Hold the events of one response against their order, and return that response."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[2:4] == ["response.output_item.added", "response.content_part.added"]
    ends = ["response.output_text.done", "response.content_part.done", "response.output_item.done"]
    assert kinds[-4:] == [*ends, "response.completed"]
    assert set(kinds[4:-4]) == {"response.output_text.delta"}
    response = events[-1]["response"]
    assert set(response) >= REQUIRED
    assert "".join(event["delta"] for event in events[4:-4]) == text_of(response)
    return response


class Line:
    """A WebSocket to the server."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def ask(self, **fields: Any) -> list[Any]:
        """Create a response that is not stored, and return its events."""
        message = {"type": "response.create", "model": "scripted", "store": False, **fields}
        self._connection.send(json.dumps(message))
        events: list[Any] = []
        while not events or events[-1]["type"] not in ENDS:
            events.append(json.loads(self._connection.recv(timeout=30)))
        return events

    def refused(self, **fields: Any) -> Any:
        """Ask for what cannot be, and return the error."""
        (event,) = self.ask(**fields)
        assert event["type"] == "error"
        return event["error"]


@contextmanager
def line(served: Served) -> Iterator[Line]:
    """Open a WebSocket."""
    address = f"{served.url.replace('http', 'ws', 1)}/v1/responses"
    with connect(address, additional_headers={"Authorization": "Bearer any"}, proxy=None) as connection:
        yield Line(connection)


def test_a_message_is_answered_by_a_whole_response(served: Served) -> None:
    assert answered(served, message("user", "three words please")) == "three words please"


def test_phases_of_an_agents_messages_are_taken(served: Served) -> None:
    history = [message("assistant", "looking", phase="commentary"), message("assistant", "4", phase="final_answer")]
    assert answered(served, *history, message("user", "again")) == "again"


def test_phases_come_back_with_the_items_that_had_them(served: Served) -> None:
    given = [message("assistant", "looking", phase="commentary"), message("assistant", "4", phase="final_answer")]
    response = post(served, input=[*given, message("user", "again")])
    with served.http() as client:
        listed = client.get(f"/v1/responses/{response['id']}/input_items", params={"order": "asc"}).json()["data"]
    assert [item.get("phase") for item in listed] == ["commentary", "final_answer", None]


def test_a_stream_is_events_in_order_and_ends_with_the_response(served: Served) -> None:
    decoder = SseDecoder()
    with (
        served.http() as client,
        client.stream(
            "POST", "/v1/responses", json={"model": "scripted", "stream": True, "input": "one two"}
        ) as answer,
    ):
        events = [event for piece in answer.iter_bytes() for event in decoder.feed(piece)]
    decoded = [json.loads(event.data) for event in events]
    assert [event.name.decode() for event in events] == [event["type"] for event in decoded]
    assert text_of(in_order(decoded)) == "one two"


def test_a_system_message_is_taken(served: Served) -> None:
    assert answered(served, message("system", "You are a pirate."), message("user", "hello")) == "hello"


def test_a_declared_function_is_called(served: Served) -> None:
    response = post(served, input=[message("user", "the weather?")], tools=[WEATHER])
    (call,) = response["output"]
    assert (call["type"], call["name"], json.loads(call["arguments"])) == (
        "function_call",
        "get_weather",
        {"location": "Brno"},
    )
    assert response["tools"][0]["name"] == "get_weather"


def test_an_image_is_seen(served: Served) -> None:
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
    assert answered(served, message("user", [{"type": "input_text", "text": "what is it?"}, image])) == "what is it?"


def test_a_conversation_of_several_turns_is_taken(served: Served) -> None:
    history = [message("user", "I am Ada."), message("assistant", "Hello Ada.")]
    assert answered(served, *history, message("user", "who am I?")) == "who am I?"


def test_a_short_conversation_is_compacted_to_its_user_messages_and_one_item(served: Served) -> None:
    history = [message("user", "we launch on Tuesday"), message("assistant", "Tuesday it is.")]
    folded = post(served, "/v1/responses/compact", input=history, prompt_cache_key="key")
    assert folded["object"] == "response.compaction"
    assert [item["type"] for item in folded["output"]] == ["message", "compaction"]
    assert folded["usage"]["total_tokens"] > 0


def test_a_compaction_without_a_model_is_refused(served: Served) -> None:
    with served.http() as client:
        answer = client.post("/v1/responses/compact", json={"input": "hello"})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "model"


def test_over_a_websocket_a_response_is_the_same_events(served: Served) -> None:
    with line(served) as talk:
        assert text_of(in_order(talk.ask(input=[message("user", "one two")]))) == "one two"


def test_over_a_websocket_one_response_follows_the_other(served: Served) -> None:
    with line(served) as talk:
        responses = [in_order(talk.ask(input=f"number {number}")) for number in range(3)]
    assert [text_of(response) for response in responses] == ["number 0", "number 1", "number 2"]
    assert len({response["id"] for response in responses}) == 3


def test_over_a_websocket_what_is_not_stored_goes_on_by_its_id(served: Served) -> None:
    with line(served) as talk:
        first = in_order(talk.ask(input="cobalt"))
        second = in_order(talk.ask(input="and", previous_response_id=first["id"]))
    assert second["previous_response_id"] == first["id"]
    assert second["usage"]["input_tokens"] > first["usage"]["total_tokens"]


def test_another_websocket_knows_nothing_of_it_and_begins_anew(served: Served) -> None:
    with line(served) as talk:
        first = in_order(talk.ask(input="copper"))
    with line(served) as talk:
        assert talk.refused(input="and", previous_response_id=first["id"])["code"] == "previous_response_not_found"
        assert text_of(in_order(talk.ask(input="anew"))) == "anew"


def test_over_a_websocket_an_unknown_response_cannot_be_gone_on_from(served: Served) -> None:
    with line(served) as talk:
        error = talk.refused(input="and", previous_response_id="resp_missing")
    assert error["code"] == "previous_response_not_found"
    assert error["param"] == "previous_response_id"


def test_over_a_websocket_a_turn_that_failed_takes_what_it_went_on_from_with_it(served: Served) -> None:
    with line(served) as talk:
        first = in_order(talk.ask(input="ember"))
        stranger = [{"type": "function_call_output", "call_id": "call_stranger", "output": "none"}]
        talk.refused(input=stranger, previous_response_id=first["id"])
        assert talk.refused(input="and", previous_response_id=first["id"])["code"] == "previous_response_not_found"


def test_over_a_websocket_a_compacted_conversation_begins_a_new_chain(served: Served) -> None:
    history = [message("user", "we launch on Tuesday"), message("assistant", "Tuesday it is.")]
    folded = post(served, "/v1/responses/compact", input=history)["output"]
    with line(served) as talk:
        response = in_order(talk.ask(input=[*folded, message("user", "when?")]))
    assert text_of(response).endswith("when?")
    assert response["previous_response_id"] is None
