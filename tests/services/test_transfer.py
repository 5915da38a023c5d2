"""Models on their way: shared by all who ask, ended when the last of them leaves."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from diglot.core.digest import Digest
from diglot.core.errors import Cancelled, InvalidField, UpstreamFailed
from diglot.core.events import Step
from diglot.core.model import ModelRef
from diglot.core.request import Pull, Push
from diglot.core.source import FromRegistry
from tests.services.world import World, settle, until

A, B = Digest("a" * 64), Digest("b" * 64)


def received(digest: Digest, completed: int) -> Step:
    return Step("receive", digest, total=10, completed=completed)


async def steps(world: World, request: Pull | Push) -> list[Step]:
    return [step async for step in world.desk.move(request)]


async def test_a_pull_yields_what_the_supply_does() -> None:
    world = World()
    world.supply.steps = [Step("find"), received(A, 10), Step("done")]
    assert await steps(world, Pull("x", insecure=True)) == world.supply.steps
    assert world.supply.begun == [(FromRegistry(ModelRef("x")), True)]


async def test_a_push_names_a_model() -> None:
    world = World()
    assert await steps(world, Push("x")) == [Step("find"), Step("done")]
    assert world.supply.begun == [(ModelRef("x"), False)]


@pytest.mark.parametrize("request_", [Pull("a/b/c/d/e"), Push("-")])
async def test_what_is_no_name_is_a_fault_on_the_field(request_: Pull | Push) -> None:
    with pytest.raises(InvalidField, match="model"):
        await steps(World(), request_)


async def test_two_who_ask_for_the_same_share_the_work_and_see_all_of_it() -> None:
    world = World()
    world.supply.steps = [Step("find"), received(A, 1), Step("done")]
    world.supply.gate.clear()
    both = [asyncio.create_task(steps(world, Pull(name))) for name in ("x", "X:latest")]
    await settle()
    world.supply.gate.set()
    assert await asyncio.gather(*both) == [world.supply.steps] * 2
    assert len(world.supply.begun) == 1


async def test_who_comes_late_sees_what_was_done_and_how_far_it_is() -> None:
    world = World()
    world.supply.steps = [Step("find"), received(A, 1), received(A, 5), received(B, 2), Step("done")]
    first = world.desk.move(Pull("x"))
    async with aclosing(first):
        async for step in first:
            if step.digest == B:
                break
        assert await steps(world, Pull("x")) == [Step("find"), received(A, 5), received(B, 2), Step("done")]
    assert len(world.supply.begun) == 1


async def test_one_of_two_may_leave() -> None:
    world = World()
    world.supply.gate.clear()
    leaving, staying = (asyncio.create_task(steps(world, Pull("x"))) for _ in range(2))
    await settle()
    leaving.cancel()
    await settle()
    world.supply.gate.set()
    assert await staying == [Step("find"), Step("done")]
    assert world.supply.given_up == 0


async def test_the_work_ends_with_the_last_who_watches_and_the_next_begins_anew() -> None:
    world = World()
    world.supply.gate.clear()
    task = asyncio.create_task(steps(world, Pull("x")))
    await settle()
    task.cancel()
    await asyncio.wait({task})
    assert world.supply.given_up == 1
    world.supply.gate.set()
    assert await steps(world, Pull("x")) == [Step("find"), Step("done")]
    assert len(world.supply.begun) == 2


async def test_what_goes_wrong_is_told_to_all() -> None:
    world = World()
    world.supply.steps = [Step("find"), UpstreamFailed("there", reason="no")]
    world.supply.gate.clear()
    both = [asyncio.create_task(steps(world, Pull("x"))) for _ in range(2)]
    await settle()
    world.supply.gate.set()
    outcomes = await asyncio.gather(*both, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [UpstreamFailed, UpstreamFailed]


async def test_the_same_name_from_elsewhere_is_other_work() -> None:
    world = World()
    world.supply.gate.clear()
    tasks = [asyncio.create_task(steps(world, each)) for each in (Pull("x"), Pull("x", insecure=True), Push("x"))]
    await until(lambda: len(world.supply.begun) == 3)
    world.supply.gate.set()
    await asyncio.gather(*tasks)


async def test_closing_gives_everything_up() -> None:
    world = World()
    world.supply.gate.clear()
    task = asyncio.create_task(steps(world, Pull("x")))
    await settle()
    await world.desk.close()
    with pytest.raises(Cancelled):
        await task
    assert world.supply.given_up == 1
