"""Responses: answers that can be taken up again."""

import asyncio

import pytest
from msgspec.structs import replace

from diglot.core.assemble import gather
from diglot.core.errors import Busy, EngineCrashed, NoSpace, UnknownResponse
from diglot.core.events import Finished, Started, TextDelta
from diglot.core.items import Item, said
from diglot.core.request import CancelResponse, Conversation, CountTokens, FetchResponse, ForgetResponse, Respond
from diglot.core.result import Result, Stored
from diglot.state.responses import Scratch
from tests.services.memory import Memory
from tests.services.world import World, generation, until


def asking(text: str, **more: object) -> Respond:
    prompt = Conversation((said("user", text),))
    return replace(Respond(replace(generation(), prompt=prompt), keep=True, echo=b"echo"), **more)


async def answer(world: World, request: Respond, name: str, scratch: Scratch | None = None) -> Result:
    return await gather(world.desk.answer(request, id=name, scratch=scratch))


def seen(world: World) -> tuple[Item, ...]:
    prompt = world.engine.seen[-1].prompt  # type: ignore[union-attr]
    assert isinstance(prompt, Conversation)
    return prompt.items


async def test_a_response_is_stored_whole() -> None:
    world = World()
    result = await answer(world, asking("hi"), "one")
    stored = await world.desk.ask(FetchResponse("one"))
    assert isinstance(stored, Stored)
    assert (stored.status, stored.input, stored.result, stored.echo) == (
        "completed",
        (said("user", "hi"),),
        result,
        b"echo",
    )


async def test_a_response_is_stored_as_of_the_time_that_was_told_and_ends_by_the_clock_that_does_not_jump() -> None:
    world = World()
    async for event in world.desk.answer(asking("hi"), id="one", began=5.0):
        if isinstance(event, Started):
            await world.clock.advance(2)
            world.clock.error = 1e6
    stored = world.responses.get("one")
    assert (stored.created, stored.finished) == (5.0, 7.0)


async def test_the_conversation_goes_on_where_a_response_ended() -> None:
    world = World()
    await answer(world, asking("one"), "r1")
    await answer(world, asking("two", previous="r1"), "r2")
    await answer(world, asking("three", previous="r2"), "r3")
    said_so_far = [item.text for item in seen(world)]  # type: ignore[union-attr]
    assert said_so_far == ["one", "ab", "two", "ab", "three"]


async def test_instructions_are_for_one_answer_only() -> None:
    world = World()
    await answer(world, asking("one", instructions="be rude"), "r1")
    assert seen(world)[0] == said("system", "be rude")
    await answer(world, asking("two", previous="r1"), "r2")
    assert said("system", "be rude") not in seen(world)


async def test_what_is_not_to_be_stored_is_not_stored() -> None:
    world = World()
    await answer(world, asking("hi", keep=False), "one")
    assert not world.responses.responses
    with pytest.raises(UnknownResponse):
        await world.desk.ask(FetchResponse("one"))


async def test_one_connection_remembers_what_is_not_stored() -> None:
    world, scratch = World(), Scratch()
    await answer(world, asking("one", keep=False), "r1", scratch)
    await answer(world, asking("two", keep=False, previous="r1"), "r2", scratch)
    assert len(seen(world)) == 3
    assert not world.responses.responses
    with pytest.raises(UnknownResponse):
        await answer(world, asking("two", keep=False, previous="r1"), "r2", Scratch())


async def test_an_unknown_previous_response_is_named_with_its_field() -> None:
    with pytest.raises(UnknownResponse) as caught:
        await answer(World(), asking("hi", previous="nobody"), "one")
    assert (caught.value.response, caught.value.field) == ("nobody", "previous_response_id")


async def test_a_failure_is_stored_with_its_kind_and_raised() -> None:
    world = World()
    await answer(world, asking("hi"), "zero")
    world.engine.events = [Started(1), EngineCrashed("chat")]
    with pytest.raises(EngineCrashed):
        await answer(world, asking("hi"), "one")
    stored = world.responses.get("one")
    assert stored.status == "failed"
    assert stored.fault is not None
    assert stored.fault[0] == "EngineCrashed"


async def test_what_had_come_of_an_answer_that_broke_is_stored_and_gone_on_from() -> None:
    world = World()
    await answer(world, asking("hi"), "zero")
    whole = world.engine.events
    world.engine.events = [Started(1), TextDelta("so "), TextDelta("far"), EngineCrashed("chat")]
    with pytest.raises(EngineCrashed):
        await answer(world, asking("one"), "one")
    assert world.responses.get("one").output == (said("assistant", "so far"),)
    world.engine.events = whole
    await answer(world, asking("go on", previous="one"), "two")
    assert [item.text for item in seen(world)] == ["one", "so far", "go on"]  # type: ignore[union-attr]


