"""The server under soak, and what it holds when nothing is asked of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil

from bench.sides import ROOT
from bench.soak.inside import Held

_READY = " serves at "
_PATIENCE = 60.0
_TICK = 0.05


class Quiet(msgspec.Struct, frozen=True, kw_only=True):
    """What is there between requests. Memory is in bytes; `children` of the engines are those that run."""

    at: float
    requests: int
    resident: int
    engines: int
    descriptors: int
    tasks: int
    generators: int
    objects: int
    threads: int
    children: int
    zombies: int
    lags: tuple[float, ...]


class Soaked:
    """A server that runs."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log
        self.url = ""

    @property
    def log(self) -> str:
        """All that it has written so far."""
        return self._log.read_text(errors="replace")

    async def ready(self) -> None:
        """Wait until it says where it listens."""
        async with asyncio.timeout(_PATIENCE):
            while _READY not in self.log:
                if self._process.poll() is not None:
                    raise RuntimeError(f"the server has ended:\n{self.log}")
                await asyncio.sleep(_TICK)
        self.url = self.log.split(_READY)[1].split()[0]

    def engines(self) -> list[psutil.Process]:
        """Return the processes of its engines that run."""
        return [each for each in self._children() if each.status() != psutil.STATUS_ZOMBIE]

    def _children(self) -> list[psutil.Process]:
        return psutil.Process(self._process.pid).children(recursive=True)

    async def quiet(self, *, at: float, requests: int) -> Quiet:
        """Count what it holds."""
        held = await asyncio.to_thread(self._held)
        process, engines = psutil.Process(self._process.pid), self.engines()
        return Quiet(
            at=at,
            requests=requests,
            resident=process.memory_info().rss,
            engines=sum(each.memory_info().rss for each in engines),
            descriptors=process.num_fds(),
            tasks=held.tasks,
            generators=held.generators,
            objects=held.objects,
            threads=held.threads,
            children=len(engines),
            zombies=len(self._children()) - len(engines),
            lags=held.lags,
        )

    def _held(self) -> Held:
        stdin: Any = self._process.stdin
        stdout: Any = self._process.stdout
        stdin.write("\n")
        stdin.flush()
        while not (line := stdout.readline()).startswith('{"tasks"'):
            if not line:
                raise RuntimeError(f"the server has ended:\n{self.log}")
        return msgspec.json.decode(line, type=Held)


@contextmanager
def soaked(home: Path, *flags: str) -> Iterator[Soaked]:
    """Run a server with the flags of `diglot serve`."""
    log = home / "log"
    env = {name: value for name, value in os.environ.items() if not name.startswith("DIGLOT_")}
    command = [sys.executable, "-m", "bench.soak.inside", "serve", "--port", "0", "--home", str(home), *flags]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, cwd=ROOT, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        try:
            yield Soaked(process, log)
        finally:
            process.terminate()
