"""Summarise: a conversation's meaning in the model's own words, whatever its length.

Where everything fits the window, the live conversation is asked as it stands, with the instruction last, so that
it comes from the KV cache. Where it does not, it is folded: chunk after chunk, each with the summary of what
came before, so that no item goes unseen. The answer is forced by a schema; where it still cannot be used
(an engine without schemas, an answer cut off) it is asked for again, shorter, three times at most.

Neighbours: `core.compaction.prompt` for the words, `services.compact` for what becomes of the answer.

Invariant: every item stands in exactly one chunk, in order.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from msgspec.structs import replace

from diglot.core.assemble import Assembly
from diglot.core.compaction.abridge import abridged, length_of
from diglot.core.compaction.budget import Budget, shorter
from diglot.core.compaction.envelope import Summary
from diglot.core.compaction.plan import Plan
from diglot.core.compaction.prompt import Asked, InvalidSummary, answer_format, instruction, offered, read_answer
from diglot.core.compaction.window import shown
from diglot.core.errors import CompactionFailed
from diglot.core.events import Progress, Usage
from diglot.core.items import Item, Message, ToolResult
from diglot.core.ports import Engine
from diglot.core.request import Conversation, Generation, Sampling, ToolChoice
from diglot.core.result import Result

log = logging.getLogger(__name__)

_ATTEMPTS = 3
_WARMER = 0.4


class Told(msgspec.Struct, frozen=True):
    """The model's text, the positions of the items it wants to keep, and what asking has cost."""

    prose: str
    retain: tuple[int, ...]
    usage: Usage


class Summarise:
    """Asks one engine about one conversation. Iterate it for progress, then read `told`."""

    def __init__(self, engine: Engine, request: Generation, *, plan: Plan, budget: Budget) -> None:
        assert isinstance(request.prompt, Conversation)  # noqa: S101
        self._engine = engine
        self._request = request
        self._items = request.prompt.items
        self._budget = budget
        self._offered = offered(self._items, plan.optional, budget.offers)
        self._usage = Usage()
        self.told = Told("", (), self._usage)

    async def __call__(self) -> AsyncGenerator[Progress]:
        """Yield progress while the model reads and writes. `CompactionFailed` after three bad answers to a chunk."""
        prose, start = "", 0
        retain: list[int] = []
        while start < len(self._items):
            chunk, end = await self._chunk(start, prose)
            ids = tuple(index for index in self._offered if start <= index < end)
            asking = _Asking(self._engine, self._request, budget=self._budget, items=self._items, ids=ids)
            async with aclosing(asking(chunk)) as progress:
                async for step in progress:
                    yield step
            prose = asking.asked.summary
            retain += asking.asked.retain
            self._usage = Usage(
                input=self._usage.input + asking.usage.input,
                output=self._usage.output + asking.usage.output,
                cached=self._usage.cached + asking.usage.cached,
            )
            start = end
        self.told = Told(prose, tuple(retain), self._usage)

    async def _chunk(self, start: int, prose: str) -> tuple[tuple[Item, ...], int]:
        """Return the prompt for the longest run of items from `start` that fits, and where it ends."""
        whole = self._prompt(start, len(self._items), prose)
        if await self._fits(whole):
            return whole, len(self._items)
        low, high = start + 1, len(self._items) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if await self._fits(self._prompt(start, middle, prose)) else (low, middle - 1)
        end = self._whole_pairs(start, low)
        prompt = self._prompt(start, end, prose)
        characters = length_of(self._items[start])
        while end == start + 1 and characters > _SHORTEST and not await self._fits(prompt):
            characters //= 2
            prompt = self._prompt(start, end, prose, characters=characters)
        log.debug("folding items %d to %d of %d", start, end, len(self._items))
        return prompt, end

    def _prompt(self, start: int, end: int, prose: str, *, characters: int | None = None) -> tuple[Item, ...]:
        """Return what the model is shown of items `start` to `end`: the system text, the summary so far, the items."""
        chunk = self._items[start:end]
        if characters is not None:
            chunk = tuple(abridged(item, characters) for item in chunk)
        if not start:
            return chunk
        system = tuple(item for item in self._items[:start] if isinstance(item, Message) and item.role in _SYSTEM)
        return (*system, *shown(prose, Summary(prose)), *chunk)

    def _whole_pairs(self, start: int, end: int) -> int:
        """Move the end of a chunk back so that results stay with their calls, if anything is left then."""
        if end == len(self._items):
            return end
        back = end
        while back > start + 1 and isinstance(self._items[back], ToolResult):
            back -= 1
        return back if back > start + 1 or not isinstance(self._items[end], ToolResult) else end

    async def _fits(self, items: tuple[Item, ...]) -> bool:
        question = instruction(self._items, self._offered, characters=self._budget.prose)
        request = replace(self._request, prompt=Conversation((*items, question)))
        room = self._engine.window - self._budget.answer
        return await self._engine.count(request) <= room


_SYSTEM = ("system", "developer")
_SHORTEST = 200


class _Asking:
    """Asks about one chunk until the answer can be used."""

    def __init__(
        self, engine: Engine, request: Generation, *, budget: Budget, items: tuple[Item, ...], ids: tuple[int, ...]
    ) -> None:
        self._engine = engine
        self._request = request
        self._budget = budget
        self._items = items
        self._ids = ids
        self.asked = Asked("", ())
        self.usage = Usage()

    async def __call__(self, chunk: tuple[Item, ...]) -> AsyncGenerator[Progress]:
        problem = ""
        for attempt in range(_ATTEMPTS):
            assembly = Assembly()
            async with aclosing(self._engine.generate(self._question(chunk, attempt, problem))) as events:
                async for event in events:
                    assembly.feed(event)
                    if isinstance(event, Progress):
                        yield event
            result = assembly.result()
            self.usage = self.usage.plus(result.usage)
            try:
                self.asked = read_answer(_text(result), self._ids)
            except InvalidSummary as error:
                problem = str(error)
                log.info("summary attempt %d could not be used: %s", attempt + 1, problem)
            else:
                return
        raise CompactionFailed(f"the model gave no usable summary in {_ATTEMPTS} attempts ({problem})")

    def _question(self, chunk: tuple[Item, ...], attempt: int, problem: str) -> Generation:
        characters = shorter(self._budget, attempt)
        question = instruction(self._items, self._ids, characters=characters, problem=problem)
        return replace(
            self._request,
            prompt=Conversation((*chunk, question)),
            tool_choice=ToolChoice(),
            format=answer_format(self._ids, characters=characters),
            sampling=Sampling(temperature=_WARMER * attempt, seed=attempt, max_tokens=self._budget.answer),
            think=False if self._request.think is not None else None,
            must_think=False,
            choices=1,
            logprobs=None,
            compacting=None,
        )


def _text(result: Result) -> str:
    return result.choices[0].text if result.choices else ""
