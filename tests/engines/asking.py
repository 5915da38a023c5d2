"""Requests as the tests of engines write them, and what came of them."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Any

from diglot.core.assemble import assemble
from diglot.core.events import Event
from diglot.core.items import said
from diglot.core.request import Conversation, Generation, RawPrompt, Residence, Sampling, ToolSpec
from diglot.core.result import Result

WEATHER = ToolSpec(
    name="get_weather",
    description="Tell the weather of a city.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 24}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
        "kind": {"enum": ["cat", "dog"]},
    },
    "required": ["name", "age", "kind"],
    "additionalProperties": False,
}


class CountingIds:
    """Names in order."""

    def __init__(self) -> None:
        self.given = 0

    def new(self) -> str:
        """Return the next one."""
        self.given += 1
        return f"{self.given:024d}"


def asked(text: str, *, most: int | None = 16, seed: int | None = 7, **more: Any) -> Generation:
    """One user message."""
    sampling = more.pop("sampling", None) or Sampling(
        max_tokens=most, seed=seed, temperature=more.pop("temperature", 0.0)
    )
    return Generation(residence=Residence(), prompt=Conversation((said("user", text),)), sampling=sampling, **more)


def raw(content: str | tuple[int, ...], *, most: int = 8, suffix: str | None = None, **more: Any) -> Generation:
    """A prompt without a template."""
    sampling = Sampling(max_tokens=most, temperature=0.0, seed=7)
    return Generation(residence=Residence(), prompt=RawPrompt(content, suffix), sampling=sampling, **more)


async def events_of(stream: AsyncIterable[Event]) -> list[Event]:
    """All events."""
    return [event async for event in stream]


async def result_of(stream: AsyncIterable[Event]) -> Result:
    """All events, folded."""
    return assemble(await events_of(stream))
