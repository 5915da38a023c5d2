"""Aside: blocking work in a thread, watched as steps.

Invariant: nothing goes on once the generator is closed: the work ends at the next step that it tells of.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Final

from diglot.core.errors import Cancelled
from diglot.core.events import Step

Tell = Callable[[Step], None]
_MOST: Final = 64
"""Steps that wait to be seen; older ones are passed over."""


async def steps_aside(work: Callable[[Tell], object]) -> AsyncGenerator[Step]:
    """Run `work` in a thread and yield each step that it tells of. Raises what it raises."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    told: deque[Step] = deque(maxlen=_MOST)
    left = False

    def note(step: Step) -> None:
        told.append(step)
        news.set()

    def tell(step: Step) -> None:
        if left:
            raise Cancelled
        loop.call_soon_threadsafe(note, step)

    task = asyncio.create_task(asyncio.to_thread(work, tell), name="aside")
    task.add_done_callback(lambda _: news.set())
    try:
        ended = False
        while not ended:
            await news.wait()
            news.clear()
            ended = task.done()
            while told:
                yield told.popleft()
    finally:
        left = True
        await asyncio.wait({task})
        failed = task.exception()
    if failed is not None:
        raise failed
