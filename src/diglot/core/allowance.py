"""Allowance: how much one request may hold, counted before anything costly is done with it.

A body within its bytes can still hold a hundred thousand messages or tools, and each costs time that nobody else gets.
Dialects count as they read. What a single schema or picture costs is bounded where it is judged (`core.schema`,
`core.images`). Neighbours: `settings` for the numbers in force, `dialects.operation.Wire` carries them.

Invariant: what passes holds no more of anything than its number here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from diglot.core.errors import TooMany
from diglot.core.items import Item, Message, ToolResult, images_of
from diglot.core.request import ToolSpec
from diglot.core.schema import values_of


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers for one request.

    `messages` counts items too, `parts` also the calls and thoughts in messages, and `schema_values` is for the schemas of
    all tools together. `links` says whether pictures may be links.
    """

    messages: int = 10_000
    parts: int = 20_000
    images: int = 128
    tools: int = 1024
    schema_values: int = 100_000
    links: bool = False

    def admit_messages(self, count: int, *, field: str, kind: Literal["messages", "items"] = "messages") -> None:
        """Raise TooMany where there are more of them than may be."""
        if count > self.messages:
            raise TooMany(field, count=count, limit=self.messages, kind=kind)

    def admit_contents(self, items: Iterable[Item], *, field: str) -> None:
        """Raise TooMany where all items together have too many parts or pictures."""
        parts = images = 0
        for item in items:
            if isinstance(item, Message | ToolResult):
                parts += len(item.content)
                images += len(images_of(item.content))
            else:
                parts += 1
        if parts > self.parts:
            raise TooMany(field, count=parts, limit=self.parts, kind="parts")
        if images > self.images:
            raise TooMany(field, count=images, limit=self.images, kind="images")


class Toolbox:
    """Takes in the tools of one request, one by one, wherever they stand in it, up to what its `allowance` says."""

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self._tools = 0
        self._values = 0

    def admit(self, count: int, *, field: str) -> None:
        """Raise TooMany where `count` further tools in `field` would be too many."""
        if (tools := self._tools + count) > self.allowance.tools:
            raise TooMany(field, count=tools, limit=self.allowance.tools, kind="tools")

    def take(self, tool: ToolSpec, *, field: str) -> ToolSpec:
        """Return the tool, which stands in `field`. Raises TooMany where it is one too many, or its schema too much."""
        self.admit(1, field=field)
        self._tools += 1
        self._values += values_of(tool.parameters)
        if self._values > self.allowance.schema_values:
            limit = self.allowance.schema_values
            raise TooMany(field, count=self._values, limit=limit, kind="schema values")
        return tool
