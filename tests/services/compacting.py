"""Engines that are watched, or odd in one way, for the tests of compaction."""

# ruff: noqa: D102  the port says what its methods do

from collections.abc import AsyncGenerator
from contextlib import aclosing

from diglot.core.errors import ContextExceeded, InvalidField
from diglot.core.events import Event
from diglot.core.items import Item
from diglot.core.request import Conversation, Generation, JsonSchema, LoadOptions
from diglot.engines.scripted.engine import ScriptedEngine
from diglot.engines.scripted.loader import ScriptedLoader
from diglot.engines.scripted.script import Reply, Script
from tests.services.world import model


def items_of(request: Generation) -> tuple[Item, ...]:
    """Return the conversation of a request."""
    assert isinstance(request.prompt, Conversation)
    return request.prompt.items


class OddEngine(ScriptedEngine):
    """Remembers what it was asked and how often it counted.

    `schemas`: it takes them. `real_window`: how much it really reads, whatever it says. `counts_all`: it counts
    prompts that are too long, too.
    """

    asked: list[Generation]
    counted: list[int]
    schemas = True
    real_window = 1 << 40
    counts_all = True

    async def generate(self, request: Generation) -> AsyncGenerator[Event]:
        if not self.schemas and isinstance(request.format, JsonSchema):
            raise InvalidField("response_format", "this server knows no schema")
        if (tokens := await super().count(request)) > self.real_window:
            raise ContextExceeded(tokens=tokens, window=self.real_window)
        self.asked.append(request)
        async with aclosing(super().generate(request)) as events:
            async for event in events:
                yield event

    async def count(self, request: Generation) -> int:
        tokens = await super().count(request)
        self.counted.append(tokens)
        if not self.counts_all and tokens > self.window:
            raise ContextExceeded(tokens=0, window=self.window)
        return tokens


async def odd_engine(window: int, *replies: Reply) -> OddEngine:
    """Return an engine that plays the replies."""
    loaded = await ScriptedLoader(Script(window=window, replies=replies or (Reply(echo=True),))).load(
        model(), LoadOptions(), lambda _done, _total: None
    )
    loaded.__class__ = OddEngine
    assert isinstance(loaded, OddEngine)
    loaded.asked, loaded.counted = [], []
    return loaded
