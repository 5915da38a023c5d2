"""Summarise: a conversation's meaning in the model's own words, whatever its length.

Where everything fits the window, the live conversation is asked as it stands, with the instruction last, so that
it comes from the KV cache. Where it does not, it is folded: piece after piece, each with the summary of what
came before, so that no item goes unseen. Neighbours: `services.chunking` cuts the pieces, `services.asking` asks,
`services.compact` says what becomes of the answer.

Invariant: a conversation is never too long; an engine that finds a piece too long gets a shorter one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from diglot.core.errors import ContextExceeded
from diglot.core.events import Progress, Usage
from diglot.core.items import Item
from diglot.core.ports import Engine
from diglot.core.request import Generation
from diglot.services.asking import Asking
from diglot.services.chunking import Chunks


class Told(msgspec.Struct, frozen=True):
    """The model's text, the positions of the items it wants to keep, and what asking has cost."""

    prose: str
    retain: tuple[int, ...]
    usage: Usage


class Summarise:
    """Asks one engine about one conversation. Iterate it for progress, then read `told`."""

    def __init__(self, engine: Engine, request: Generation, *, items: tuple[Item, ...], chunks: Chunks) -> None:
        self._asking = Asking(engine, request, items)
        self._chunks = chunks
        self._end = len(items)
        self.told = Told("", (), Usage())

    async def __call__(self) -> AsyncGenerator[Progress]:
        """Yield progress while the model reads and writes. `CompactionFailed` after three bad answers to a piece."""
        start = 0
        while start < self._end:
            chunk = await self._chunks.next(start, self.told.prose)
            try:
                async with aclosing(self._asking(chunk)) as progress:
                    async for step in progress:
                        yield step
            except ContextExceeded as fault:
                if not self._chunks.narrow(fault):
                    raise
                continue
            asked, usage = self._asking.asked, self._asking.usage
            self.told = Told(
                prose=asked.summary,
                retain=(*self.told.retain, *asked.retain),
                usage=Usage(
                    input=self.told.usage.input + usage.input,
                    output=self.told.usage.output + usage.output,
                    cached=self.told.usage.cached + usage.cached,
                ),
            )
            start = chunk.end