class Full(Memory):
    """Takes so many responses, and then no more."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def put(self, response: Stored) -> None:  # noqa: D102  as its parent's
        if len(self.responses) >= self.room:
            raise NoSpace(needed=1, free=0)
        super().put(response)


async def test_an_answer_that_was_to_be_stored_and_cannot_be_has_failed_and_one_that_was_not_has_not() -> None:
    world = World(responses=Full(0))
    with pytest.raises(NoSpace):
        await answer(world, asking("hi"), "one")
    assert (await answer(world, asking("hi", keep=False), "two")).choices[0].text == "ab"


async def test_why_an_answer_broke_is_told_also_where_nothing_can_be_stored() -> None:
    world = World(responses=Full(0))
    await answer(world, asking("hi", keep=False), "zero")
    world.engine.events = [Started(1), EngineCrashed("chat")]
    with pytest.raises(EngineCrashed):
        await answer(world, asking("hi"), "one")


async def test_a_server_goes_down_well_also_where_nothing_can_be_stored() -> None:
    store = Full(9)
    world = World(responses=store)
    await answer(world, asking("hi", keep=False), "zero")
    world.engine.gate.clear()
    await world.desk.later(asking("hi"), id="one")
    await until(lambda: world.engine.busy)
    store.room = 0
    await world.desk.close()
    assert world.loader.open == []


async def test_an_answer_that_was_cut_is_incomplete() -> None:
    world = World()
    await answer(world, asking("hi"), "zero")
    world.engine.events = [Started(1), Finished("length")]
    await answer(world, asking("hi"), "one")
    assert world.responses.get("one").status == "incomplete"


async def test_in_the_background_it_goes_on_without_the_client() -> None:
    world = World()
    await answer(world, asking("hi"), "zero")
    world.engine.gate.clear()
    begun = await world.desk.later(asking("hi", background=True), id="one")
    assert begun.status == "queued"
    await until(lambda: world.engine.busy)
    assert world.responses.get("one").status == "in_progress"
    world.engine.gate.set()
    await until(lambda: world.responses.get("one").status == "completed")
    assert world.responses.get("one").result is not None
    await world.desk.close()


async def test_what_runs_in_the_background_can_be_cancelled() -> None:
    world = World()
    await answer(world, asking("hi"), "zero")
    world.engine.gate.clear()
    await world.desk.later(asking("hi", background=True), id="one")
    await until(lambda: world.engine.busy)
    stored = await world.desk.ask(CancelResponse("one"))
    assert isinstance(stored, Stored)
    assert (stored.status, stored.fault) == ("cancelled", None)
    assert not world.engine.busy
    again = await world.desk.ask(CancelResponse("one"))
    assert again == stored


async def test_going_down_ends_what_runs_in_the_background() -> None:
    world = World()
    await answer(world, asking("hi"), "zero")
    world.engine.gate.clear()
    await world.desk.later(asking("hi", background=True), id="one")
    await world.desk.close()
    assert world.responses.get("one").status == "cancelled"
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


async def test_no_more_go_on_in_the_background_than_may_also_where_all_ask_at_once() -> None:
    world = World()
    await answer(world, asking("hi"), "zero")
    world.engine.gate.clear()
    asked = [world.desk.later(asking("hi", background=True), id=f"r{number}") for number in range(70)]
    begun = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in begun] == [Stored] * 64 + [Busy] * 6
    await world.desk.close()
    await world.desk.later(asking("hi", background=True), id="later")  # What was refused has left nothing behind.


async def test_a_background_request_that_is_wrong_is_refused_at_once() -> None:
    with pytest.raises(UnknownResponse):
        await World().desk.later(asking("hi", background=True, previous="nobody"), id="one")


async def test_a_deleted_response_is_gone() -> None:
    world = World()
    await answer(world, asking("hi"), "one")
    await world.desk.ask(ForgetResponse("one"))
    with pytest.raises(UnknownResponse):
        await world.desk.ask(FetchResponse("one"))
    with pytest.raises(UnknownResponse):
        await world.desk.ask(ForgetResponse("one"))


async def test_tokens_are_counted_with_what_came_before() -> None:
    world = World()
    await answer(world, asking("one"), "r1")
    world.engine.count_tokens = lambda request: len(request.prompt.items)  # type: ignore[union-attr]
    assert await world.desk.ask(CountTokens(asking("two", previous="r1", instructions="x"))) == 4


async def test_what_was_going_on_when_the_server_died_has_failed_and_does_not_run_for_ever() -> None:
    world = World()
    await answer(world, asking("hi"), "one")
    world.responses.put(replace(world.responses.get("one"), status="in_progress", result=None))
    stored = await world.desk.ask(FetchResponse("one"))
    assert isinstance(stored, Stored)
    assert stored.status == "failed"
    assert stored.fault is not None
