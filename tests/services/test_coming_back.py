"""Who waits, gives up, lets others in between and comes back: nothing of it changes how many there are, or who stays."""

import asyncio

from diglot.core.request import LoadOptions
from diglot.services.visit import Visit
from tests.services.world import World, model, settle


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
