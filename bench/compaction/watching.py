"""An engine that is watched: what it was asked, what it answered and what that cost, whoever asks.

Everything else it passes on. All ways are measured by the same one, so that none can leave anything out. `Quiet` does
not ask the model at all: what code keeps does not depend on what the model says, only on how long it is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import msgspec

from diglot.core.assemble import Assembly
from diglot.core.events import Event, Finished, Started, TextDelta
from diglot.core.items import Item
from diglot.core.model import Capabilities
from diglot.core.ports import Engine
from diglot.core.request import Conversation, Embedding, Generation, JsonSchema, Rerank
from diglot.core.result import Embedded, Ranked, Result

_PROSE: Final = "The agent read the code, ran the tests, changed some files and follows what the user said. "


class Answered(msgspec.Struct, frozen=True):
    """A question and what came of it."""

    items: tuple[Item, ...]
    result: Result


class Watched:
    """Implements `core.ports.Engine` by another one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.answers: list[Answered] = []
        self.counts = 0

    def forget(self) -> None:
        """Begin anew."""
        self.answers, self.counts = [], 0

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return self._engine.capabilities

    @property
    def window(self) -> int:
        """The context window, in tokens."""
        return self._engine.window

    @property
    def slots(self) -> int:
        """How many answers it makes at the same time."""
        return self._engine.slots

    @property
    def alive(self) -> bool:
        """Whether it can still answer."""
        return self._engine.alive

    @property
    def memory(self) -> int:
        """Bytes that it takes up."""
        return self._engine.memory

    @property
    def accelerator_memory(self) -> int:
        """Bytes of it that are on an accelerator."""
        return self._engine.accelerator_memory

    async def generate(self, request: Generation) -> AsyncGenerator[Event]:
        """Answer a request, and remember it once it is answered."""
        assembly = Assembly()
        async with aclosing(self._engine.generate(request)) as events:
            async for event in events:
                assembly.feed(event)
                yield event
        items = request.prompt.items if isinstance(request.prompt, Conversation) else ()
        self.answers.append(Answered(items, assembly.result()))

    async def count(self, request: Generation) -> int:
        """Return the tokens of a prompt."""
        self.counts += 1
        return await self._engine.count(request)

    async def embed(self, request: Embedding) -> Embedded:
        """Return vectors."""
        return await self._engine.embed(request)

    async def rerank(self, request: Rerank) -> Ranked:
        """Return scores."""
        return await self._engine.rerank(request)

    async def close(self) -> None:
        """End it."""
        await self._engine.close()


class Quiet(Watched):
    """Counts as the model does, and answers by itself, as long and with as many items chosen as it may."""

    async def generate(self, request: Generation) -> AsyncGenerator[Event]:
        """Answer a request without the model."""
        yield Started(input_tokens=0)
        if isinstance(request.format, JsonSchema):
            fields = request.format.schema["properties"]
            longest, chosen = fields["summary"]["maxLength"], fields["retain_item_ids"]
            prose = (_PROSE * (longest // len(_PROSE) + 1))[:longest]
            names = list(chosen["items"].get("enum", []))[: chosen["maxItems"]]
            yield TextDelta(msgspec.json.encode({"summary": prose, "retain_item_ids": names}).decode())
        yield Finished("stop")
