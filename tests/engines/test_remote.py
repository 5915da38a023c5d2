"""Models on somebody else's server: what is found out of them, sent to them, and told when they fail.

The server is made up here, in the shapes that vLLM and OpenAI document; the real thing, llama.cpp's server,
is in the conformance tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from diglot.core.errors import (
    Busy,
    ContextExceeded,
    Fault,
    InvalidField,
    ModelNotFound,
    UnsupportedField,
    UpstreamFailed,
)
from diglot.core.events import Event, ReasoningDelta, Started, TextDelta
from diglot.core.items import Reasoning, Text, ToolCall, ToolResult, said
from diglot.core.ports import Engine
from diglot.core.request import (
    Conversation,
    Embedding,
    Generation,
    JsonSchema,
    LoadOptions,
    Overflow,
    Residence,
    Sampling,
    ToolChoice,
    ToolMode,
)
from diglot.engines.remote.loader import RemoteLoader
from diglot.engines.remote.models import RemoteModels
from diglot.engines.scripted.loader import ScriptedLoader
from tests.engines.asking import PERSON, WEATHER, CountingIds, asked, events_of, raw, result_of
from tests.engines.conftest import nothing
from tests.engines.loopback import Loopback, Route, Said, loopback

VLLM: dict[str, Any] = {
    "id": "Qwen/Qwen3-8B",
    "object": "model",
    "created": 1760000000,
    "owned_by": "vllm",
    "max_model_len": 2048,
}
PLAIN: dict[str, Any] = {"id": "gpt-9", "object": "model", "created": 1750000000, "owned_by": "openai"}


def chunk(
    index: int = 0, *, finish: str | None = None, usage: dict[str, int] | None = None, **delta: Any
) -> dict[str, Any]:
    """One event of a chat completion."""
    choices = [] if usage and not delta and not finish else [{"index": index, "delta": delta, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "choices": choices, "usage": usage}


ANSWER = [
    chunk(role="assistant", content="", usage={"prompt_tokens": 21, "completion_tokens": 0}),
    chunk(reasoning="Let me"),
    chunk(content="Good "),
    chunk(content="day"),
    chunk(finish="stop"),
    chunk(usage={"prompt_tokens": 21, "completion_tokens": 4}),
]


@asynccontextmanager
async def served(entry: dict[str, Any], **routes: Route) -> AsyncIterator[tuple[Engine, Loopback]]:
    """A remote engine, and the server behind it. `chat`, `plain`, `embed`, `tokens` are its routes."""
    paths = {
        "chat": "/v1/chat/completions",
        "plain": "/v1/completions",
        "embed": "/v1/embeddings",
        "tokens": "/tokenize",
    }
    table: dict[str, Route] = {paths[name]: route for name, route in routes.items()}
    async with loopback({"/v1/models": lambda _: Said({"object": "list", "data": [entry]}), **table}) as server:
        models = RemoteModels([f"{server.address}/v1"], key="ours")
        loader = RemoteLoader(models, otherwise=ScriptedLoader(), ids=CountingIds())
        found = await asyncio.to_thread(models.list)
        engine = await loader.load(found[0], LoadOptions(), nothing)
        yield engine, server
        await engine.close()


def answering(*_: Any) -> Said:
    return Said(stream=ANSWER)


def refusing(status: int, body: Any) -> Route:
    return lambda _: Said(body, status=status)


async def fault_of(engine: Engine, request: Generation) -> Fault:
    """The fault that an answer ends in, before any event."""
    with pytest.raises(Fault) as caught:
        await anext(engine.generate(request))
    return caught.value


async def test_an_answer_with_reasoning_is_read() -> None:
    async with served(VLLM, chat=answering) as (engine, server):
        events = await events_of(engine.generate(asked("Hello")))
    assert [event for event in events if isinstance(event, Started)] == [Started(21, model="Qwen/Qwen3-8B:latest")]
    assert [event for event in events if isinstance(event, ReasoningDelta | TextDelta)] == [
        ReasoningDelta("Let me"),
        TextDelta("Good "),
        TextDelta("day"),
    ]
    assert server.keys == {"bearer ours"}


async def test_the_window_is_the_one_that_the_server_tells() -> None:
    async with served(VLLM) as (engine, _):
        assert engine.window == 2048
    async with served(PLAIN) as (engine, _):
        assert engine.window == 32_768


async def test_a_request_is_written_as_the_protocol_has_it() -> None:
    items = (
        said("system", "Be brief."),
        said("user", "Weather?"),
        Reasoning("I should look."),
        ToolCall("c1", "get_weather", '{"city":"Brno"}'),
        ToolResult("c1", (Text("rain"),)),
        said("user", "And?"),
    )
    request = Generation(
        residence=Residence(),
        prompt=Conversation(items),
        tools=(WEATHER,),
        think="low",
        sampling=Sampling(temperature=0.5, top_k=3, repeat_penalty=1.5, seed=2**32, stop=("x",), logit_bias={7: -1.0}),
    )
    async with served(VLLM, chat=answering) as (engine, server):
        await events_of(engine.generate(request))
        body = server.last("/v1/chat/completions")
    assert body["model"] == "Qwen/Qwen3-8B"
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool", "user"]
    assert body["messages"][2] == {
        "role": "assistant",
        "content": "",
        "reasoning_content": "I should look.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Brno"}'}}
        ],
    }
    assert body["messages"][3]["tool_call_id"] == "c1"
    assert body["tools"][0]["function"]["name"] == "get_weather"
    assert (body["temperature"], body["top_k"], body["repetition_penalty"], body["seed"]) == (0.5, 3, 1.5, 1)
    assert (body["stop"], body["logit_bias"]) == (["x"], {"7": -1.0})
    assert body["chat_template_kwargs"] == {"enable_thinking": True, "reasoning_effort": "low"}
    assert "return_progress" not in body


@pytest.mark.parametrize(
    ("entry", "field", "value"),
    [(VLLM, "typical_p", 0.5), (VLLM, "repeat_last_n", 9), (PLAIN, "top_k", 3), (PLAIN, "min_p", 0.1)],
)
async def test_a_setting_that_the_server_does_not_take_is_refused_by_name(
    entry: dict[str, Any], field: str, value: Any
) -> None:
    async with served(entry, chat=answering) as (engine, server):
        fault = await fault_of(engine, asked("Hi", sampling=Sampling(**{field: value})))
        assert isinstance(fault, UnsupportedField)
        assert fault.field == field
        assert all(path != "/v1/chat/completions" for path, _ in server.asked)


async def test_a_plain_server_gets_effort_in_its_own_field() -> None:
    async with served(PLAIN, chat=answering) as (engine, server):
        await events_of(engine.generate(asked("Hi", think=False)))
        assert server.last("/v1/chat/completions")["reasoning_effort"] == "none"
        fault = await fault_of(engine, asked("Hi", template_arguments={"style": "old"}))
        assert isinstance(fault, UnsupportedField)


async def test_a_forced_call_is_a_schema_and_no_tool_choice() -> None:
    stream = [chunk(content='{"city"'), chunk(content=':"Brno"}'), chunk(finish="stop")]
    async with served(VLLM, chat=lambda _: Said(stream=stream)) as (engine, server):
        request = asked("Weather?", tools=(WEATHER,), tool_choice=ToolChoice(ToolMode.REQUIRED))
        result = await result_of(engine.generate(request))
        body = server.last("/v1/chat/completions")
    assert body["tool_choice"] == "none"
    assert body["response_format"]["json_schema"]["schema"]["properties"] == {
        "city": {"type": "string", "maxLength": 24}
    }
    assert [call.arguments for call in result.choices[0].calls] == ['{"city":"Brno"}']


def called(index: int, name: str | None, arguments: str, call_id: str | None = None) -> dict[str, Any]:
    return chunk(tool_calls=[{"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}])


async def test_calls_that_the_server_took_apart_come_whole() -> None:
    stream = [
        chunk(content="Looking."),
        called(0, "get_weather", "", "call_a"),
        called(0, None, '{"city":'),
        called(0, None, '"Brno"}'),
        called(1, "get_weather", '{"city":"Oslo"}', "call_b"),
        chunk(finish="tool_calls"),
    ]
    async with served(VLLM, chat=lambda _: Said(stream=stream)) as (engine, _):
        result = await result_of(engine.generate(asked("Weather?", tools=(WEATHER,))))
        single = await result_of(engine.generate(asked("Weather?", tools=(WEATHER,), parallel_calls=False)))
    calls = result.choices[0].calls
    assert [(call.call_id, call.arguments) for call in calls] == [
        ("call_a", '{"city":"Brno"}'),
        ("call_b", '{"city":"Oslo"}'),
    ]
    assert result.choices[0].text == "Looking."
    assert result.choices[0].reason == "tool_calls"
    assert len(single.choices[0].calls) == 1


async def test_half_a_call_is_no_call() -> None:
    stream = [called(0, "get_weather", '{"city":"Br', "call_a"), chunk(finish="length")]
    async with served(VLLM, chat=lambda _: Said(stream=stream)) as (engine, _):
        result = await result_of(engine.generate(asked("Weather?", tools=(WEATHER,))))
    assert result.choices[0].calls == ()
    assert result.choices[0].reason == "length"


async def test_a_call_written_as_text_is_taken_for_declared_names_only() -> None:
    written = 'Sure.\n<tool_call>{"name": "get_weather", "arguments": {"city": "Brno"}}</tool_call>'
    stream = [*(chunk(content=letter) for letter in written), chunk(finish="stop")]
    async with served(VLLM, chat=lambda _: Said(stream=stream)) as (engine, _):
        taken = (await result_of(engine.generate(asked("Weather?", tools=(WEATHER,))))).choices[0]
        left = (await result_of(engine.generate(asked("Weather?")))).choices[0]
    assert [call.name for call in taken.calls] == ["get_weather"]
    assert taken.text == "Sure.\n"
    assert left.calls == ()
    assert left.text == written


async def test_reasoning_in_the_text_is_split_off() -> None:
    stream = [*(chunk(content=letter) for letter in "<think>hm</think>\n\nYes."), chunk(finish="stop")]
    async with served(VLLM, chat=lambda _: Said(stream=stream)) as (engine, _):
        choice = (await result_of(engine.generate(asked("Hi")))).choices[0]
    assert (choice.reasoning, choice.text) == ("hm", "Yes.")


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "prompt contains at least 2049 input tokens", "type": "BadRequestError", "param": "input_tokens", "code": 400}},
        {"error": {"message": "too much", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}},
        {"object": "error", "message": "This model's maximum context length is 2048 tokens. However, you requested 4000 tokens", "type": "BadRequestError", "param": None, "code": 400},
        {"error": {"code": 400, "message": "request (5029 tokens) exceeds", "type": "exceed_context_size_error", "n_prompt_tokens": 5029, "n_ctx": 2048}},
    ],
)  # fmt: skip
async def test_a_prompt_over_the_window_is_known_in_each_servers_words(body: dict[str, Any]) -> None:
    async with served(VLLM, chat=refusing(400, body)) as (engine, _):
        fault = await fault_of(engine, asked("Hi"))
    assert isinstance(fault, ContextExceeded)
    assert fault.window == 2048


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"message": "secret words"}}, UpstreamFailed),
        (404, {"error": {"message": "secret words", "code": 404}}, ModelNotFound),
        (429, {"error": {"message": "secret words"}}, Busy),
        (500, b"<html>secret words</html>", UpstreamFailed),
        (503, {"error": {"message": "secret words"}}, Busy),
        (200, b"<html>secret words</html>", UpstreamFailed),
    ],
)
async def test_what_a_server_says_when_it_fails_goes_to_the_log_only(status: int, body: Any, kind: type[Fault]) -> None:
    async with served(VLLM, chat=refusing(status, body)) as (engine, _):
        fault = await fault_of(engine, asked("Hi"))
    assert isinstance(fault, kind)
    assert "secret" not in fault.message


async def test_a_schema_that_the_server_refuses_is_the_clients_to_mend() -> None:
    body = {"error": {"message": "Grammar error: bad schema", "type": "BadRequestError", "param": None, "code": 400}}
    async with served(VLLM, chat=refusing(400, body)) as (engine, _):
        fault = await fault_of(engine, asked("Hi", format=JsonSchema(PERSON)))
    assert isinstance(fault, InvalidField)
    assert fault.field == "format"


@pytest.mark.parametrize(
    "stream",
    [
        [*ANSWER[:3], {"error": {"message": "secret", "type": "InternalServerError", "code": 500}}],
        [*ANSWER[:3], {"choices": "nonsense"}],
    ],
)
async def test_a_failure_in_the_middle_is_raised_out_of_the_stream(stream: list[Any]) -> None:
    seen: list[Event] = []
    async with served(VLLM, chat=lambda _: Said(stream=stream)) as (engine, _):
        with pytest.raises(UpstreamFailed) as caught:
            seen.extend([event async for event in engine.generate(asked("Hi"))])
    assert "secret" not in caught.value.message


async def test_a_stream_that_breaks_off_is_a_failure() -> None:
    async with served(VLLM, chat=lambda _: Said(stream=ANSWER[:3], cut=True)) as (engine, _):
        with pytest.raises(UpstreamFailed, match="lost"):
            await events_of(engine.generate(asked("Hi")))
        assert engine.alive


async def test_counting_asks_the_tokeniser_or_reads_the_bill() -> None:
    async with served(VLLM, tokens=lambda _: Said({"count": 3, "tokens": [1, 2, 3]}), chat=answering) as (
        engine,
        server,
    ):
        assert await engine.count(asked("Hi")) == 3
        assert server.last("/tokenize")["messages"] == [{"role": "user", "content": "Hi"}]
        assert await engine.count(raw("Hi")) == 3
        assert server.last("/tokenize")["prompt"] == "Hi"
        assert await engine.count(raw((5, 6))) == 2
    async with served(PLAIN, chat=answering) as (engine, server):
        assert await engine.count(asked("Hi", format=JsonSchema(PERSON))) == 21
        assert server.last("/v1/chat/completions")["max_tokens"] == 1


async def test_log_probabilities_of_plain_completions_are_read() -> None:
    told = {"tokens": ["Pa", "ris"], "token_logprobs": [-0.5, -0.1], "top_logprobs": [{"Pa": -0.5, "Lo": -2.0}, None]}
    stream = [{"choices": [{"index": 0, "text": "Paris", "logprobs": told, "finish_reason": "stop"}]}]
    async with served(VLLM, plain=lambda _: Said(stream=stream)) as (engine, server):
        logprobs = (await result_of(engine.generate(raw("The capital is", logprobs=2)))).choices[0].logprobs
        assert server.last("/v1/completions")["logprobs"] == 2
    assert [(token.token, token.logprob) for token in logprobs] == [("Pa", -0.5), ("ris", -0.1)]
    assert [other.token for other in logprobs[0].top] == ["Pa", "Lo"]


async def test_a_model_that_embeds_is_found_out_and_used() -> None:
    def embed(body: dict[str, Any]) -> Said:
        inputs = body["input"] if isinstance(body["input"], list) else [body["input"]]
        rows = [{"index": index, "embedding": [3.0, 4.0]} for index, _ in enumerate(inputs)]
        return Said({"data": rows[::-1], "usage": {"prompt_tokens": len(inputs)}})

    async with served(VLLM, embed=embed) as (engine, _):
        assert engine.capabilities.embedding
        assert not engine.capabilities.completion
        request = Embedding(residence=Residence(), inputs=("a", "b"))
        made = await engine.embed(request)
    assert made.vectors == ((0.6, 0.8), (0.6, 0.8))
    assert made.input_tokens == 2


async def test_a_text_too_long_to_embed_is_cut_between_what_stands_around_it() -> None:
    def tokens(body: dict[str, Any]) -> Said:
        inner = [ord(letter) for letter in body["prompt"]]
        return Said({"tokens": [1, *inner, 2] if body["add_special_tokens"] else inner})

    def embed(body: dict[str, Any]) -> Said:
        if any(isinstance(text, str) and len(text) > 2046 for text in body["input"]):
            return Said({"error": {"message": "no", "code": 400}}, status=400)
        return Said({"data": [{"index": index, "embedding": [1.0]} for index, _ in enumerate(body["input"])]})

    async with served(VLLM, embed=embed, tokens=tokens) as (engine, server):
        request = Embedding(residence=Residence(), inputs=("short", "x" * 3000))
        with pytest.raises(ContextExceeded) as caught:
            await engine.embed(request)
        assert (caught.value.tokens, caught.value.window) == (3002, 2048)
        await engine.embed(Embedding(residence=Residence(), inputs=request.inputs, overflow=Overflow.TRUNCATE))
        short, cut = server.last("/v1/embeddings")["input"]
    assert short == "short"
    assert (len(cut), cut[0], cut[-1]) == (2048, 1, 2)
