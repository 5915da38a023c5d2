"""The vigil: whether a child that owes answers is still at work on them.

A process can be there and never answer again: stopped, caught in an endless loop of a grammar, waiting for a disk that
is gone. Its connections stay open, so nothing else notices. While something is owed, the child is therefore asked
for its slots, which llama.cpp tells between two batches, in the same loop that makes the answers; its `/health` is
answered beside that loop and says nothing of it. Neighbours: `engine` sends through this, `process` is who is given up.

Invariants: a child that owes nothing is not asked; one that answers within `patience` seconds is never given up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from diglot.engines.peer.transport import ConnectionLost, Method, Reply, Transport, read_all

_QUESTIONS = 4  # In the time that it has: it is seldom asked, and a hang seldom seen much later than it could be.
_MAX_REPLY = 1 << 20


class Vigil:
    """A transport over another one; `give_up` is called once where the server does not answer for `patience` seconds."""

    def __init__(self, transport: Transport, *, patience: float, give_up: Callable[[], None]) -> None:
        self._transport = transport
        self._patience = patience
        self._give_up = give_up
        self._owed = 0
        self._watch: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def send(self, method: Method, path: str, body: bytes = b"") -> AsyncIterator[Reply]:
        """Send, and watch until the answer has come or was left."""
        self._owed += 1
        if self._watch is None:
            self._watch = asyncio.create_task(self._keep(), name="vigil")
        try:
            async with self._transport.send(method, path, body) as reply:
                yield reply
        finally:
            self._owed -= 1
            if not self._owed:
                self._watch.cancel()
                self._watch = None

    async def close(self) -> None:
        """Give back the connections."""
        await self._transport.close()

    async def _keep(self) -> None:
        with contextlib.suppress(TimeoutError):
            while True:
                await asyncio.sleep(self._patience / _QUESTIONS)
                async with asyncio.timeout(self._patience):
                    await self._sign_of_life()
        self._give_up()

    async def _sign_of_life(self) -> None:
        """Return once it has answered. One that is dead is found out by those who wait for it."""
        while True:
            try:
                async with self._transport.send("GET", "/slots") as reply:
                    await read_all(reply, limit=_MAX_REPLY)
                    return
            except ConnectionLost:
                await asyncio.sleep(self._patience / _QUESTIONS)
