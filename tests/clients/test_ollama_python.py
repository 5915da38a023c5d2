"""The `ollama` package for Python against a real server, on the starter models."""

import json
import math
from typing import Any, Final

import ollama
import pytest
from pydantic import BaseModel, Field

from tests.serving import CHAT, EMBEDDING, Served

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

HELLO: Final = [{"role": "user", "content": "Say hello."}]
SHORT: Final = {"temperature": 0, "num_predict": 8}
ECHOED: Final = """Say this again, word for word, and nothing else:
<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris"}}
</tool_call>"""
"""Ollama's protocol cannot force a call, but the small model can be made to write one."""


class Pet(BaseModel):
    """What a pet is, as a person declares it."""

    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=20)


def get_weather(city: str) -> str:
    """Tell the weather.

    Args:
        city: Where.

    """
    return f"Sunny in {city}."


def test_it_lists_the_models(ollama_client: ollama.Client) -> None:
    listed = {model.model: model for model in ollama_client.list().models}
    assert set(listed) == {CHAT, EMBEDDING}
    model = listed[CHAT]
    assert model.digest
    assert len(model.digest) == 64
    assert model.size
    assert model.size > 90_000_000
    assert model.modified_at
    assert model.details
    assert model.details.format == "gguf"


def test_it_shows_a_model(ollama_client: ollama.Client) -> None:
    shown = ollama_client.show(CHAT)
    assert shown.modelinfo
    assert shown.modelinfo["general.architecture"] == "llama"
    assert shown.modelinfo["llama.context_length"] == 8192
    assert set(shown.capabilities or ()) == {"completion", "tools"}
    assert "<|im_start|>" in (shown.template or "")
    assert ollama_client.show(EMBEDDING).capabilities == ["embedding"]


def test_it_loads_tells_what_is_loaded_and_unloads(ollama_client: ollama.Client) -> None:
    loaded = ollama_client.generate(CHAT, keep_alive="10m")
    assert (loaded.done, loaded.done_reason, loaded.response) == (True, "load", "")
    running = {model.model: model for model in ollama_client.ps().models}
    assert running[CHAT].context_length == 2048
    assert running[CHAT].expires_at
    assert running[CHAT].size
    unloaded = ollama_client.chat(CHAT, keep_alive=0)
    assert (unloaded.done_reason, unloaded.message.content) == ("unload", "")
    assert CHAT not in {model.model for model in ollama_client.ps().models}


def test_it_chats(ollama_client: ollama.Client) -> None:
    answer = ollama_client.chat(CHAT, HELLO, options=SHORT)
    assert answer.message.role == "assistant"
    assert answer.message.content
    assert answer.done_reason == "length"
    assert answer.eval_count == 8
    assert answer.prompt_eval_count
    assert all((answer.total_duration, answer.load_duration, answer.prompt_eval_duration, answer.eval_duration))


def test_a_stream_adds_up_to_the_whole_answer(ollama_client: ollama.Client) -> None:
    whole = ollama_client.chat(CHAT, HELLO, options=SHORT)
    lines = list(ollama_client.chat(CHAT, HELLO, options=SHORT, stream=True))
    assert "".join(line.message.content or "" for line in lines) == whole.message.content
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1].eval_count == whole.eval_count == 8
    assert len(lines) > 3


def test_it_generates_with_a_system_text_and_goes_on_from_the_context(ollama_client: ollama.Client) -> None:
    first = ollama_client.generate(CHAT, "My name is Ada.", system="Be brief.", options=SHORT)
    assert first.response
    assert first.context
    second = ollama_client.generate(CHAT, "What is my name?", context=first.context, options=SHORT)
    assert second.prompt_eval_count
    assert second.prompt_eval_count > len(first.context)
    lines = list(ollama_client.generate(CHAT, "Once upon a", raw=True, options=SHORT, stream=True))
    assert "".join(line.response or "" for line in lines)
    assert lines[-1].context is None


@pytest.mark.parametrize("stream", [True, False])
def test_a_tool_is_called_and_its_result_goes_back(ollama_client: ollama.Client, *, stream: bool) -> None:
    messages: list[Any] = [{"role": "user", "content": ECHOED}]
    options = {"temperature": 0, "num_predict": 60}
    asked: Any = {"model": CHAT, "tools": [get_weather], "options": options}
    chat: Any = ollama_client.chat
    answer = chat(**asked, messages=messages, stream=stream)
    made = [line.message for line in answer] if stream else [answer.message]
    (call,) = [call for message in made for call in message.tool_calls or ()]
    assert call.function.name == "get_weather"
    assert call.function.arguments == {"city": "Paris"}
    assert "".join(message.content or "" for message in made) == ""
    messages += [{"role": "assistant", "tool_calls": [call]}]
    messages += [{"role": "tool", "tool_name": "get_weather", "content": get_weather(**call.function.arguments)}]
    assert chat(messages=messages, **asked).message.content


