"""What every engine does, whatever is behind it. One file for all of them.

What only one kind can show (a crash, a lost connection) is in that kind's own tests.
"""

from __future__ import annotations

import asyncio
import json
import math

import jsonschema
import pytest

from diglot.core.assemble import assemble
from diglot.core.errors import ContextExceeded, InvalidField, ModelIncapable
from diglot.core.events import Event, Finished, Progress, Started, TextDelta, ToolCallDone
from diglot.core.ports import Engine
from diglot.core.request import (
    AnyJson,
    Embedding,
    JsonSchema,
    Overflow,
    Residence,
    Sampling,
    ToolChoice,
    ToolMode,
    ToolSpec,
)
from tests.engines.asking import PERSON, WEATHER, asked, events_of, raw, result_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]
LONG = "word " * 3000


def embedding(*inputs: str | tuple[int, ...], **more: object) -> Embedding:
    return Embedding(residence=Residence(), inputs=inputs, **more)  # type: ignore[arg-type]


async def test_an_answer_begins_with_started_and_ends_with_one_finished(engine: Engine) -> None:
    events = await events_of(engine.generate(asked("Say hello.")))
    kinds = [type(event) for event in events if not isinstance(event, Progress)]
    assert kinds[0] is Started
    assert kinds[-1] is Finished
    assert kinds.count(Started) == kinds.count(Finished) == 1
    assert set(kinds[1:-1]) == {TextDelta}


async def test_of_a_long_prompt_is_told_how_much_is_read(engine: Engine) -> None:
    first, *_ = await events_of(engine.generate(asked("word " * 250, most=1)))
    assert isinstance(first, Progress)
    assert first.done < first.total


async def test_usage_adds_up(engine: Engine) -> None:
    request = asked("Say hello to the world.")
    result = await result_of(engine.generate(request))
    assert result.usage.input == await engine.count(request)
    assert 0 < result.usage.output <= 16
    assert result.usage.total == result.usage.input + result.usage.output


async def test_started_tells_the_size_of_the_prompt(engine: Engine) -> None:
    request = asked("Say hello to everybody.")
    started = [event for event in await events_of(engine.generate(request)) if isinstance(event, Started)]
    assert started[0].input_tokens == await engine.count(request)


async def test_max_tokens_ends_an_answer_for_its_length(engine: Engine) -> None:
    result = await result_of(engine.generate(asked("Tell me a long story.", most=3)))
    assert result.choices[0].reason == "length"
    assert result.usage.output == 3


async def test_no_tokens_may_be_asked_for(engine: Engine) -> None:
    result = await result_of(engine.generate(asked("Tell me a long story.", most=0)))
    assert [choice.text for choice in result.choices] == [""]
    assert result.choices[0].reason == "length"
    assert result.usage.output == 0
    assert result.usage.input > 0


