"""The `openai` package's Responses against a real server on a scripted model: its helpers, its state, its WebSocket."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, Final

import openai
import pytest
from pydantic import BaseModel

from tests.clients.conftest import WEATHER
from tests.serving import Served, serving_script

MODEL: Final = "scripted"
SCRIPT: Final = {
    "window": 8192,
    "replies": [
        {"when": "weather", "think": "A call.", "say": "Let me look.", "call": [WEATHER]},
        {"when": "without end", "hang": True},
        {"when": "break off", "say": ["Half ", "an answer"], "fault": "failed", "after": 1},
        {"when": "sum them", "call": [{"name": "mcp__lab__add", "arguments": {"a": 1}}]},
        {"echo": True},
    ],
}
TOOL: Final[Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "Tell the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_script(tmp_path_factory.mktemp("responses"), SCRIPT) as served:
        yield served


@pytest.fixture
def client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def _tokens(response: Any) -> int:
    """Return the tokens of the prompt."""
    return int(response.usage.input_tokens)


def _sent(client: openai.OpenAI, response: str) -> list[str]:
    """Return the texts that were sent with a response."""
    listed: Any = client.responses.input_items.list(response, order="asc")
    return [item.content[0].text for item in listed]


class Point(BaseModel):
    """Where something is."""

    x: int
    y: int


def test_it_answers(client: openai.OpenAI) -> None:
    answer = client.responses.create(model=MODEL, input="hello", instructions="Be.")
    assert (answer.output_text, answer.status, answer.instructions) == ("hello", "completed", "Be.")
    assert answer.usage
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens > 0


def test_a_stream_helper_gives_the_whole(client: openai.OpenAI) -> None:
    with client.responses.stream(
        model=MODEL, input="the weather", tools=[TOOL], reasoning={"summary": "auto"}
    ) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call"]
    assert client.responses.retrieve(final.id).output == client.responses.retrieve(final.id).output
    assert final.output_text == "Let me look."


def test_an_answer_is_parsed_into_a_type(client: openai.OpenAI) -> None:
    parsed = client.responses.parse(model=MODEL, input="a point", text_format=Point)
    assert isinstance(parsed.output_parsed, Point)
    with client.responses.stream(model=MODEL, input="a point", text_format=Point) as stream:
        assert isinstance(stream.get_final_response().output_parsed, Point)


def test_a_conversation_goes_on_by_its_id_and_is_forgotten_when_told(client: openai.OpenAI) -> None:
    first = client.responses.create(model=MODEL, input="banana")
    second = client.responses.create(model=MODEL, input="and", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    assert _tokens(second) > _tokens(first)
    assert _sent(client, first.id) == ["banana"]
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(model=MODEL, input="and", previous_response_id=first.id)
    assert raised.value.code == "previous_response_not_found"


def test_a_call_and_its_result_make_a_turn(client: openai.OpenAI) -> None:
    first = client.responses.create(model=MODEL, input="the weather", tools=[TOOL])
    call = next(item for item in first.output if item.type == "function_call")
    assert call.arguments == '{"city":"Brno"}'
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    history: list[Any] = [{"role": "user", "content": "the weather"}, *first.output, result]
    again = client.responses.create(model=MODEL, input=[*history, {"role": "user", "content": "so"}], tools=[TOOL])
    by_id = client.responses.create(
        model=MODEL, input=[result, {"role": "user", "content": "so"}], previous_response_id=first.id, tools=[TOOL]
    )
    assert again.output_text == by_id.output_text == "so"
    assert _tokens(again) == _tokens(by_id)


def test_a_tool_that_was_found_is_called_by_its_namespace(client: openai.OpenAI) -> None:
    lab = {"type": "namespace", "name": "mcp__lab", "description": "A lab.", "tools": [{**TOOL, "name": "add"}]}
    search: Any = {"type": "tool_search", "execution": "client"}
    items: Any = [
        {"type": "tool_search_call", "call_id": "s", "execution": "client", "arguments": {"query": "add"}},
        {"type": "tool_search_output", "call_id": "s", "execution": "client", "status": "completed", "tools": [lab]},
        {"role": "user", "content": "sum them"},
    ]
    first = client.responses.create(model=MODEL, input=items, tools=[search])
    more = client.responses.create(model=MODEL, input="sum them", previous_response_id=first.id, tools=[search])
    for answer in (first, more):
        call = answer.output[0]
        assert call.type == "function_call"
        assert (call.namespace, call.name) == ("mcp__lab", "add")


def test_an_answer_that_is_cut_says_so(client: openai.OpenAI) -> None:
    cut = client.responses.create(model=MODEL, input="one two three four", max_output_tokens=2)
    assert cut.status == "incomplete"
    assert cut.incomplete_details
    assert cut.incomplete_details.reason == "max_output_tokens"


def test_an_answer_that_breaks_is_a_failed_response(client: openai.OpenAI) -> None:
    events = list(client.responses.create(model=MODEL, input="break off", stream=True))
    assert events[-1].type == "response.failed"
    assert events[-1].response.error
    assert client.responses.retrieve(events[-1].response.id).status == "failed"


def test_what_goes_on_in_the_background_is_fetched_and_stopped(client: openai.OpenAI) -> None:
    begun = client.responses.create(model=MODEL, input="later", background=True)
    assert begun.status == "queued"
    deadline = time.monotonic() + 20
    while (now := client.responses.retrieve(begun.id)).status in ("queued", "in_progress"):
        assert time.monotonic() < deadline
    assert (now.status, now.output_text) == ("completed", "later")
    endless = client.responses.create(model=MODEL, input="without end", background=True)
    assert client.responses.cancel(endless.id).status == "cancelled"
    assert client.responses.retrieve(endless.id).status == "cancelled"


def test_a_conversation_is_compacted_and_goes_on(client: openai.OpenAI) -> None:
    history: Any = [{"role": "user", "content": "banana"}, {"role": "assistant", "content": "Yes."}]
    folded = client.responses.compact(model=MODEL, input=history)
    assert [item.type for item in folded.output] == ["message", "compaction"]
    items: Any = [item.model_dump(exclude_none=True, warnings=False) for item in folded.output]
    answer = client.responses.create(model=MODEL, input=[*items, {"role": "user", "content": "go on"}])
    assert answer.output_text == "go on"
    triggered = client.responses.create(model=MODEL, input=[*history, {"type": "compaction_trigger"}])
    assert [item.type for item in triggered.output] == ["compaction"]


def test_a_long_conversation_is_compacted_before_it_is_answered(client: openai.OpenAI) -> None:
    history: Any = []
    for number in range(40):
        history += [
            {"type": "function_call", "call_id": f"c{number}", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{number}", "output": "line of output\n" * 20},
        ]
    rule: Any = [{"type": "compaction", "compact_threshold": 1000}]
    answer = client.responses.create(
        model=MODEL, input=[*history, {"role": "user", "content": "go on"}], context_management=rule
    )
    assert [item.type for item in answer.output] == ["compaction", "message"]
    assert answer.output_text == "go on"
    more = client.responses.create(model=MODEL, input="and", previous_response_id=answer.id)
    assert _tokens(more) < 3000


def test_tokens_are_counted(client: openai.OpenAI) -> None:
    count = client.responses.input_tokens.count(model=MODEL, input="hello")
    answer = client.responses.create(model=MODEL, input="hello")
    assert count.input_tokens == _tokens(answer)


def test_an_item_is_named_by_its_id(client: openai.OpenAI) -> None:
    first = client.responses.create(model=MODEL, input="banana")
    reference: Any = {"type": "item_reference", "id": first.output[0].id}
    answer = client.responses.create(model=MODEL, input=[reference, {"role": "user", "content": "so"}])
    assert _sent(client, answer.id) == ["banana", "so"]


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")  # How the package opens its connection.
def test_over_a_websocket_a_conversation_goes_on_without_being_stored(client: openai.OpenAI) -> None:
    with client.responses.connect() as connection:

        def turn(**fields: Any) -> Any:
            connection.response.create(model=MODEL, store=False, **fields)
            for event in connection:
                if event.type in ("response.completed", "error"):
                    return event
            return None

        first = turn(input="banana").response
        second = turn(input="and", previous_response_id=first.id).response
        assert second.output_text == "and"
        assert second.usage.input_tokens > first.usage.total_tokens
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


async def test_many_ask_at_the_same_time(served: Served) -> None:
    async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0) as client:
        answers = await asyncio.gather(
            *(client.responses.create(model=MODEL, input=f"number {number}") for number in range(12))
        )
    assert [answer.output_text for answer in answers] == [f"number {number}" for number in range(12)]