def test_several_calls_and_the_text_before_them_come_apart(scripted: Served) -> None:
    with ollama.Client(scripted.url, trust_env=False) as client:
        for words, calls in (("weather", 1), ("two", 2)):
            lines = list(
                client.chat("scripted", [{"role": "user", "content": words}], tools=[get_weather], stream=True)
            )
            found = [call for line in lines for call in line.message.tool_calls or ()]
            assert [dict(call.function.arguments) for call in found] == [{"city": "Brno"}, {"city": "Oslo"}][:calls]
            assert lines[-1].done_reason == "stop"


def test_thinking_comes_apart(scripted: Served) -> None:
    with ollama.Client(scripted.url, trust_env=False) as client:
        answer = client.chat("scripted", [{"role": "user", "content": "think"}], think=True)
        assert (answer.message.thinking, answer.message.content) == ("Let me see.", "It is 42.")


def test_a_schema_is_kept(ollama_client: ollama.Client) -> None:
    answer = ollama_client.chat(
        CHAT,
        [{"role": "user", "content": "Make up a pet."}],
        format=Pet.model_json_schema(),
        options={"temperature": 0},
    )
    assert Pet.model_validate_json(answer.message.content or "").name
    other = ollama_client.generate(CHAT, "Make up a pet.", format=Pet.model_json_schema(), options={"temperature": 0})
    assert set(json.loads(other.response or "")) == {"name", "age"}


def test_logprobs_belong_to_the_tokens_of_the_answer(ollama_client: ollama.Client) -> None:
    answer = ollama_client.chat(CHAT, HELLO, options=SHORT, logprobs=True, top_logprobs=2)
    assert answer.logprobs
    assert len(answer.logprobs) == 8
    assert "".join(token.token for token in answer.logprobs) == answer.message.content
    assert all(len(token.top_logprobs or ()) == 2 for token in answer.logprobs)


@pytest.mark.parametrize("stream", [True, False])
def test_a_stop_word_ends_the_answer_and_is_not_said(ollama_client: ollama.Client, *, stream: bool) -> None:
    options = {"temperature": 0, "num_predict": 24}
    text = ollama_client.chat(CHAT, HELLO, options=options).message.content or ""
    stop = text[3:7]
    asked: Any = {"messages": HELLO, "options": {**options, "stop": [stop]}, "stream": stream}
    answer: Any = ollama_client.chat(CHAT, **asked)
    lines = list(answer) if stream else [answer]
    assert "".join(line.message.content or "" for line in lines) == text[: text.index(stop)]
    assert lines[-1].done_reason == "stop"


def test_a_seed_repeats_an_answer(ollama_client: ollama.Client) -> None:
    options = {"temperature": 1.5, "num_predict": 12, "seed": 7}
    first, second = (ollama_client.chat(CHAT, HELLO, options=options).message.content for _ in range(2))
    assert first == second


def test_it_embeds_one_and_many_in_order_and_of_length_one(ollama_client: ollama.Client) -> None:
    texts = ["A cat sleeps.", "Stocks fell sharply.", "A kitten naps."]
    many = ollama_client.embed(EMBEDDING, texts)
    assert [len(vector) for vector in many.embeddings] == [384] * 3
    assert all(math.isclose(math.hypot(*vector), 1, abs_tol=1e-4) for vector in many.embeddings)
    assert many.prompt_eval_count
    one = ollama_client.embed(EMBEDDING, texts[1]).embeddings[0]
    assert one == pytest.approx(many.embeddings[1], abs=1e-2)
    assert len(ollama_client.embed(EMBEDDING, texts[0], dimensions=64).embeddings[0]) == 64
    old = ollama_client.embeddings(EMBEDDING, texts[0]).embedding
    assert len(old) == 384


def test_a_model_that_is_not_there_is_404_by_its_name(ollama_client: ollama.Client) -> None:
    calls: list[Any] = [
        lambda: ollama_client.chat("nowhere:7b", HELLO),
        lambda: list(ollama_client.chat("nowhere:7b", HELLO, stream=True)),
        lambda: ollama_client.generate("nowhere:7b", "x"),
        lambda: ollama_client.embed("nowhere:7b", "x"),
        lambda: ollama_client.embeddings("nowhere:7b", "x"),
        lambda: ollama_client.show("nowhere:7b"),
    ]
    for call in calls:
        with pytest.raises(ollama.ResponseError, match=r"nowhere:7b.*not found") as caught:
            call()
        assert caught.value.status_code == 404


def test_what_is_wrong_is_told_with_a_status(ollama_client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="does not support thinking") as caught:
        ollama_client.chat(CHAT, HELLO, think=True)
    assert caught.value.status_code == 400
    with pytest.raises(ollama.ResponseError, match="does not support chat") as caught:
        ollama_client.chat(EMBEDDING, HELLO)
    assert caught.value.status_code == 400


def test_a_stream_that_breaks_raises(scripted: Served) -> None:
    with ollama.Client(scripted.url, trust_env=False) as client:
        lines = client.chat("scripted", [{"role": "user", "content": "break"}], stream=True)
        with pytest.raises(ollama.ResponseError, match="the engine failed"):
            list(lines)


async def test_the_client_for_coroutines_streams_too(real: Served) -> None:
    async with ollama.AsyncClient(real.url, trust_env=False) as client:
        lines = [line async for line in await client.chat(CHAT, HELLO, options=SHORT, stream=True)]
    assert lines[-1].done
