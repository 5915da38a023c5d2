"""The `openai` package for Python against a real server, on the starter models."""

import asyncio
import json
from typing import Any, Final, Literal

import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import BaseModel, ConfigDict, Field

from tests.serving import CHAT, EMBEDDING, Served

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

HELLO: Final[list[ChatCompletionMessageParam]] = [{"role": "user", "content": "Say hello."}]
WEATHER: Final[ChatCompletionToolParam] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tell the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 24}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


class Pet(BaseModel):
    """What a pet is, as a person declares it."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(max_length=12)
    kind: Literal["cat", "dog"]
    age: int = Field(ge=0, le=20)


def test_it_lists_the_models_and_finds_each(openai_client: openai.OpenAI) -> None:
    models = {model.id for model in openai_client.models.list()}
    assert models == {CHAT, EMBEDDING}
    for name in models:
        assert openai_client.models.retrieve(name).id == name


def test_it_chats(openai_client: openai.OpenAI) -> None:
    answer = openai_client.chat.completions.create(model=CHAT, messages=HELLO, max_tokens=8, temperature=0)
    assert answer.model == CHAT
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage
    assert answer.usage.completion_tokens == 8
    assert answer.usage.prompt_tokens > 8


def test_a_stream_folds_into_the_whole_answer(openai_client: openai.OpenAI) -> None:
    asked: Any = {"model": CHAT, "messages": HELLO, "max_tokens": 12, "temperature": 0, "seed": 1}
    whole = openai_client.chat.completions.create(**asked)
    state = ChatCompletionStreamState()
    chunks = list(openai_client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    for chunk in chunks:
        state.handle_chunk(chunk)
    folded = state.current_completion_snapshot
    assert folded.choices[0].message.content == whole.choices[0].message.content
    assert folded.choices[0].finish_reason == whole.choices[0].finish_reason
    assert folded.usage
    assert whole.usage
    assert folded.usage.completion_tokens == whole.usage.completion_tokens
    assert len({chunk.id for chunk in chunks}) == len({chunk.created for chunk in chunks}) == 1
    assert sum(bool(chunk.choices and chunk.choices[0].delta.content) for chunk in chunks) > 1


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
@pytest.mark.parametrize("stream", [True, False])
def test_a_forced_tool_is_called_once_and_whole(openai_client: openai.OpenAI, choice: Any, *, stream: bool) -> None:
    asked: Any = {
        "model": CHAT,
        "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
        "tools": [WEATHER],
        "tool_choice": choice,
        "temperature": 0,
    }
    if stream:
        with openai_client.chat.completions.stream(**asked) as events:
            answer: Any = events.get_final_completion()
    else:
        answer = openai_client.chat.completions.create(**asked)
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "get_weather"
    assert set(json.loads(call.function.arguments)) == {"city"}
    assert call.id
    assert answer.choices[0].finish_reason == "tool_calls"


def test_the_result_of_a_call_goes_back(openai_client: openai.OpenAI) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is the weather in Paris?"}]
    answer = openai_client.chat.completions.create(
        model=CHAT, messages=messages, tools=[WEATHER], tool_choice="required", temperature=0
    )
    message: Any = answer.choices[0].message
    messages.append(message.model_dump(exclude_unset=True))
    messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Sunny."})
    answer = openai_client.chat.completions.create(
        model=CHAT, messages=messages, tools=[WEATHER], tool_choice="none", max_tokens=8
    )
    assert answer.choices[0].message.content
    assert not answer.choices[0].message.tool_calls


def test_a_schema_is_kept_and_parsed(openai_client: openai.OpenAI) -> None:
    answer = openai_client.chat.completions.parse(
        model=CHAT, messages=[{"role": "user", "content": "Make up a pet."}], response_format=Pet, temperature=0
    )
    assert isinstance(answer.choices[0].message.parsed, Pet)


def test_any_json_is_an_object(openai_client: openai.OpenAI) -> None:
    answer = openai_client.chat.completions.create(
        model=CHAT,
        messages=[{"role": "user", "content": "Give the capital of France as a small JSON object."}],
        response_format={"type": "json_object"},
        max_tokens=200,
        temperature=0,
    )
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(answer.choices[0].message.content or ""), dict)
    assert (answer.choices[0].message.content or "").lstrip().startswith("{")


def test_logprobs_belong_to_the_tokens_of_the_answer(openai_client: openai.OpenAI) -> None:
    answer = openai_client.chat.completions.create(
        model=CHAT, messages=HELLO, max_tokens=5, logprobs=True, top_logprobs=3, temperature=0
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs
    assert logprobs.content
    assert len(logprobs.content) == 5
    assert "".join(token.token for token in logprobs.content) == answer.choices[0].message.content
    assert all(len(token.top_logprobs) == 3 and token.logprob <= 0 for token in logprobs.content)


@pytest.mark.parametrize("stream", [True, False])
def test_a_stop_word_ends_the_answer_and_is_not_said(openai_client: openai.OpenAI, *, stream: bool) -> None:
    asked: Any = {"model": CHAT, "messages": HELLO, "max_tokens": 24, "temperature": 0}
    text = openai_client.chat.completions.create(**asked).choices[0].message.content or ""
    stop = text[3:7]
    if stream:
        with openai_client.chat.completions.stream(**asked, stop=stop) as events:
            answer: Any = events.get_final_completion()
    else:
        answer = openai_client.chat.completions.create(**asked, stop=[stop, "never said"])
    assert answer.choices[0].message.content == text[: text.index(stop)]
    assert answer.choices[0].finish_reason == "stop"


def test_choices_are_several_and_a_seed_repeats_them(openai_client: openai.OpenAI) -> None:
    asked: Any = {"model": CHAT, "messages": HELLO, "max_tokens": 12, "temperature": 1.5, "seed": 7, "n": 3}
    first, second = (openai_client.chat.completions.create(**asked) for _ in range(2))
    texts = [choice.message.content for choice in first.choices]
    assert [choice.index for choice in first.choices] == [0, 1, 2]
    assert len(set(texts)) > 1
    assert texts == [choice.message.content for choice in second.choices]


def test_it_completes_text(openai_client: openai.OpenAI) -> None:
    answer = openai_client.completions.create(model=CHAT, prompt="Once upon a", max_tokens=4, temperature=0)
    assert answer.choices[0].text
    chunks = list(
        openai_client.completions.create(model=CHAT, prompt="Once upon a", max_tokens=4, temperature=0, stream=True)
    )
    assert "".join(chunk.choices[0].text for chunk in chunks) == answer.choices[0].text


def test_it_embeds_one_and_many_in_order(openai_client: openai.OpenAI) -> None:
    texts = ["A cat sleeps.", "Stocks fell sharply.", "A kitten naps."]
    many = openai_client.embeddings.create(model=EMBEDDING, input=texts)
    assert [each.index for each in many.data] == [0, 1, 2]
    vectors = [each.embedding for each in many.data]
    assert {len(vector) for vector in vectors} == {384}
    assert _dot(vectors[0], vectors[2]) > _dot(vectors[0], vectors[1])
    assert many.usage.prompt_tokens == many.usage.total_tokens > 9
    one = openai_client.embeddings.create(model=EMBEDDING, input=texts[1])
    assert _dot(one.data[0].embedding, vectors[1]) > 0.999


def test_numbers_are_the_same_as_base64_which_it_asks_for_by_itself(openai_client: openai.OpenAI) -> None:
    packed = openai_client.embeddings.create(model=EMBEDDING, input="A cat sleeps.")
    plain = openai_client.embeddings.create(model=EMBEDDING, input="A cat sleeps.", encoding_format="float")
    assert packed.data[0].embedding == pytest.approx(plain.data[0].embedding, abs=1e-6)


def test_dimensions_are_as_many_as_asked_for(openai_client: openai.OpenAI) -> None:
    answer = openai_client.embeddings.create(model=EMBEDDING, input="A cat sleeps.", dimensions=64)
    assert len(answer.data[0].embedding) == 64
    assert _dot(answer.data[0].embedding, answer.data[0].embedding) == pytest.approx(1, abs=1e-3)


def test_a_model_that_is_not_there_is_not_found_by_its_name(openai_client: openai.OpenAI) -> None:
    calls: list[Any] = [
        lambda: openai_client.chat.completions.create(model="nowhere:7b", messages=HELLO),
        lambda: openai_client.chat.completions.create(model="nowhere:7b", messages=HELLO, stream=True),
        lambda: openai_client.embeddings.create(model="nowhere:7b", input="x"),
        lambda: openai_client.models.retrieve("nowhere:7b"),
    ]
    for call in calls:
        with pytest.raises(openai.NotFoundError, match="nowhere:7b") as caught:
            call()
        assert caught.value.code == "model_not_found"


def test_what_is_wrong_is_a_bad_request_that_names_the_field(openai_client: openai.OpenAI) -> None:
    wrong: Any = {"temperature": "hot"}
    with pytest.raises(openai.BadRequestError) as caught:
        openai_client.chat.completions.create(model=CHAT, messages=HELLO, **wrong)
    assert caught.value.param == "temperature"
    with pytest.raises(openai.BadRequestError) as caught:
        openai_client.chat.completions.create(model=CHAT, messages=[{"role": "user", "content": "word " * 9000}])
    assert caught.value.code == "context_length_exceeded"


def test_a_stream_that_breaks_raises(scripted: Served) -> None:
    with openai.OpenAI(base_url=f"{scripted.url}/v1", api_key="any", max_retries=0) as client:
        chunks = client.chat.completions.create(
            model="scripted", messages=[{"role": "user", "content": "break"}], stream=True
        )
        with pytest.raises(openai.APIError, match="the engine failed"):
            list(chunks)


async def test_many_at_once_are_all_answered(real: Served) -> None:
    async with openai.AsyncOpenAI(base_url=f"{real.url}/v1", api_key="any", max_retries=0) as client:
        answers = await asyncio.gather(
            *(client.chat.completions.create(model=CHAT, messages=HELLO, max_tokens=4) for _ in range(8)),
        )
    assert all(answer.choices[0].message.content for answer in answers)


def _dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
