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

    def come(self, caller: str = "", *, background: bool = False) -> int:
        number = len(self.came)
        self.came.append(number)
        self.tasks[number] = asyncio.create_task(self._visit(number, caller, background=background))
        return number

    async def go_one_by_one(self) -> None:
        """Let whoever is inside leave, until nobody is."""
        await settle()
        while self.inside:
            self.go(0)
            await settle()

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

    async def _visit(self, number: int, caller: str, *, background: bool) -> None:
        try:
            async with self.turnstile.turn(caller, background=background):
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


async def test_one_request_waits_for_one_of_another_callers_hundred() -> None:
    crowd = Crowd(slots=1, queue=200)
    for _ in range(100):
        crowd.come("batch")
    await settle()
    single = crowd.come("person")
    await crowd.go_one_by_one()
    assert crowd.entered.index(single) == 2  # Behind the one that was inside, and one more.
    assert len(crowd.entered) == 101


async def test_callers_take_turns_and_each_keeps_his_order() -> None:
    crowd = Crowd(slots=1, queue=20)
    order = [crowd.come(caller) for caller in "aaaabbc"]
    await crowd.go_one_by_one()
    assert [crowd.entered.index(number) for number in order] == [0, 1, 4, 6, 2, 5, 3]


async def test_of_a_full_line_whoever_has_most_yields_his_newest_place() -> None:
    crowd = Crowd(slots=1, queue=4)
    mine = [crowd.come("batch") for _ in range(5)]
    await settle()
    others = [crowd.come(caller) for caller in ("person", "person", "person")]
    await settle()
    assert len(crowd.refused) == 3
    await crowd.go_one_by_one()
    assert set(crowd.entered) == {*mine[:3], *others[:2]}
    assert all(1 <= busy.retry_after <= 60 for busy in crowd.refused)


async def test_a_place_that_is_yielded_and_given_up_at_once_is_only_given_up() -> None:
    crowd = Crowd(slots=1, queue=2)
    for _ in range(3):
        crowd.come("batch")
    await settle()
    crowd.come("person")
    crowd.tasks[2].cancel()  # Its place is cancelled now; its task runs after the person has come.
    await settle()
    assert crowd.tasks[2].cancelled()
    assert not crowd.refused
    await crowd.go_one_by_one()
    assert crowd.entered == [0, 1, 3]


async def test_who_is_cancelled_with_the_place_he_was_to_yield_takes_no_slot_along() -> None:
    crowd = Crowd(slots=1, queue=2)
    for _ in range(3):
        crowd.come("batch")
    await settle()
    crowd.come("person")
    await until(lambda: len(crowd.turnstile._line) == 2 and crowd.turnstile._line._counts["person"])  # noqa: SLF001  the moment between
    crowd.tasks[2].cancel()
    await settle()
    assert list(crowd.inside) == [0]
    await crowd.go_one_by_one()
    assert crowd.entered == [0, 1, 3]
    assert crowd.turnstile.idle


async def test_the_background_lets_others_go_first_but_not_for_ever() -> None:
    crowd = Crowd(slots=1, queue=40)
    crowd.come("person")
    await settle()
    behind = [crowd.come("agent", background=True) for _ in range(2)]
    for _ in range(20):
        crowd.come("person")
    await crowd.go_one_by_one()
    assert [crowd.entered.index(number) for number in behind] == [9, 18]


async def test_what_waits_in_the_background_takes_no_place_of_the_queue_and_is_not_sent_away() -> None:
    crowd = Crowd(slots=1, queue=1)
    for _ in range(10):
        crowd.come("agent", background=True)
    await settle()
    crowd.come("person")
    await settle()
    assert not crowd.refused
    await crowd.go_one_by_one()
    assert crowd.entered[1] == 10
    assert len(crowd.entered) == 11


async def test_who_gives_way_comes_back_behind_those_who_waited() -> None:
    turnstile = Turnstile(slots=1, queue=0, clock=Clock())
    crowd: list[str] = []

    async def visit(name: str) -> None:
        async with turnstile.turn(name, background=name != "long") as turn:
            for piece in range(3):
                crowd.append(f"{name} {piece}")
                await asyncio.sleep(0)
                if turn.wanted:
                    await turn.give_way()

    await asyncio.gather(visit("long"), visit("one"), visit("two"))
    assert crowd[:2] == ["long 0", "long 1"]  # It goes before the background, whoever waits there.
    assert sorted(crowd) == sorted(f"{name} {piece}" for name in ("long", "one", "two") for piece in range(3))
    assert crowd[3:6] == ["one 0", "two 0", "one 1"]
    assert turnstile.idle


async def test_whoever_gives_up_leaves_his_place_to_others() -> None:
    crowd = Crowd(slots=1, queue=3)
    for _ in range(4):
        crowd.come()
    await settle()
    for number in (1, 2, 3):
        crowd.tasks[number].cancel()
    await settle()
    for _ in range(3):
        crowd.come()
    await settle()
    assert not crowd.refused
    await crowd.go_one_by_one()
    assert crowd.entered == [0, 4, 5, 6]
