"""Admission: the turnstile, at every moment and however its guests leave."""

# ruff: noqa: D102  methods are the steps of a scenario

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.errors import Busy
from diglot.services.admission import Turnstile
from tests.services.world import Clock, settle, until


class Crowd:
    """Guests of one turnstile, each in a task that stays inside until it is told to go."""

    def __init__(self, *, slots: int, queue: int) -> None:
        self.slots = slots
        self.queue = queue
        self.clock = Clock()
        self.turnstile = Turnstile(slots=slots, queue=queue, clock=self.clock)
        self.came: list[int] = []
        self.entered: list[int] = []
        self.inside: dict[int, asyncio.Event] = {}
        self.refused: list[Busy] = []
        self.tasks: dict[int, asyncio.Task[None]] = {}

    def come(self) -> None:
        number = len(self.came)
        self.came.append(number)
        self.tasks[number] = asyncio.create_task(self._visit(number))

    def go(self, choice: int) -> None:
        if self.inside:
            list(self.inside.values())[choice % len(self.inside)].set()

    def cancel(self, choice: int) -> None:
        alive = [task for task in self.tasks.values() if not task.done()]
        if alive:
            alive[choice % len(alive)].cancel()

    async def leave_all(self) -> None:
        while any(not task.done() for task in self.tasks.values()):
            for leave in list(self.inside.values()):
                leave.set()
            await settle()

    def check(self) -> None:
        assert len(self.inside) <= self.slots
        for task in self.tasks.values():
            assert not (task.done() and not task.cancelled() and task.exception()), "nothing but what was done to it"

    async def _visit(self, number: int) -> None:
        try:
            async with self.turnstile.turn():
                self.entered.append(number)
                self.inside[number] = asyncio.Event()
                try:
                    await self.inside[number].wait()
                finally:
                    del self.inside[number]
        except Busy as busy:
            self.refused.append(busy)


STEPS = st.lists(
    st.tuples(st.sampled_from(["come", "come", "go", "cancel", "settle", "wait"]), st.integers(0, 9)), max_size=60
)


@given(steps=STEPS, slots=st.integers(1, 3), queue=st.integers(0, 4))
def test_whatever_happens_no_more_than_the_slots_are_inside_and_in_the_end_all_are_free(
    steps: Iterable[tuple[str, int]], slots: int, queue: int
) -> None:
    async def play() -> None:
        crowd = Crowd(slots=slots, queue=queue)
        for step, choice in steps:
            match step:
                case "come":
                    crowd.come()
                case "go":
                    crowd.go(choice)
                case "cancel":
                    crowd.cancel(choice)
                case "settle":
                    await settle()
                case _:
                    await crowd.clock.advance(choice)
            crowd.check()
        await crowd.leave_all()
        crowd.check()
        assert crowd.turnstile.idle
        assert all(1 <= busy.retry_after <= 60 for busy in crowd.refused)
        async with AsyncExitStack() as stack:
            for _ in range(slots):
                await stack.enter_async_context(crowd.turnstile.turn())

    asyncio.run(play())


@given(goes=st.lists(st.integers(0, 9), max_size=12), slots=st.integers(1, 3))
def test_who_came_first_goes_in_first(goes: Iterable[int], slots: int) -> None:
    async def play() -> None:
        crowd = Crowd(slots=slots, queue=9)
        for _ in range(slots + 9):
            crowd.come()
        for choice in goes:
            await settle()
            crowd.go(choice)
            crowd.cancel(choice * 7)
        await crowd.leave_all()
        assert crowd.entered == sorted(crowd.entered)

    asyncio.run(play())


async def test_the_queue_is_bounded_and_the_next_is_sent_away() -> None:
    crowd = Crowd(slots=1, queue=2)
    for _ in range(4):
        crowd.come()
    await settle()
    assert list(crowd.inside) == [0]
    assert len(crowd.refused) == 1
    await crowd.leave_all()
    assert crowd.entered == [0, 1, 2]


async def test_a_slot_that_was_just_handed_over_is_handed_on_when_its_taker_is_cancelled() -> None:
    crowd = Crowd(slots=1, queue=2)
    for _ in range(3):
        crowd.come()
    await settle()
    crowd.go(0)
    await until(crowd.tasks[0].done)
    crowd.tasks[1].cancel()
    await settle()
    assert list(crowd.inside) == [2]
    await crowd.leave_all()


async def test_one_who_waits_and_is_cancelled_while_another_leaves_is_only_cancelled() -> None:
    crowd = Crowd(slots=1, queue=2)
    for _ in range(3):
        crowd.come()
    await settle()
    crowd.go(0)
    crowd.tasks[1].cancel()  # Its place is cancelled now, its task will run only after the first has left.
    await settle()
    assert crowd.tasks[1].cancelled()
    assert list(crowd.inside) == [2]
    await crowd.leave_all()
    crowd.check()


async def test_the_guess_when_to_come_back_follows_how_long_turns_take_and_how_many_wait() -> None:
    clock = Clock()
    turnstile = Turnstile(slots=1, queue=0, clock=clock)

    async def refusal() -> float:
        async with turnstile.turn():
            with pytest.raises(Busy) as caught:
                async with turnstile.turn():
                    pass
            return caught.value.retry_after

    for _ in range(40):
        async with turnstile.turn():
            clock.seconds += 20
    slow = await refusal()
    assert 15 <= slow <= 25
    for _ in range(40):
        async with turnstile.turn():
            clock.seconds += 0.01
    assert await refusal() == 1.0
    for _ in range(40):
        async with turnstile.turn():
            clock.seconds += 4000
    assert await refusal() == 60.0
