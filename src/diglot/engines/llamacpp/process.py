"""The parent's side of a child: start it, wait until it serves, notice its death, end it.

Knows processes and pipes and nothing of tokens. Neighbours: `child` is what it starts, `engine` owns one, `vigil`
gives one up that serves and hangs; one that hangs while it loads is given up here.

Invariants: whoever starts a child ends up with either a serving one or none at all, also when cancelled; a child
neither takes memory without end nor loads without end, whatever its model file says.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from diglot.core.errors import LoadFailed
from diglot.engines.llamacpp.launch import Failed, Launch, Ready, Report
from diglot.engines.llamacpp.vitals import computed, ended, resident

_log = logging.getLogger(__name__)
_LINES_KEPT = 40
_LINE_LENGTH = 400
_STOP_SECONDS = 3.0
_POLL_SECONDS = 0.1
_CEILING_SECONDS = 0.5  # A template that runs away takes a few hundred megabytes in that time.
_TOIL = 4  # How many times longer a load may only compute than be silent. A template can hold an endless loop.


class ChildProcess:
    """A running child. Made by `start` only."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        name: str,
        *,
        patience: float = math.inf,
        ceiling: float = math.inf,
    ) -> None:
        self._process = process
        self._name = name
        self._patience = patience
        self._ceiling = ceiling
        self._tail: deque[str] = deque(maxlen=_LINES_KEPT)
        self._watch = asyncio.create_task(self._watch_until_dead(), name=f"child of {name}")
        self._ceiling_watch: asyncio.Task[None] | None = None
        self._stopping = False
        self.given_up = ""
        self.port = 0

    @classmethod
    async def start(
        cls,
        launch: Launch,
        *,
        name: str,
        progress: Callable[[int, int], None],
        environment: Mapping[str, str] | None = None,
        patience: float = math.inf,
        ceiling: float = math.inf,
    ) -> ChildProcess:
        """Start a child and return it when it serves; its environment is the parent's if none is given.

        `patience` is how many seconds it may give no sign of life, `ceiling` how many bytes of memory it may hold.
        Raises LoadFailed; cancelling leaves nothing behind.
        """
        size = await asyncio.to_thread(os.path.getsize, launch.model)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "diglot.engines.llamacpp.child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,  # A Ctrl-C at the terminal is the server's to handle.
        )
        child = cls(process, name, patience=patience, ceiling=ceiling)
        meter = asyncio.create_task(child._measure(size, progress))
        try:
            await child._send(launch)
            child.port = await child._ready()
        except BaseException:
            child._kill()
            await asyncio.shield(child._watch)
            raise
        finally:
            meter.cancel()
        child._ceiling_watch = asyncio.create_task(child._keep_below_ceiling(), name=f"memory of {name}")
        return child

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs, is not being stopped and was not given up."""
        return not (self._stopping or self.given_up or self._watch.done() or ended(self.pid))

    @property
    def stopped(self) -> bool:
        """Whether its end was asked for."""
        return self._stopping

    @property
    def memory(self) -> int:
        """Bytes of memory that it holds now, 0 where the system does not say."""
        return resident(self.pid)

    async def detail(self) -> str:
        """Return how a child that died has ended and the last it wrote to its log."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._watch), _STOP_SECONDS)
        return "\n".join([f"status {self._process.returncode}", *self._tail])

    async def stop(self) -> None:
        """End it: politely by closing its input, then by force. Idempotent."""
        self._stopping = True
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(asyncio.shield(self._watch), _STOP_SECONDS)
        except TimeoutError:
            self._kill()
            await self._watch
        if self._ceiling_watch is not None:
            await self._ceiling_watch

    def give_up(self, why: str = "") -> None:
        """End it at once, because it gives no sign of life, or for another reason; `given_up` says so from here on."""
        self.given_up = f"was ended, for it {why or f'gave no sign of life for {self._patience:g} seconds'}"
        _log.warning("the engine of %s %s", self._name, self.given_up)
        self._kill()

    async def _send(self, launch: Launch) -> None:
        pipe = self._process.stdin
        if pipe is None:
            return
        pipe.write(msgspec.json.encode(launch) + b"\n")
        with contextlib.suppress(ConnectionError):  # It died already: `_ready` says so.
            await pipe.drain()

    async def _ready(self) -> int:
        line = await self._process.stdout.readline() if self._process.stdout else b""
        if not line:
            detail = await self.detail()
            reason = f"its engine process {self.given_up or 'ended'} while loading"
            raise LoadFailed(self._name, reason=reason, detail=detail)
        match msgspec.json.decode(line, type=Report):
            case Ready(port):
                return port
            case Failed(error):
                detail = await self.detail()
                raise LoadFailed(
                    self._name, reason="the engine refused its files or the options", detail=f"{error}\n{detail}"
                )

    async def _watch_until_dead(self) -> None:
        """Read the log of the child until it closes, then reap the child."""
        stream = self._process.stderr
        while stream is not None:
            try:
                line = await stream.readline()
            except ValueError:  # Longer than the stream holds: not worth keeping.
                continue
            if not line:
                break
            text = line.decode(errors="replace").rstrip()[:_LINE_LENGTH]
            self._tail.append(text)
            _log.debug("%s: %s", self._name, text)
        await self._process.wait()

    async def _measure(self, total: int, progress: Callable[[int, int], None]) -> None:
        """Report how much of the weights is in memory. llama.cpp itself cannot say while it loads.

        A process that takes neither memory nor time of a processor for too long is given up, and so is one that for
        much longer takes nothing but time.
        """
        clock = asyncio.get_running_loop().time
        seen: tuple[int, int] | None = None
        most, alive, grown = 0, clock(), clock()
        while not self._is_too_much(memory := self.memory):
            await asyncio.sleep(_POLL_SECONDS)
            state = (memory, computed(self.pid))
            most = max(most, memory)  # What was only needed on the way is given back.
            progress(min(most, total), total)
            if seen is None or memory != seen[0] or not memory:
                grown = clock()
            if state != seen or 0 in state:
                seen, alive = state, clock()
            if clock() - alive > self._patience:
                self.give_up()
                return
            if clock() - grown > self._patience * _TOIL:
                self.give_up(f"computed for {self._patience * _TOIL:g} seconds and did not get on")
                return

    async def _keep_below_ceiling(self) -> None:
        while not self._watch.done() and not self._is_too_much(await asyncio.to_thread(resident, self.pid)):
            await asyncio.wait({self._watch}, timeout=_CEILING_SECONDS)

    def _is_too_much(self, memory: int) -> bool:
        """Say whether that is more than it may hold, and give it up then."""
        if memory <= self._ceiling:
            return False
        self.give_up(f"took more than {self._ceiling / 1e9:.1f} GB of memory")
        return True

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
