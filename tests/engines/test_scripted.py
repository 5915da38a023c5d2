"""The scripted engine does what its script says, and nothing else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.errors import (
    Busy,
    Cancelled,
    EngineCrashed,
    EngineFailed,
    Fault,
    LoadFailed,
    ModelNotFound,
    UpstreamFailed,
)
from diglot.core.events import Progress, ReasoningDelta, Started, TextDelta
from diglot.core.model import ModelRef
from diglot.core.request import LoadOptions
from diglot.engines.scripted.engine import ScriptedEngine
from diglot.engines.scripted.loader import ScriptedLoader
from diglot.engines.scripted.models import ScriptedModels
from diglot.engines.scripted.sample import sample
from diglot.engines.scripted.script import Call, InvalidScript, Reply, Script, load_script
from diglot.engines.scripted.tokens import tokens_of
from tests.engines.asking import PERSON, WEATHER, asked, events_of, result_of
from tests.engines.conftest import nothing


async def play(*replies: Reply, **more: int) -> tuple[ScriptedEngine, ScriptedLoader]:
    """An engine that plays these replies, and its loader."""
    script = Script(replies=replies, **more)  # type: ignore[arg-type]
    loader = ScriptedLoader(script)
    return await loader.load(ScriptedModels(script).list()[0], LoadOptions(), nothing), loader


@given(st.text(max_size=200))
def test_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(tokens_of(text)) == text


async def test_replies_come_in_order_and_again() -> None:
    engine, _ = await play(Reply(say="one"), Reply(say="two"), Reply(when="three", say="III"))
    said = [(await result_of(engine.generate(asked(text)))).choices[0].text for text in ("a", "three?", "b", "c")]
    assert said == ["one", "III", "two", "one"]


async def test_pieces_of_a_list_come_as_they_stand() -> None:
    engine, _ = await play(Reply(say=("He", "llo the", "re"), think=("Hm.",)))
    events = await events_of(engine.generate(asked("Hi")))
    assert [event.text for event in events if isinstance(event, TextDelta | ReasoningDelta)] == [
        "Hm.",
        "He",
        "llo the",
        "re",
    ]


async def test_an_echo_says_what_the_user_said() -> None:
    engine, _ = await play(Reply(echo=True))
    assert (await result_of(engine.generate(asked("So it is: \N{ROCKET}")))).choices[0].text == "So it is: \N{ROCKET}"


async def test_calls_are_made_where_they_are_declared() -> None:
    engine, _ = await play(Reply(say="Look:", call=(Call("get_weather", {"city": "Brno"}), Call("get_weather", "{}"))))
    with_tools = (await result_of(engine.generate(asked("Hi", tools=(WEATHER,), most=None)))).choices[0]
    single = (await result_of(engine.generate(asked("Hi", tools=(WEATHER,), most=None, parallel_calls=False)))).choices[
        0
    ]
    without = (await result_of(engine.generate(asked("Hi")))).choices[0]
    assert [call.arguments for call in with_tools.calls] == ['{"city":"Brno"}', "{}"]
    assert with_tools.text == "Look:"
    assert len(single.calls) == 1
    assert without.calls == ()


async def test_two_runs_give_the_same_events() -> None:
    replies = (Reply(think="Hm", say="One two", call=(Call("get_weather"),)), Reply(say="three"))
    runs = []
    for _ in range(2):
        engine, _ = await play(*replies)
        runs.append([await events_of(engine.generate(asked(text, tools=(WEATHER,)))) for text in ("a", "b", "c")])
    assert runs[0] == runs[1]


async def test_progress_comes_before_the_start() -> None:
    engine, _ = await play(Reply(say="x", prefill=3))
    events = await events_of(engine.generate(asked("Hi you there")))
    assert [type(event) for event in events[:4]] == [Progress, Progress, Progress, Started]
    assert isinstance(events[2], Progress)
    assert events[2].done == events[2].total


@pytest.mark.parametrize(
    ("kind", "fault"),
    [("crash", EngineCrashed), ("failed", EngineFailed), ("busy", Busy), ("upstream", UpstreamFailed)],
)
async def test_a_fault_strikes_where_the_script_says(kind: str, fault: type[Fault]) -> None:
    early, late = (
        json.dumps({"fault": kind, "after": -1}),
        json.dumps({"fault": kind, "after": 2, "say": "one two three"}),
    )
    for text, expected in ((early, 0), (late, 3)):
        engine, _ = await play(msgspec.json.decode(text, type=Reply))
        stream = engine.generate(asked("Hi"))
        assert all([await anext(stream) for _ in range(expected)])
        with pytest.raises(fault):
            await anext(stream)
        assert engine.busy == 0
        assert engine.alive == (kind != "crash")


async def test_a_gate_holds_until_it_is_opened() -> None:
    engine, loader = await play(Reply(say="one two", gate="door", after=1))
    answer = asyncio.create_task(result_of(engine.generate(asked("Hi"))))
    await loader.gate("door").reached.wait()
    assert engine.busy == 1
    assert not answer.done()
    loader.gate("door").open.set()
    assert (await answer).choices[0].text == "one two"
    assert engine.busy == 0


async def test_closing_the_engine_ends_what_hangs() -> None:
    engine, _ = await play(Reply(say="one", hang=True))
    stream = engine.generate(asked("Hi"))
    assert isinstance(await anext(stream), Started)
    assert isinstance(await anext(stream), TextDelta)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    await engine.close()
    with pytest.raises(Cancelled):
        await waiting
    assert engine.busy == 0


async def test_leaving_a_hanging_answer_frees_its_slot() -> None:
    engine, _ = await play(Reply(say="one", hang=True))
    stream = engine.generate(asked("Hi"))
    await anext(stream)
    assert engine.busy == 1
    await stream.aclose()
    assert engine.busy == 0


async def test_a_load_takes_its_steps_or_fails() -> None:
    told: list[int] = []
    script = Script(steps=4)
    loader, model = ScriptedLoader(script), ScriptedModels(script).list()[0]
    engine = await loader.load(model, LoadOptions(), lambda done, _: told.append(done))
    assert told == [250_000, 500_000, 750_000, 1_000_000]
    assert loader.loaded == [engine]
    with pytest.raises(LoadFailed):
        await ScriptedLoader(Script(load_fault=True)).load(model, LoadOptions(), nothing)


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('{"replies": [{"say": "Hi", "call": [{"name": "f", "arguments": {"a": 1}}]}], "window": 99}')
    assert load_script(path) == Script(replies=(Reply(say="Hi", call=(Call("f", {"a": 1}),)),), window=99)
    path.write_text('{"replies": [{"says": "Hi"}]}')
    with pytest.raises(InvalidScript, match="says"):
        load_script(path)


def test_the_models_of_a_script_have_names() -> None:
    models = ScriptedModels(Script())
    assert [model.name for model in models.list()] == [
        "scripted:latest",
        "scripted-embed:latest",
        "scripted-rerank:latest",
    ]
    assert models.card(ModelRef.parse("SCRIPTED")).model.capabilities.completion
    with pytest.raises(ModelNotFound):
        models.resolve(ModelRef.parse("other"))


@pytest.mark.parametrize(
    "schema",
    [
        PERSON,
        {"type": "array", "items": {"type": "string", "minLength": 3}, "minItems": 2},
        {"$defs": {"n": {"type": "integer", "minimum": 4}}, "type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]},
        {"anyOf": [{"const": 3}, {"type": "null"}]},
        {"type": ["null", "string"]},
    ],
)  # fmt: skip
def test_samples_are_valid(schema: dict[str, object]) -> None:
    jsonschema.validate(sample(schema), schema)


def test_a_sample_of_a_schema_that_grows_without_end_ends() -> None:
    names = [f"p{number}" for number in range(30)]
    node = {"type": "object", "properties": {name: {"$ref": "#/$defs/n"} for name in names}, "required": names}
    assert len(json.dumps(sample({"$defs": {"n": node}, "$ref": "#/$defs/n"}))) < 200_000
