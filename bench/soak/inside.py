"""The server of the soak: `diglot` as it is, in a process that can be asked what it holds.

`python -m bench.soak.inside serve ...` is `diglot serve ...`. For each line of standard input it prints one line of
JSON, a `Held`. A thread looks for that, so that nothing of the server itself is changed.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from types import AsyncGeneratorType

import msgspec

from diglot.cli.main import main

_TICK = 0.05


class Held(msgspec.Struct, frozen=True):
    """What the process holds: tasks and asynchronous generators that are not done, objects, threads.

    `lags` are the seconds that the loop took to come to something new, looked at all the while since the last asking.
    """

    tasks: int
    generators: int
    objects: int
    threads: int
    lags: tuple[float, ...]


class Lag:
    """Measures how late the loop is, from a thread."""

    def __init__(self) -> None:
        self._lags: list[float] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def watch(self) -> None:
        """Look again and again, for ever."""
        pause, back = threading.Event(), threading.Event()
        while not pause.wait(_TICK):
            if self._loop is None or self._loop.is_closed():
                continue
            begun = time.monotonic()
            back.clear()
            try:
                self._loop.call_soon_threadsafe(back.set)
            except RuntimeError:  # Closed this moment.
                return
            back.wait()
            self._lags.append(time.monotonic() - begun)

    def take(self, loop: asyncio.AbstractEventLoop | None) -> tuple[float, ...]:
        """Return what was measured so far, and go on with this loop."""
        self._loop = loop
        taken, self._lags = self._lags, []
        return tuple(taken)


def held(lag: Lag) -> Held:
    """Count."""
    gc.collect()
    everything = gc.get_objects()
    tasks = [each for each in everything if isinstance(each, asyncio.Task) and not each.done()]
    running = sum(isinstance(each, AsyncGeneratorType) and each.ag_frame is not None for each in everything)
    loop = tasks[0].get_loop() if tasks else None
    return Held(len(tasks), running, len(everything), threading.active_count(), lag.take(loop))


def _answer() -> None:
    lag = Lag()
    threading.Thread(target=lag.watch, daemon=True).start()
    for _ in sys.stdin:
        sys.stdout.write(msgspec.json.encode(held(lag)).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    threading.Thread(target=_answer, daemon=True).start()
    main()
