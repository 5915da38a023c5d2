"""Tally: how many tokens the prompts of one conversation have, each counted only once.

Every count is a round trip in which the engine reads the whole prompt, so that nothing here counts what is known
already or what a bound settles. It lives as long as one request is worked on.

Invariant: what it returns was counted by the engine; only `at_most` is reckoned, and never too low.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from diglot.core.errors import ContextExceeded
from diglot.core.items import Item, Message, Text
from diglot.core.ports import Engine
from diglot.core.request import Conversation, Generation

_AROUND = 32  # What a chat template puts around a message, generously.


class Tally:
    """Counts prompts that differ from a request in their items only."""

    def __init__(self, engine: Engine, request: Generation) -> None:
        self._engine = engine
        self._request = request
        self._known: dict[tuple[Item, ...], int] = {(): 0}

    @property
    def window(self) -> int:
        """The window of the engine, in tokens."""
        return self._engine.window

    async def __call__(self, items: tuple[Item, ...]) -> int:
        """Return the tokens of the prompt; where an engine refuses to count a prompt that is too long, more than fit."""
        known = self._known.get(items)
        if known is None:
            try:
                known = await self._engine.count(replace(self._request, prompt=Conversation(items)))
            except ContextExceeded as fault:
                known = max(fault.tokens, self.window + 1)
            self._known[items] = known
        return known


def at_most(messages: Iterable[Item]) -> int | None:
    """Return how many tokens messages can have at most: each has a byte at least. None where there is no telling."""
    total = 0
    for item in messages:
        if not isinstance(item, Message) or not all(isinstance(part, Text) for part in item.content):
            return None
        total += len(item.text.encode("utf-8", "surrogatepass")) + _AROUND
    return total
