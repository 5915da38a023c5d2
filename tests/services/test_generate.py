"""Generate: from a request to events, with the slot free at whatever event it ends."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from diglot.core.assemble import gather
from diglot.core.errors import Busy, ContextExceeded, EngineCrashed, EngineFailed, LoadFailed, ModelIncapable
from diglot.core.events import Event, Finished, Progress, Started, TextDelta, Timings, Usage
from diglot.core.items import Image, Message, said
from diglot.core.model import Capabilities, Defaults
from diglot.core.recipe import Example
from diglot.core.request import Conversation, Generation, LoadOptions, Overflow, RawPrompt, Sampling
from diglot.services.visit import Visit
from tests.services.world import World, generation, model, settle, until


def is_at_rest(world: World) -> bool:
    """Whether nobody holds a slot or an engine."""
    residents = world.residency._residents.values()  # noqa: SLF001  nothing else shows a leak
    busy = any(engine.busy for engine in world.loader.engines)
    return not busy and not world.residency._turnstiles and all(not each.users for each in residents)  # noqa: SLF001


async def seen_by_engine(world: World, request: Generation) -> Any:
    """Return the request as it reached the engine."""
    await gather(world.generate(request))
    return world.engine.seen[-1]


async def test_the_events_of_the_engine_pass_through_with_the_models_name_and_the_times() -> None:
    world = World()
    world.loader.gate.clear()
    events: list[Event] = []

    async def collect() -> None:
        events.extend([event async for event in world.generate(generation(None))])

    task = asyncio.create_task(collect())
    await until(lambda: world.loader.begun)
    await world.clock.advance(2)
    world.loader.gate.set()
    await task
    assert events == [
        Progress(done=1, total=2),
        Started(input_tokens=2, model="chat:latest"),
        TextDelta("a"),
        TextDelta("b"),
        Finished("stop", Usage(input=2, output=2), Timings(total=2_000_000_000, load=2_000_000_000)),
    ]
    assert is_at_rest(world)


@given(stop=st.integers(0, 12), choices=st.integers(1, 3), how=st.sampled_from(["close", "cancel", "crash", "fault"]))
def test_ended_in_any_way_at_any_event_it_leaves_no_slot_busy(stop: int, choices: int, how: str) -> None:
    async def play() -> None:
        world = World(queue=0)
        await gather(world.generate(generation()))
        if how == "fault":
            world.engine.events = [*world.engine.events[: stop % 5], EngineFailed()]
        events = world.generate(replace(generation(), choices=choices))

        async def watch() -> None:
            number = 0
            async for _ in events:
                if number == stop and how == "close":
                    await events.aclose()
                    return
                if number == stop and how == "crash":
                    world.engine.alive = False
                if number == stop and how == "cancel":
                    await asyncio.Event().wait()
                number += 1

        task = asyncio.create_task(watch())
        await settle()
        while how == "cancel" and not task.done():  # Cancel at the event, however long the thread took.
            task.cancel()
            await settle()
        await asyncio.wait({task})
        await events.aclose()
        fault = None if task.cancelled() else task.exception()
        assert fault is None or isinstance(fault, EngineCrashed | EngineFailed)
        assert is_at_rest(world)
        await gather(world.generate(generation()) if how != "fault" else _none())

    asyncio.run(play())


async def _none() -> Any:
    events: Sequence[Event] = ()
    for event in events:
        yield event


async def test_cancelled_while_it_waits_in_the_queue_it_leaves_its_place() -> None:
    world = World(queue=1)
    await gather(world.generate(generation()))
    world.engine.gate.clear()
    tasks = [asyncio.create_task(gather(world.generate(generation()))) for _ in range(3)]
    await until(lambda: world.engine.busy == 2)
    await _until_queued(world)
    with pytest.raises(Busy):
        await gather(world.generate(generation()))
    tasks[2].cancel()
    await asyncio.wait({tasks[2]})
    late = asyncio.create_task(gather(world.generate(generation())))
    await _until_queued(world)
    world.engine.gate.set()
    results = await asyncio.gather(*tasks[:2], late)
    assert [result.choices[0].text for result in results] == ["ab"] * 3
    assert is_at_rest(world)


async def _until_queued(world: World) -> None:
    (turnstile,) = world.residency._turnstiles.values()  # noqa: SLF001
    await until(lambda: turnstile.waiting)


async def test_a_load_that_fails_is_told_before_the_first_event() -> None:
    world = World()
    world.loader.fault = LoadFailed("chat", reason="no memory")
    with pytest.raises(LoadFailed):
        await anext(world.generate(generation()))
    assert is_at_rest(world)


async def test_the_prompt_of_several_choices_is_counted_once_and_so_is_what_of_it_was_in_the_cache() -> None:
    world = World()
    await gather(world.generate(generation()))
    world.engine.events = [Started(2), TextDelta("a"), Finished("stop", Usage(input=2, output=1, cached=1))]
    visit = Visit()
    await gather(world.generate(replace(generation(), choices=3), visit=visit))
    assert visit.usage == Usage(input=2, output=3, cached=1)


async def test_choices_come_one_after_the_other_and_start_once() -> None:
    world = World()
    events = [event async for event in world.generate(replace(generation(), choices=3))]
    assert sum(isinstance(event, Started) for event in events) == 1
    assert all(not isinstance(event, Progress) for event in events[1:])
    assert [event.choice for event in events if isinstance(event, Finished)] == [0, 1, 2]
    assert [event.choice for event in events if isinstance(event, TextDelta)] == [0, 0, 1, 1, 2, 2]
    assert all(isinstance(each, Generation) and each.choices == 1 for each in world.engine.seen)


async def test_each_choice_has_a_seed_of_its_own_only_where_one_was_given() -> None:
    world = World()
    seeded = replace(generation(), choices=3, sampling=Sampling(seed=7))
    await gather(world.generate(seeded))
    assert [_sampling(each).seed for each in world.engine.seen] == [7, 8, 9]
    await gather(world.generate(replace(generation(), choices=2)))
    assert [_sampling(each).seed for each in world.engine.seen[3:]] == [None, None]


def _sampling(request: Any) -> Sampling:
    assert isinstance(request, Generation)
    return request.sampling


async def test_what_the_maker_set_stands_in_where_the_request_says_nothing() -> None:
    defaults = Defaults(
        sampling=Sampling(temperature=0.1, top_k=3),
        load=LoadOptions(window=50),
        system="Be kind.",
        messages=(Example("user", "Hi"), Example("assistant", "Hello")),
    )
    world = World(model(defaults=defaults))
    request = Generation(
        residence=generation().residence, prompt=Conversation((said("user", "Well?"),)), sampling=Sampling(top_k=9)
    )
    seen = await seen_by_engine(world, request)
    assert seen.sampling == Sampling(temperature=0.1, top_k=9)
    assert world.engine.options.window == 50
    assert [item.text for item in seen.prompt.items] == ["Be kind.", "Hi", "Hello", "Well?"]


async def test_a_clients_own_system_text_replaces_the_makers_and_stands_before_his_examples() -> None:
    examples = (Example("user", "Hi"), Example("assistant", "Hello"))
    for messages in ((), examples):
        world = World(model(defaults=Defaults(system="Be kind.", messages=messages)))
        for role in ("system", "developer"):
            own, question = said(role, "Be terse."), said("user", "Well?")
            seen = await seen_by_engine(world, replace(generation(), prompt=Conversation((own, question))))
            between = [item.text for item in seen.prompt.items[1:-1]]
            assert between == [each.content for each in messages]
            assert (seen.prompt.items[0], seen.prompt.items[-1]) == (own, question)


async def test_what_the_model_cannot_do_is_refused_before_it_is_loaded() -> None:
    world = World()
    picture = Message("user", (Image(b"x", "image/png"),))
    asks = {
        "vision": replace(generation(), prompt=Conversation((picture,))),
        "insert": replace(generation(), prompt=RawPrompt("a", suffix="b")),
        "thinking": replace(generation(), think=True, must_think=True),
    }
    for ability, request in asks.items():
        with pytest.raises(ModelIncapable) as caught:
            await gather(world.generate(request))
        assert caught.value.ability == ability
    assert world.loader.begun == []


async def test_a_wish_to_think_is_dropped_where_the_model_cannot_and_kept_where_it_can() -> None:
    world = World(model("plain"), model("thinker", able=Capabilities(completion=True, thinking=True)))
    for think, expected in ((True, None), ("high", None), (False, False), ("none", "none"), (None, None)):
        request = replace(generation("plain"), think=think)
        assert (await seen_by_engine(world, request)).think == expected
    assert (await seen_by_engine(world, replace(generation("thinker"), think="low"))).think == "low"


def _words(request: Generation) -> int:
    assert isinstance(request.prompt, Conversation)
    return sum(len(item.text) for item in request.prompt.items if isinstance(item, Message))


async def test_truncation_leaves_out_as_few_of_the_oldest_as_it_takes() -> None:
    world = World()
    await gather(world.generate(generation()))
    world.engine.count_tokens = _words
    items = (said("system", "s" * 10), *(said("user", letter * 30) for letter in "abcd"))
    long = replace(generation(), prompt=Conversation(items), overflow=Overflow.TRUNCATE)
    seen = await seen_by_engine(world, long)
    assert seen.prompt.items == (items[0], *items[3:])
    short = replace(long, prompt=Conversation(items[:2]))
    assert (await seen_by_engine(world, short)).prompt.items == items[:2]


async def test_truncation_that_can_leave_nothing_out_says_how_long_the_prompt_is() -> None:
    world = World()
    await gather(world.generate(generation()))
    world.engine.count_tokens = _words
    long = replace(generation(), prompt=Conversation((said("user", "x" * 200),)), overflow=Overflow.TRUNCATE)
    with pytest.raises(ContextExceeded) as caught:
        await gather(world.generate(long))
    assert (caught.value.tokens, caught.value.window) == (200, 100)
    assert is_at_rest(world)
