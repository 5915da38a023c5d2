"""A whole house in this process: both dialects over the real services, an engine that stops where a test wants, a census."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from http import HTTPStatus
from typing import Any, Final

import msgspec
import psutil
from msgspec.structs import replace

from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.openai import DIALECT as OPENAI
from diglot.http.application import Access, build_application
from diglot.state.responses import Scratch
from tests.http.talk import Talk
from tests.http.world import Exchange
from tests.http.world import World as HttpWorld
from tests.services.world import settle

MESSAGES: Final = [{"role": "user", "content": "hi"}]


class Entrance(msgspec.Struct, frozen=True):
    """An operation that makes an answer: its path, what it is asked, whether it streams."""

    path: str
    body: dict[str, Any]
    streams: bool = True

    def asked(self, *, stream: bool, model: str = "chat") -> bytes:
        """Return a request."""
        return json.dumps(self.body | {"model": model, "stream": stream}).encode()


ENTRANCES: Final = (
    Entrance("/api/chat", {"messages": MESSAGES}),
    Entrance("/api/generate", {"prompt": "hi"}),
    Entrance("/v1/chat/completions", {"messages": MESSAGES}),
    Entrance("/v1/completions", {"prompt": "hi"}),
    Entrance("/v1/responses", {"input": "hi"}),
)
VECTORS: Final = (
    Entrance("/api/embed", {"input": "hi"}, streams=False),
    Entrance("/v1/embeddings", {"input": "hi"}, streams=False),
)


class Stop:
    """A gate that lets so many pass and holds the next. Stands in for the event that an engine waits for."""

    def __init__(self, after: int) -> None:
        self._left = after
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def wait(self) -> None:
        """Pass, or be held."""
        self._left -= 1
        if self._left < 0:
            self.reached.set()
            await self.open.wait()


class House(HttpWorld):
    """The services and the application over them. Nobody is in it before the first request."""

    def __init__(self) -> None:
        super().__init__(queue=2)
        self.http = replace(self.http, scratch=Scratch)
        self.application = build_application((OLLAMA, OPENAI), self.http, access=Access())
        self.models = self.store.models
        self.before = self.census()

    def census(self) -> Counter[str]:
        """Count whoever could be left behind."""
        residency = self.residency
        return Counter(
            tasks=sum(task is not asyncio.current_task() for task in asyncio.all_tasks()),
            answers=self.busy,
            leases=sum(each.users for each in residency._residents.values()),  # noqa: SLF001  nothing else shows a leak
            turnstiles=len(residency._turnstiles),  # noqa: SLF001
            models=len(residency._residents),  # noqa: SLF001
            engines=len(self.loader.open),
            files=sum(residency._files.values()),  # noqa: SLF001
            descriptors=psutil.Process().num_fds(),
            children=len(psutil.Process().children(recursive=True)),
        )

    async def at_rest(self) -> None:
        """Let the time of every model pass, and see that nobody is left."""
        await settle()
        assert not self.busy
        assert not any(each.users for each in self.residency._residents.values())  # noqa: SLF001
        await self.clock.advance(1e6)
        for _ in range(1000):
            if self.census() <= self.before:
                break
            await asyncio.to_thread(bool)  # The last to know may be a thread of the pool.
            await settle()
        assert self.census() <= self.before  # Fewer where what a test before left to the collector of garbage is gone.

    def call(self, entrance: Entrance, *, stream: bool, model: str = "chat", unfinished: bool = False) -> Exchange:
        """Begin a request."""
        body = entrance.asked(stream=stream, model=model)
        pieces = [body[:-9], body[-9:-5]] if unfinished else [body]
        return Exchange(self.application, "POST", entrance.path, pieces, unfinished=unfinished)

    def talk(self) -> Talk:
        """Open a WebSocket."""
        return Talk(self.application, path="/v1/responses")

    def hold(self, *, after: int = 0) -> Stop:
        """Have the engine stop before the event of that number, counted from now."""
        stop = Stop(after)
        self.engine.gate = stop  # type: ignore[assignment]  # All that the engine does is wait.
        return stop

    async def answers(self, entrance: Entrance) -> None:
        """See that whoever comes next is answered in full."""
        self.engine.gate = asyncio.Event()
        self.engine.gate.set()
        for stream in (False, True) if entrance.streams else (False,):
            next_one = self.call(entrance, stream=stream, model=self.engine.model.name)
            await next_one.task
            assert answered(next_one)


def answered(exchange: Exchange) -> bool:
    """Whether a whole answer has come, or a stream to its end."""
    return exchange.status == HTTPStatus.OK and not exchange.sent[-1].get("more_body", False)


LAST: Final = 4
"""The number of the last event of an answer: progress, the start, two pieces of text, the end."""


def message(text: str = "hi") -> dict[str, Any]:
    """Return a request as it goes over a WebSocket."""
    return {"type": "response.create", "model": "chat", "input": text}
