"""Going on from a response: tools that were found, items that are named, connections, conversations only taken in."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from diglot.core.errors import EngineCrashed, InvalidField, UnknownResponse
from diglot.core.events import Finished, Started, ToolCallDone, Usage
from diglot.core.items import Item, Opaque, Text, ToolCall, ToolResult, said
from diglot.core.request import Conversation, ForgetResponse, Generation, Reference, Respond, ToolSpec
from diglot.state.responses import Scratch
from tests.services.test_respond import answer, asking, seen
from tests.services.world import World

_ADD = ToolSpec("add", namespace="mcp__lab")
_CALL = ToolCall(call_id="c1", name="look", arguments="{}")


def sending(*items: Item, **more: object) -> Respond:
    """Return a request of these items."""
    request = asking("", **more)
    return replace(request, generation=replace(request.generation, prompt=Conversation(items)))


def tools_of(world: World) -> list[str]:
    """Return what the model could call in the last answer."""
    request = world.engine.seen[-1]
    assert isinstance(request, Generation)
    return [f"{tool.description}{tool.name}" for tool in request.tools]


async def test_a_tool_that_was_found_can_be_called_now_and_later() -> None:
    world = World()
    await answer(world, asking("one", found=(_ADD,)), "r1")
    assert tools_of(world) == ["add"]
    await answer(world, asking("two", previous="r1"), "r2")
    await answer(world, asking("three", previous="r2"), "r3")
    assert tools_of(world) == ["add"]


async def test_of_two_tools_with_one_name_the_declared_one_counts_then_the_newest() -> None:
    world = World()
    old, new, own = (ToolSpec("add", description=word) for word in ("old ", "new ", "own "))
    await answer(world, asking("one", found=(old,)), "r1")
    await answer(world, asking("two", previous="r1", found=(new,)), "r2")
    assert tools_of(world) == ["new add"]
    request = asking("three", previous="r2")
    await answer(world, replace(request, generation=replace(request.generation, tools=(own,))), "r3")
    assert tools_of(world) == ["own add"]


async def test_an_item_that_is_named_stands_in_its_place_and_is_stored_so() -> None:
    world = World()
    await answer(world, asking("one"), "r1")
    where = {0: Reference("r1", output=0, field="input[0].id")}
    await answer(world, sending(Opaque("item_reference", "{}"), said("user", "go on"), references=where), "r2")
    assert [item.text for item in seen(world)] == ["ab", "go on"]  # type: ignore[union-attr]
    await world.desk.ask(ForgetResponse("r1"))
    await answer(world, asking("and", previous="r2"), "r3")
    assert [item.text for item in seen(world)] == ["ab", "go on", "ab", "and"]  # type: ignore[union-attr]


@pytest.mark.parametrize("reference", [Reference("r1", output=5, field="f"), Reference("gone", output=0, field="f")])
async def test_an_item_that_is_not_there_is_named_by_its_field(reference: Reference) -> None:
    world = World()
    await answer(world, asking("one"), "r1")
    with pytest.raises(InvalidField) as raised:
        await answer(world, sending(Opaque("item_reference", "{}"), references={0: reference}), "r2")
    assert raised.value.field == "f"


async def test_a_result_that_belongs_to_no_call_is_refused_where_the_calls_are_known() -> None:
    world = World()
    await answer(world, asking("zero"), "r0")
    world.engine.events = (Started(1), ToolCallDone(_CALL), Finished("tool_calls", Usage(1, 1)))
    await answer(world, asking("one"), "r1")
    good = ToolResult(call_id="c1", content=(Text("x"),))
    await answer(world, sending(good, previous="r1"), "r2")
    with pytest.raises(InvalidField, match="c2"):
        await answer(world, sending(replace(good, call_id="c2"), previous="r1"), "r3")
    await answer(world, sending(replace(good, call_id="c2", name="look"), previous="r1"), "r4")
    await answer(world, sending(replace(good, call_id="c2")), "r5")  # History may be cut anywhere.


async def test_a_connection_forgets_what_could_not_be_gone_on_from() -> None:
    world, scratch = World(), Scratch()
    await answer(world, asking("one", keep=False), "r1", scratch)
    world.engine.events = (EngineCrashed("m"),)
    with pytest.raises(EngineCrashed):
        await answer(world, asking("two", keep=False, previous="r1"), "r2", scratch)
    with pytest.raises(UnknownResponse):
        await answer(world, asking("two", keep=False, previous="r1"), "r3", scratch)


async def test_a_conversation_that_is_only_taken_in_is_read_and_remembered_but_not_answered() -> None:
    world, scratch = World(), Scratch()
    result = await answer(world, asking("one", keep=False, prime=True), "r1", scratch)
    request = world.engine.seen[-1]
    assert isinstance(request, Generation)
    assert request.sampling.max_tokens == 1
    assert (result.choices[0].items, result.choices[0].reason) == ((), "stop")
    assert (result.usage.input, result.usage.output) == (2, 0)
    await answer(world, asking("two", keep=False, previous="r1"), "r2", scratch)
    assert [item.text for item in seen(world)] == ["one", "two"]  # type: ignore[union-attr]