async def test_a_stop_text_ends_an_answer_and_is_not_in_it(engine: Engine) -> None:
    whole = await result_of(engine.generate(asked("Count from 1 to 10.", most=24)))
    text = whole.choices[0].text
    stop = text[len(text) // 2 : len(text) // 2 + 3]
    sampling = Sampling(max_tokens=24, seed=7, temperature=0.0, stop=("never said", stop))
    cut = await result_of(engine.generate(asked("Count from 1 to 10.", sampling=sampling)))
    assert cut.choices[0].text == text[: text.index(stop)]
    assert cut.choices[0].reason == "stop"


async def test_a_named_tool_is_called_once_and_whole(engine: Engine) -> None:
    other = ToolSpec(name="get_time", parameters={"type": "object", "properties": {}})
    choice = ToolChoice(ToolMode.REQUIRED, names=("get_weather",))
    request = asked("What is the weather in Brno?", most=64, tools=(other, WEATHER), tool_choice=choice)
    events = await events_of(engine.generate(request))
    calls = [event.call for event in events if isinstance(event, ToolCallDone)]
    assert [call.name for call in calls] == ["get_weather"]
    jsonschema.validate(json.loads(calls[0].arguments), WEATHER.parameters)
    assert calls[0].call_id.startswith("call_")
    result = assemble(events)
    assert result.choices[0].reason == "tool_calls"
    assert result.choices[0].text == ""


async def test_a_required_call_is_one_of_the_declared_tools(engine: Engine) -> None:
    other = ToolSpec(name="get_time", parameters={"type": "object", "properties": {"zone": {"enum": ["utc", "cet"]}}})
    request = asked("Do something.", most=128, tools=(WEATHER, other), tool_choice=ToolChoice(ToolMode.REQUIRED))
    result = await result_of(engine.generate(request))
    assert [call.name for call in result.choices[0].calls] in (["get_weather"], ["get_time"])


async def test_a_forced_call_that_is_cut_off_is_not_sent(engine: Engine) -> None:
    request = asked("Weather in Brno?", most=2, tools=(WEATHER,), tool_choice=ToolChoice(ToolMode.REQUIRED))
    result = await result_of(engine.generate(request))
    assert result.choices[0].calls == ()
    assert result.choices[0].text == ""
    assert result.choices[0].reason == "length"


async def test_a_required_call_of_no_declared_tool_is_refused(engine: Engine) -> None:
    choice = ToolChoice(ToolMode.REQUIRED, names=("unknown",))
    with pytest.raises(InvalidField, match="tool_choice"):
        await events_of(engine.generate(asked("Hi", tools=(WEATHER,), tool_choice=choice)))


async def test_tools_may_be_declared_and_not_used(engine: Engine) -> None:
    result = await result_of(engine.generate(asked("Say hello.", tools=(WEATHER,), most=8)))
    assert result.choices[0].text or result.choices[0].calls


async def test_an_answer_keeps_to_a_schema(engine: Engine) -> None:
    result = await result_of(engine.generate(asked("Invent a pet.", most=200, format=JsonSchema(PERSON))))
    jsonschema.validate(json.loads(result.choices[0].text), PERSON)


async def test_a_schema_holds_next_to_declared_tools(engine: Engine) -> None:
    request = asked("Invent a pet.", most=200, format=JsonSchema(PERSON), tools=(WEATHER,))
    result = await result_of(engine.generate(request))
    jsonschema.validate(json.loads(result.choices[0].text), PERSON)
    assert result.choices[0].calls == ()


async def test_any_json_is_an_object(engine: Engine) -> None:
    result = await result_of(engine.generate(asked("Give me a JSON object.", most=200, format=AnyJson())))
    text = result.choices[0].text
    assert text.lstrip().startswith("{")
    if result.choices[0].reason == "stop":
        assert isinstance(json.loads(text), dict)


async def test_a_prompt_over_the_window_is_refused_before_the_first_event(engine: Engine) -> None:
    with pytest.raises(ContextExceeded) as caught:
        await anext(engine.generate(asked(LONG)))
    assert caught.value.window == engine.window
    assert caught.value.tokens > engine.window


async def test_characters_of_several_bytes_come_whole(engine: Engine) -> None:
    events = await events_of(engine.generate(asked("Repeat: party \N{PARTY POPPER}\N{ROCKET}日本語", most=40)))
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert pieces
    assert "\N{REPLACEMENT CHARACTER}" not in "".join(pieces)


async def test_the_same_seed_gives_the_same_answer(engine: Engine) -> None:
    request = asked("Tell me a story.", temperature=1.0, seed=11, most=12)
    one, two = [await result_of(engine.generate(request)) for _ in range(2)]
    assert one.choices[0].text == two.choices[0].text


async def test_log_probabilities_cover_the_text(engine: Engine) -> None:
    result = await result_of(engine.generate(asked("Say hello.", logprobs=2, most=6)))
    told = result.choices[0].logprobs
    assert b"".join(token.bytes for token in told).decode() == result.choices[0].text
    assert len(told) == result.usage.output
    assert all(len(token.top) == 2 and token.logprob <= 0 for token in told)


async def test_log_probabilities_come_without_alternatives(engine: Engine) -> None:
    told = (await result_of(engine.generate(asked("Say hello.", logprobs=0, most=4)))).choices[0].logprobs
    assert told
    assert all(token.top == () for token in told)


async def test_a_second_request_finds_the_first_one_in_the_cache(engine: Engine) -> None:
    prompt = "Consider the following words: " + "alpha beta gamma delta " * 40
    await events_of(engine.generate(asked(prompt, most=2)))
    usage = (await result_of(engine.generate(asked(prompt, most=2)))).usage
    assert usage.input * 0.9 < usage.cached < usage.input


async def test_a_raw_prompt_is_continued(engine: Engine) -> None:
    request = raw("The capital of France is")
    result = await result_of(engine.generate(request))
    assert result.choices[0].text
    assert result.usage.input == await engine.count(request)


async def test_a_raw_prompt_may_be_tokens(engine: Engine) -> None:
    result = await result_of(engine.generate(raw((504, 3575, 282, 4649, 314), most=4)))
    assert result.choices[0].text
    assert result.usage.input >= 5


async def test_leaving_in_the_middle_frees_the_slot(engine: Engine) -> None:
    for _ in range(engine.slots + 1):
        stream = engine.generate(asked("Go on for ever.", most=400))
        async for event in stream:
            if isinstance(event, TextDelta):
                break
        await stream.aclose()
    async with asyncio.timeout(60):
        answers = await asyncio.gather(*(result_of(engine.generate(asked("Say hello.", most=2))) for _ in range(2)))
    assert all(answer.usage.output for answer in answers)


async def test_leaving_before_the_first_text_frees_the_slot(engine: Engine) -> None:
    for number in range(engine.slots + 1):
        stream = engine.generate(asked(f"{number} " + "some other words " * 120, most=4))
        assert isinstance(await anext(stream), Progress)
        await stream.aclose()
    async with asyncio.timeout(60):
        assert (await result_of(engine.generate(asked("Say hello.", most=2)))).usage.output


async def test_answers_run_side_by_side(engine: Engine) -> None:
    requests = [asked(f"Count to {number}.", most=6) for number in range(engine.slots)]
    alone = [await result_of(engine.generate(request)) for request in requests]
    together = await asyncio.gather(*(result_of(engine.generate(request)) for request in requests))
    assert [len(result.choices[0].text) > 0 for result in together] == [True] * len(alone)


async def test_a_chat_model_does_not_embed(engine: Engine) -> None:
    if not engine.capabilities.embedding:
        with pytest.raises(ModelIncapable, match="embedding"):
            await engine.embed(embedding("hello"))


async def test_vectors_have_length_one_and_the_order_of_the_inputs(embedder: Engine) -> None:
    both = await embedder.embed(embedding("a cat", "quantum theory", ""))
    alone = await embedder.embed(embedding("quantum theory"))
    assert len(both.vectors) == 3
    assert all(math.isclose(math.fsum(number * number for number in vector), 1.0) for vector in both.vectors)
    assert math.isclose(sum(map(math.prod, zip(both.vectors[1], alone.vectors[0], strict=True))), 1.0, rel_tol=1e-4)
    assert both.input_tokens > alone.input_tokens > 0


async def test_vectors_are_cut_and_scaled_again(embedder: Engine) -> None:
    whole = (await embedder.embed(embedding("a cat"))).vectors[0]
    cut = (await embedder.embed(embedding("a cat", dimensions=8))).vectors[0]
    assert len(cut) == 8
    assert math.isclose(math.hypot(*cut), 1.0)
    assert math.isclose(cut[0] / cut[1], whole[0] / whole[1], rel_tol=1e-6)
    with pytest.raises(InvalidField, match="dimensions"):
        await embedder.embed(embedding("a cat", dimensions=len(whole) + 1))


async def test_a_text_over_the_window_is_refused_or_cut_as_asked(embedder: Engine) -> None:
    with pytest.raises(ContextExceeded) as caught:
        await embedder.embed(embedding("short", LONG))
    assert caught.value.tokens > caught.value.window == embedder.window
    cut = await embedder.embed(embedding("short", LONG, overflow=Overflow.TRUNCATE))
    assert len(cut.vectors) == 2


async def test_an_embedding_model_does_not_chat(embedder: Engine) -> None:
    with pytest.raises(ModelIncapable, match="completion"):
        await events_of(embedder.generate(asked("Hi")))


async def test_nothing_follows_finished(engine: Engine) -> None:
    stream = engine.generate(asked("Say hello.", most=2))
    last: Event | None = None
    async for event in stream:
        assert not isinstance(last, Finished)
        last = event
    assert isinstance(last, Finished)
