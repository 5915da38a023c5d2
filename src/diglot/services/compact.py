"""Compact: a conversation folded into one item, with three doors and one way.

Whoever asks (an endpoint, a trigger, a threshold), this is what happens: the model is asked for the meaning
(`services.summarise`), code takes the record of facts from the items (`core.compaction.record`), what is still
going on stays word for word, and all of it goes into one envelope that fits its budget. What a person or the
system said is not touched.

Invariant: either a compaction comes out, that makes the prompt shorter unless it was small, or a fault, and nothing has
changed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec.structs import replace

from diglot.core.compaction.abridge import abridged, length_of
from diglot.core.compaction.budget import Budget, budget_of
from diglot.core.compaction.envelope import Summary
from diglot.core.compaction.plan import closed, plan_of
from diglot.core.compaction.record import Record, read_summary, record_of, write_record, write_summary
from diglot.core.compaction.window import is_kept, is_shown_summary, shown
from diglot.core.errors import NothingGained
from diglot.core.events import Compacted, Event
from diglot.core.items import Compaction, Item, Message, ToolResult
from diglot.core.ports import Engine
from diglot.core.request import Conversation, Generation
from diglot.services.envelopes import Envelopes
from diglot.services.keeping import kept_within
from diglot.services.summarise import Summarise, Told

log = logging.getLogger(__name__)

_ENOUGH = 0.9  # A result larger than this share of what it stands for is no gain.
_LEAST_GAIN = 128
_SHORTEST_RECORD = 200
_SHRINK = 0.95
_CHARACTERS_PER_TOKEN = 3.3


class Compact:
    """Folds conversations up."""

    def __init__(self, envelopes: Envelopes) -> None:
        self._envelopes = envelopes

    async def __call__(
        self, engine: Engine, request: Generation, *, threshold: int | None = None
    ) -> AsyncGenerator[Event]:
        """Yield progress, then one `Compacted`.

        `request` holds the conversation as a model is shown it. Raises `NothingGained` and `CompactionFailed`.
        """
        items = _items(request)
        plan = plan_of(items)
        kept = await kept_within(engine, request, tuple(item for item in items if is_kept(item)))
        before = await engine.count(request)
        fixed = await engine.count(_with(request, kept)) if kept else 0
        budget = budget_of(window=engine.window, fixed=fixed, before=before, threshold=threshold)
        if len(kept) == len(items) or (budget.whole < _LEAST_GAIN and not budget.small):
            raise NothingGained(before=before, after=before)
        summarise = Summarise(engine, request, plan=plan, budget=budget)
        async with aclosing(summarise()) as progress:
            async for step in progress:
                yield step
        told = summarise.told
        measure = _Measure(engine, request, kept=kept, fixed=fixed)
        retained = await _retained(items, plan.forced, told, budget=budget, measure=measure)
        item, after = await self._written(items, told, retained, budget=budget, measure=measure)
        if after > before * _ENOUGH and not budget.small:
            raise NothingGained(before=before, after=after)
        log.info("compacted %d tokens to %d, the window has %d", before, after, engine.window)
        users = tuple(each for each in kept if isinstance(each, Message) and each.role == "user")
        yield Compacted(item=item, kept=users, before=before, after=after, usage=told.usage)

    async def _written(
        self, items: tuple[Item, ...], told: Told, retained: tuple[Item, ...], *, budget: Budget, measure: _Measure
    ) -> tuple[Compaction, int]:
        """Write the envelope with as much of the record as the budget holds; return it and the size of the prompt then."""
        record = record_of(_without(items, retained), previous_record(items))
        room = budget.whole - (await measure(retained) - measure.fixed if retained else 0)
        characters = max(_SHORTEST_RECORD, int(room * _CHARACTERS_PER_TOKEN) - len(told.prose))
        while True:
            text = write_summary(write_record(record, characters=characters), told.prose)
            item = self._envelopes.write(Summary(text, retained))
            after = await measure(shown(item.payload, Summary(text, retained)))
            taken = after - measure.fixed
            if taken <= budget.whole or characters == _SHORTEST_RECORD:
                return item, after
            characters = max(_SHORTEST_RECORD, int(characters * min(_SHRINK, _SHRINK * budget.whole / taken)))


class _Measure:
    """Counts the tokens of a prompt that holds the kept messages and something else."""

    def __init__(self, engine: Engine, request: Generation, *, kept: tuple[Item, ...], fixed: int) -> None:
        self._engine = engine
        self._request = request
        self._kept = kept
        self.fixed = fixed

    async def __call__(self, items: tuple[Item, ...]) -> int:
        return await self._engine.count(_with(self._request, (*self._kept, *items)))


async def _retained(
    items: tuple[Item, ...], forced: tuple[int, ...], told: Told, *, budget: Budget, measure: _Measure
) -> tuple[Item, ...]:
    """Return the items that stay word for word, within the budget: the forced ones, then the model's choice, newest first."""
    must = [items[index] for index in forced]
    longest = max((length_of(item) for item in must), default=0)
    while must and longest > _SHORTEST_RECORD and await measure(tuple(must)) - measure.fixed > budget.retained:
        longest //= 2
        must = [abridged(item, longest) if isinstance(item, ToolResult) else item for item in must]
    chosen = dict(zip(forced, must, strict=True))
    for index in sorted(told.retain, reverse=True):
        group = {each: items[each] for each in closed(items, (index,)) if each not in chosen}
        tried = chosen | group
        if await measure(_in_order(tried)) - measure.fixed <= budget.retained // 2:
            chosen = tried
    return _in_order(chosen)


def _in_order(chosen: dict[int, Item]) -> tuple[Item, ...]:
    return tuple(chosen[index] for index in sorted(chosen))


def previous_record(items: tuple[Item, ...]) -> Record | None:
    """Return the record that the last compaction left in the conversation."""
    for item in items:
        if isinstance(item, ToolResult) and is_shown_summary(item):
            record, _ = read_summary(item.text)
            return record
    return None


def _without(items: tuple[Item, ...], retained: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the items that are folded up: not the old summary, not what stays word for word."""
    stays = {id(item) for item in retained}
    return tuple(item for item in items if id(item) not in stays and not is_shown_summary(item))


def _items(request: Generation) -> tuple[Item, ...]:
    assert isinstance(request.prompt, Conversation)  # noqa: S101
    return request.prompt.items


def _with(request: Generation, items: tuple[Item, ...]) -> Generation:
    return replace(request, prompt=Conversation(items))
