"""Blocking work in a thread, watched as steps."""

import threading
from contextlib import aclosing

import pytest

from diglot.core.errors import Cancelled, UpstreamFailed
from diglot.core.events import Step
from diglot.store.aside import Tell, steps_aside


async def test_the_steps_come_in_order() -> None:
    def work(tell: Tell) -> None:
        for number in range(5):
            tell(Step("receive", total=5, completed=number))

    assert [step.completed async for step in steps_aside(work)] == [0, 1, 2, 3, 4]


async def test_what_goes_wrong_is_raised_after_the_steps() -> None:
    def work(tell: Tell) -> None:
        tell(Step("find"))
        raise UpstreamFailed("there", reason="no")

    steps = steps_aside(work)
    assert await anext(steps) == Step("find")
    with pytest.raises(UpstreamFailed):
        await anext(steps)


async def test_whoever_leaves_ends_the_work_at_its_next_step() -> None:
    ended, left = [], threading.Event()

    def work(tell: Tell) -> None:
        tell(Step("find"))
        left.wait(10)
        try:
            while True:
                tell(Step("verify"))
        except Cancelled:
            ended.append("cancelled")
            raise

    async with aclosing(steps_aside(work)) as steps:
        async for _ in steps:
            left.set()
            break
    assert ended == ["cancelled"]
