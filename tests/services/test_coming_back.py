"""Who waits, gives up, lets others in between and comes back: nothing of it changes how many there are, or who stays."""

import asyncio
from contextlib import aclosing

from diglot.core.request import LoadOptions
from diglot.services.visit import Visit
from tests.services.world import World, generation, model, settle, until


class OneSlot(World):
    """A world in which a model makes one answer at a time, and that knows how many were inside at once."""

    def __init__(self, *, keep_alive: float = 300.0) -> None:
        super().__init__(keep_alive=keep_alive)
        self.loader.slots = lambda model: 1  # type: ignore[method-assign]  # noqa: ARG005
        self.inside = self.most = 0

    def enter(self, caller: str) -> tuple[asyncio.Task[None], asyncio.Event]:
        """Take a turn in a task, until the event is set."""
        leave = asyncio.Event()

        async def stay() -> None:
            async with self.residency.turn(model(), LoadOptions(), visit=Visit.at(0, caller=caller)):
                self.inside += 1
                self.most = max(self.most, self.inside)
                await leave.wait()
                self.inside -= 1

        return asyncio.create_task(stay()), leave

    def answers(self, count: int, *, keep_alive: float | None = None) -> asyncio.Task[None]:
        """Make several answers one after the other in a task, each when the gate is open."""

        async def work() -> None:
            who = Visit.at(0, caller="several")
            async with self.residency.turn(model(), LoadOptions(), keep_alive, visit=who) as engine:
                for _ in range(count):
                    async with aclosing(engine.generate(generation())) as events:
                        async for _ in events:
                            pass

        return asyncio.create_task(work())

    async def several_with_another_between(self) -> tuple[asyncio.Task[None], asyncio.Task[None], asyncio.Event]:
        """Begin three answers, and return when another caller is inside between two of them, until the event is set."""
        self.loader.gate.clear()
        several = self.answers(3)
        await settle()
        between, leave = self.enter("between")
        self.loader.gate.set()
        await until(lambda: self.inside)
        return several, between, leave


async def test_who_gives_up_while_the_last_one_leaves_and_another_comes_makes_no_second_slot() -> None:
    world = OneSlot()
    last, leave = world.enter("last")
    await settle()
    waiting, _ = world.enter("waiting")
    await settle()
    leave.set()  # All at once: the last one leaves, another comes, and who waited hears only then that he was cancelled.
    other, other_leave = world.enter("other")
    waiting.cancel()
    await settle()
    further, further_leave = world.enter("further")
    await settle()
    other_leave.set()
    further_leave.set()
    await asyncio.gather(last, other, further)
    assert waiting.cancelled()
    assert world.most == 1


async def test_a_model_that_is_to_go_at_once_waits_for_who_comes_back_and_then_goes() -> None:
    world = OneSlot(keep_alive=0)
    several, between, leave = await world.several_with_another_between()
    assert not several.done()
    leave.set()
    await asyncio.gather(several, between)
    await settle()
    assert world.loader.begun == ["chat:latest"]
    assert not world.loader.open


async def test_a_model_that_goes_with_its_last_user_goes_where_he_does_not_come_back() -> None:
    world = OneSlot(keep_alive=0)
    several, between, leave = await world.several_with_another_between()
    leave.set()
    await until(lambda: not world.inside)
    several.cancel()
    await asyncio.wait({several, between})
    await settle()
    assert several.cancelled()
    assert not world.loader.open


async def test_an_unload_is_not_forgotten_by_who_lets_others_in_between() -> None:
    world = OneSlot()
    world.loader.gate.clear()
    several = world.answers(3)
    await settle()
    between, leave = world.enter("between")
    await settle()
    await world.residency.unload(model())
    world.loader.gate.set()
    await until(lambda: world.inside)
    leave.set()
    await asyncio.gather(several, between)
    await settle()
    assert not world.loader.open
