"""The ledger: who holds how much of the cache that all slots share.

llama.cpp ends every running answer when the shared cache is full (measured, docs/engines.md), so a request
starts only when what it may grow to fits. Requests wait in the order they came; how many may wait is not decided
here but by admission, which lets no more in than there are slots. Neighbours: `engine` asks before each answer.

Invariant: the sum of what is held is never more than the pool.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator


class Ledger:
    """Shares out `pool` tokens."""

    def __init__(self, pool: int) -> None:
        self._free = pool
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def fits(self, tokens: int) -> bool:
        """Whether so many tokens can be held without waiting."""
        return not self._waiting and tokens <= self._free

    @contextlib.asynccontextmanager
    async def hold(self, tokens: int) -> AsyncIterator[None]:
        """Hold so many tokens, which must not be more than the pool, for as long as the context is open."""
        await self._take(tokens)
        try:
            yield
        finally:
            self._free += tokens
            self._serve()

    async def _take(self, tokens: int) -> None:
        if self.fits(tokens):
            self._free -= tokens
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((tokens, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # The turn had come, and with it the tokens.
                self._free += tokens
            self._serve()
            raise

    def _serve(self) -> None:
        """Let in, from the front, those that fit now. Who was cancelled is passed over."""
        while self._waiting:
            tokens, turn = self._waiting[0]
            if not turn.cancelled():
                if tokens > self._free:
                    return
                self._free -= tokens
                turn.set_result(None)
            self._waiting.popleft()
