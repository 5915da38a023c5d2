"""Residency: single examples of each promise. `test_residency_machine` plays them in any order."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from diglot.core.errors import Cancelled, LoadFailed, ModelBroken
from diglot.core.model import Model
from diglot.core.request import LoadOptions
from tests.services.world import NOW, World, is_for_ever, model, settle

PLAIN = LoadOptions()


async def use(world: World, which: Model, options: LoadOptions = PLAIN, *, keep_alive: float | None = None) -> None:
    async with world.residency.lease(which, options, keep_alive):
        pass


def begin(world: World, which: Model, options: LoadOptions = PLAIN) -> tuple[asyncio.Task[None], asyncio.Event]:
    """Lease in a task, until the event is set."""
    leave = asyncio.Event()

    async def stay() -> None:
        async with world.residency.lease(which, options):
            await leave.wait()

    return asyncio.create_task(stay()), leave


async def test_a_hundred_who_ask_at_once_get_one_load() -> None:
    world = World()
    world.loader.gate.clear()
    users = [asyncio.create_task(use(world, model())) for _ in range(100)]
    await settle()
    assert world.loader.begun == ["chat:latest"]
    assert world.residency.running()[0].loaded == 0.5
    world.loader.gate.set()
    await asyncio.gather(*users)
    assert len(world.loader.engines) == 1


async def test_a_failed_load_reaches_all_who_wait_and_the_next_request_loads_anew() -> None:
    world = World()
    world.loader.gate.clear()
    world.loader.fault = LoadFailed("chat", reason="no memory")
    users = [asyncio.create_task(use(world, model())) for _ in range(5)]
    await settle()
    world.loader.gate.set()
    results = await asyncio.gather(*users, return_exceptions=True)
    assert all(isinstance(result, LoadFailed) for result in results)
    assert world.names == []
    world.loader.fault = None
    await use(world, model())
    assert world.loader.begun == ["chat:latest"] * 2


async def test_a_load_that_fails_when_everybody_has_left_is_forgotten() -> None:
    world = World()
    world.loader.gate.clear()
    world.loader.fault = ModelBroken("chat", reason="cut off")
    user = asyncio.create_task(use(world, model()))
    await settle()
    user.cancel()
    await settle()
    assert world.names == ["chat:latest"]
    world.loader.gate.set()
    await settle()
    assert world.names == []
    assert world.clock.sleepers == 0


async def test_who_leaves_during_a_load_does_not_end_it_for_the_others() -> None:
    world = World()
    world.loader.gate.clear()
    leaver = asyncio.create_task(use(world, model()))
    stayer = asyncio.create_task(use(world, model()))
    await settle()
    leaver.cancel()
    await settle()
    world.loader.gate.set()
    await stayer
    assert leaver.cancelled()
    assert world.loader.given_up == 0


async def test_close_gives_up_a_load_and_tells_who_waits() -> None:
    world = World()
    world.loader.gate.clear()
    user = asyncio.create_task(use(world, model()))
    await settle()
    await world.residency.close()
    with pytest.raises(Cancelled):
        await user
    assert world.loader.given_up == 1
    with pytest.raises(Cancelled):
        await use(world, model())


async def test_close_ends_engines_in_use_and_who_waits_for_room() -> None:
    world = World(budget=10)
    user, leave = begin(world, model("one"))
    await settle()
    waiting = asyncio.create_task(use(world, model("two")))
    await settle()
    await world.residency.close()
    assert world.loader.open == []
    with pytest.raises(Cancelled):
        await waiting
    leave.set()
    await user
    assert world.names == []
    assert world.loader.begun == ["one:latest"]


async def test_a_model_goes_when_its_time_is_up_and_not_before() -> None:
    world = World(keep_alive=300)
    await use(world, model())
    assert world.residency.running()[0].expires_at == NOW + 300
    await world.clock.advance(200)
    await use(world, model())
    await world.clock.advance(299)
    assert world.names == ["chat:latest"]
    await world.clock.advance(1)
    assert world.names == []
    assert world.loader.open == []


@pytest.mark.parametrize("jump", [-86400.0, 86400.0])
async def test_a_clock_that_jumps_makes_no_model_go_sooner_or_later(jump: float) -> None:
    world = World(keep_alive=300)
    await use(world, model())
    await world.clock.advance(100)
    world.clock.error = jump
    assert world.residency.running()[0].expires_at == world.clock.now() + 200
    await world.clock.advance(199)
    assert world.names == ["chat:latest"]
    await world.clock.advance(1)
    assert world.names == []


async def test_a_model_in_use_does_not_go_when_its_time_is_up() -> None:
    world = World(keep_alive=300)
    user, leave = begin(world, model())
    await world.clock.advance(1000)
    assert world.residency.running()[0].expires_at == NOW + 1300
    leave.set()
    await user
    await world.clock.advance(299)
    assert world.names == ["chat:latest"]


async def test_keep_alive_of_zero_lets_the_model_go_after_the_last_user() -> None:
    world = World()
    user, leave = begin(world, model())
    await settle()
    await use(world, model(), keep_alive=0)
    await settle()
    assert world.names == ["chat:latest"]
    leave.set()
    await user
    await settle()
    assert world.loader.open == []


async def test_a_model_with_no_end_stays() -> None:
    world = World()
    await use(world, model(), keep_alive=float("inf"))
    await world.clock.advance(1e9)
    assert is_for_ever(world.residency.running()[0].expires_at)
    assert world.clock.sleepers == 0


async def test_a_keep_alive_holds_until_another_is_given() -> None:
    world = World(keep_alive=300)
    await use(world, model(), keep_alive=10)
    await use(world, model())
    assert world.residency.running()[0].expires_at == NOW + 10
    await use(world, model(), keep_alive=20)
    await world.clock.advance(10)
    assert world.names == ["chat:latest"]


async def test_the_one_used_longest_ago_makes_room() -> None:
    world = World(budget=25)
    await use(world, model("one"))
    await world.clock.advance(1)
    await use(world, model("two"))
    await world.clock.advance(1)
    await use(world, model("one"))
    await use(world, model("three"))
    assert sorted(world.names) == ["one:latest", "three:latest"]
    assert [engine.model.name for engine in world.loader.open] == ["one:latest", "three:latest"]


async def test_a_model_in_use_never_makes_room_and_who_needs_it_waits() -> None:
    world = World(budget=15)
    user, leave = begin(world, model("one"))
    await settle()
    waiting = asyncio.create_task(use(world, model("two")))
    await settle()
    assert world.engine.alive
    assert not waiting.done()
    leave.set()
    await asyncio.gather(user, waiting)
    assert world.names == ["two:latest"]


async def test_a_model_in_steady_use_still_makes_room_in_the_end() -> None:
    world = World(budget=15)
    first, leave = begin(world, model("one"))
    await settle()
    other = asyncio.create_task(use(world, model("two")))
    await settle()
    later, leave_later = begin(world, model("one"))
    await settle()
    leave.set()
    await asyncio.gather(first, other)
    leave_later.set()
    await later
    assert world.loader.begun == ["one:latest", "two:latest", "one:latest"]


async def test_memory_counts_until_an_engine_has_really_ended() -> None:
    world = World(budget=15)
    await use(world, model("one"))
    ended = asyncio.Event()
    close = world.engine.close

    async def close_slowly() -> None:
        await ended.wait()
        await close()

    world.engine.close = close_slowly  # type: ignore[method-assign]
    unloading = asyncio.create_task(world.residency.unload(model("one")))
    await settle()
    assert world.names == []
    impatient = asyncio.create_task(use(world, model("two")))
    await settle()
    impatient.cancel()
    waiting = asyncio.create_task(use(world, model("two")))
    again = asyncio.create_task(use(world, model("one")))
    await settle()
    assert world.loader.begun == ["one:latest"]
    ended.set()
    await asyncio.gather(unloading, waiting, again)
    assert impatient.cancelled()


async def test_one_that_goes_already_is_enough_where_it_makes_enough_room() -> None:
    world = World(budget=25)
    await use(world, model("one"))
    await use(world, model("two"))
    ended = asyncio.Event()
    world.loader.engines[0].close = ended.wait  # type: ignore[method-assign, assignment]
    unloading = asyncio.create_task(world.residency.unload(model("one")))
    await settle()
    waiting = asyncio.create_task(use(world, model("three")))
    await settle()
    ended.set()
    await asyncio.gather(unloading, waiting)
    assert sorted(world.names) == ["three:latest", "two:latest"]


async def test_one_that_nobody_uses_makes_room_before_one_in_use() -> None:
    world = World(budget=25)
    user, leave = begin(world, model("one"))
    await settle()
    await world.clock.advance(1)
    await use(world, model("two"))
    await use(world, model("three"))
    await use(world, model("one"))
    assert sorted(world.names) == ["one:latest", "three:latest"]
    leave.set()
    await user


async def test_one_who_makes_room_and_is_cancelled_leaves_nobody_waiting_for_ever() -> None:
    world = World(budget=15)
    await use(world, model("one"))
    maker = asyncio.create_task(use(world, model("two")))
    for _ in range(2):
        await asyncio.sleep(0)
    maker.cancel()
    await asyncio.wait_for(use(world, model("three")), 5)
    assert world.names == ["three:latest"]


async def test_a_model_larger_than_the_budget_is_loaded_alone() -> None:
    world = World(budget=15)
    await use(world, model("one"))
    await use(world, model("huge", size=1000))
    assert world.names == ["huge:latest"]


async def test_other_load_options_load_anew_once_nobody_uses_the_old() -> None:
    world = World()
    user, leave = begin(world, model(), LoadOptions(window=10))
    await settle()
    other = asyncio.create_task(use(world, model(), LoadOptions(window=20)))
    await settle()
    assert len(world.loader.engines) == 1
    leave.set()
    await asyncio.gather(user, other)
    assert [engine.options.window for engine in world.loader.engines] == [10, 20]
    await use(world, model())
    assert len(world.loader.engines) == 2, "what a request leaves open fits anything"
    assert world.engine.options.batch == 8, "the operator's defaults are in force"


async def test_a_changed_model_is_loaded_anew() -> None:
    world = World()
    await use(world, model())
    await use(world, model(digest="other"))
    assert len(world.loader.engines) == 2
    assert len(world.loader.open) == 1


async def test_a_dead_engine_is_not_listed_and_the_next_request_loads_anew() -> None:
    world = World()
    await use(world, model())
    world.engine.alive = False
    assert world.names == []
    await use(world, model())
    assert world.engine.alive
    assert len(world.loader.open) == 1


async def test_unload_ends_an_idle_model_and_one_in_use_after_its_user() -> None:
    world = World()
    await use(world, model("idle"))
    user, leave = begin(world, model("used"))
    await settle()
    await world.residency.unload(model("idle"))
    await world.residency.unload(model("used"))
    await world.residency.unload(model("absent"))
    assert world.names == ["used:latest"]
    leave.set()
    await user
    await settle()
    assert world.loader.open == []


async def test_what_runs_is_told_with_its_real_size_and_what_stays_longest_first() -> None:
    world = World()
    await use(world, model("short"), keep_alive=5)
    await use(world, model("long"), keep_alive=50)
    first, second = world.residency.running()
    assert (first.model.name, second.model.name) == ("long:latest", "short:latest")
    assert (first.memory, first.accelerator_memory, first.window, first.loaded) == (7, 3, 100, 1.0)


async def test_a_turn_takes_a_slot_and_leaves_no_turnstile_behind() -> None:
    world = World(queue=1)
    turnstiles = world.residency._turnstiles  # noqa: SLF001  nothing else shows a leak
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(world.residency.turn(model(), PLAIN))
        waiting = asyncio.create_task(stack.enter_async_context(world.residency.turn(model(), PLAIN)))
        await settle()
        waiting.cancel()
        await settle()
        assert len(turnstiles) == 1
    assert not turnstiles


async def test_a_turn_whose_load_fails_frees_its_slot() -> None:
    world = World(queue=0)
    world.loader.fault = LoadFailed("chat", reason="no memory")
    for _ in range(5):
        with pytest.raises(LoadFailed):
            async with world.residency.turn(model(), PLAIN):
                pass
    assert not world.residency._turnstiles  # noqa: SLF001
