"""The run: a few clients play cards until the time is up, engines are killed, and in between all is quiet and counted.

Each client goes through the whole deck again and again, shuffled anew. After every `KILL_EVERY` requests the process of
an engine is killed, whatever it does. The time is cut into stretches; after each the clients leave, both models are
loaded, and what the server holds is counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from random import Random
from typing import Final

import httpx2
import psutil

from bench.soak.leaving import leavers
from bench.soak.mix import CHAT, EMBEDDING, PATIENCE, Card, Ending, deck
from bench.soak.server import Quiet, Soaked

CLIENTS: Final = 6
KILL_EVERY: Final = 20
LOOKS: Final = ("/health", "/metrics", "/api/ps")
"""What is asked all the while, for it must not wait for those who compute."""
_SETTLE: Final = 60.0
_TICK: Final = 0.25


class Tally:
    """What came of the requests, by card and by kind, and how many seconds those who only look waited meanwhile."""

    def __init__(self) -> None:
        self.ways: Counter[tuple[str, str]] = Counter()
        self.refusals: Counter[str] = Counter()
        self.surprises: Counter[str] = Counter()
        self.slowest: dict[str, float] = {}
        self.looks: dict[str, list[float]] = {path: [] for path in LOOKS}
        self.kills = 0

    @property
    def requests(self) -> int:
        """All of them."""
        return self.ways.total()

    def note(self, card: Card, ending: Ending, *, seconds: float) -> None:
        """Count one."""
        self.slowest[card.name] = max(seconds, self.slowest.get(card.name, 0.0))
        self.ways[card.name, ending.way] += 1
        if ending.way == "lost":
            self.surprises[f"{card.name}: {ending.kind}"] += 1
        if ending.way == "refused":
            self.refusals[ending.kind] += 1
            if ending.kind not in EXPLAINED and ending.kind not in card.refused:
                self.surprises[f"{card.name}: {ending.kind}"] += 1


EXPLAINED: Final = frozenset({"engine_crashed", "model_load_failed"})
"""What a killed engine may do to those who wait for it."""


class Run:
    """One run against a server."""

    def __init__(self, server: Soaked, seed: int) -> None:
        self._server = server
        self._random = Random(seed)
        self._begun = time.monotonic()
        self._until = 0.0
        self._next_kill = KILL_EVERY
        self.tally = Tally()
        self.quiets: list[Quiet] = []

    async def stretch(self, seconds: float) -> None:
        """Play for a while, then count. Every request is awaited."""
        self._until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            beside = group.create_task(self._look())
            clients = [group.create_task(self._client(Random(self._random.random()))) for _ in range(CLIENTS)]
            await asyncio.wait(clients)
            beside.cancel()
        self.quiets.append(await self._settled())

    async def _client(self, random: Random) -> None:
        async with self._connected() as client:
            while time.monotonic() < self._until:
                cards = [card for card in (*deck(), *leavers()) for _ in range(card.times)]
                random.shuffle(cards)
                for card in cards:
                    if time.monotonic() >= self._until:
                        break
                    begun = time.monotonic()
                    ending = await _played(card, client, random)
                    self.tally.note(card, ending, seconds=time.monotonic() - begun)
                    self._kill_now_and_then()

    def _kill_now_and_then(self) -> None:
        if self.tally.requests < self._next_kill:
            return
        engines = self._server.engines()
        if engines:
            self._next_kill += KILL_EVERY
            victim = self._random.choice(engines)
            try:
                victim.kill()
            except psutil.NoSuchProcess:
                return
            self.tally.kills += 1

    async def _look(self) -> None:
        async with self._connected() as client:
            while True:
                for path, seconds in self.tally.looks.items():
                    begun = time.monotonic()
                    (await client.get(path)).raise_for_status()
                    seconds.append(time.monotonic() - begun)
                await asyncio.sleep(_TICK)

    async def _settled(self) -> Quiet:
        """Load both models and wait until the server holds no more than at the first time, or will not do so."""
        async with self._connected() as client:
            for path, body in (
                ("/api/generate", {"model": CHAT, "prompt": "Hi", "stream": False, "options": {"num_predict": 1}}),
                ("/api/embed", {"model": EMBEDDING, "input": "Hi"}),
            ):
                for _ in range(3):  # A killed engine may only be found out now.
                    if (await client.post(path, json=body)).is_success:
                        break
        deadline = time.monotonic() + _SETTLE
        before: tuple[int, ...] = ()
        while True:
            quiet = await self._server.quiet(at=time.monotonic() - self._begun, requests=self.tally.requests)
            now = counts(quiet)
            least = counts(self.quiets[0]) if self.quiets else before
            if (least and not grown(least, now)) or time.monotonic() > deadline:
                return quiet
            before = now
            await asyncio.sleep(_TICK)

    def _connected(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self._server.url, timeout=PATIENCE, trust_env=False)


def counts(quiet: Quiet) -> tuple[int, ...]:
    """Return what must be the same whenever nothing is asked."""
    return (quiet.descriptors, quiet.tasks, quiet.generators, quiet.children, quiet.zombies)


def grown(least: tuple[int, ...], now: tuple[int, ...]) -> bool:
    """Whether any of the counts is higher than it was."""
    return any(later > earlier for earlier, later in zip(least, now, strict=True))


async def _played(card: Card, client: httpx2.AsyncClient, random: Random) -> Ending:
    try:
        return await card.play(client, random)
    except httpx2.HTTPError as error:
        return Ending("lost", f"{type(error).__name__}: {error}")
