"""Compact: a conversation folded into one item, with three doors and one way.

Whoever asks (an endpoint, a trigger, a threshold), this is what happens: the model is asked for the meaning
(`services.summarise`), code takes the record of facts from the items (`core.compaction.record`), what is still
going on stays word for word (`services.retaining`), and all of it goes into one envelope that fits its budget
(`services.fitting`). What a person or the system said is not touched (`services.keeping`).

Invariant: either a compaction comes out, that makes the prompt shorter unless it was small, or a fault, and nothing has
changed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from diglot.core.compaction.abridge import length_of
from diglot.core.compaction.budget import Budget, budget_of
from diglot.core.compaction.plan import Plan, plan_of
from diglot.core.compaction.prompt import offered
from diglot.core.compaction.record import Record, read_summary, record_of
from diglot.core.compaction.window import is_kept, is_shown_summary
from diglot.core.errors import NothingGained
from diglot.core.events import Compacted, Event
from diglot.core.items import Item, Message, ToolCall, ToolResult
from diglot.core.ports import Engine
from diglot.core.request import Conversation, Generation
from diglot.services.chunking import Chunks
from diglot.services.envelopes import Envelopes
from diglot.services.fitting import Fitting
from diglot.services.keeping import kept_within
from diglot.services.retaining import Retained
from diglot.services.summarise import Summarise
from diglot.services.tally import Tally

log = logging.getLogger(__name__)

_ENOUGH = 0.9  # A result larger than this share of what it stands for is no gain.
_LEAST_GAIN = 128
_DENSITIES = (0.5, 6.0)


class Compact:
    """Folds conversations up."""

    def __init__(self, envelopes: Envelopes) -> None:
        self._envelopes = envelopes

    async def __call__(
        self, engine: Engine, request: Generation, *, threshold: int | None = None, tally: Tally | None = None
    ) -> AsyncGenerator[Event]:
        """Yield progress, then one `Compacted`.

        `request` holds the conversation as a model is shown it, `tally` what is known of its length. Raises
        `NothingGained` and `CompactionFailed`.
        """
        tally = tally or Tally(engine, request)
        items = _items(request)
        plan = plan_of(items)
        sizes = await _measured(tally, items, plan=plan, threshold=threshold)
        budget, before = sizes.budget, sizes.before
        if len(sizes.kept) == len(items) or (budget.whole < _LEAST_GAIN and not budget.small):
            raise NothingGained(before=before, after=before)
        offers = offered(items, plan.optional, budget.offers)
        chunks = Chunks(tally, items, offered=offers, budget=budget, before=before, density=sizes.density)
        summarise = Summarise(engine, request, items=items, chunks=chunks)
        async with aclosing(summarise()) as progress:
            async for step in progress:
                yield step
        told = summarise.told
        choose = Retained(tally, items, kept=sizes.kept, fixed=sizes.fixed, budget=budget, density=sizes.density)
        stays = await choose(plan.forced, told.retain)
        record = record_of(_folded(items, stays), previous_record(items))
        fit = Fitting(
            tally, self._envelopes, kept=sizes.kept, fixed=sizes.fixed, whole=budget.whole, density=sizes.density
        )
        fitted = await fit(record, told.prose, tuple(stays.values()))
        after = sizes.fixed + fitted.taken
        if after > before * _ENOUGH and not budget.small:
            raise NothingGained(before=before, after=after)
        log.info("compacted %d tokens to %d, the window has %d", before, after, engine.window)
        yield Compacted(item=fitted.item, kept=said_by_users(items), before=before, after=after, usage=told.usage)


def said_by_users(items: tuple[Item, ...]) -> tuple[Message, ...]:
    """Return what people said, all of it: a client that is given less would lose it."""
    return tuple(item for item in items if isinstance(item, Message) and item.role == "user")


class _Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversation takes in tokens.

    `kept` are the messages that stay, `fixed` the tokens of the prompt with nothing else, `before` of the prompt with
    everything. `density` is how many characters a token has, of what is not kept.
    """

    kept: tuple[Item, ...]
    fixed: int
    before: int
    density: float
    budget: Budget


async def _measured(tally: Tally, items: tuple[Item, ...], *, plan: Plan, threshold: int | None) -> _Sizes:
    kept = await kept_within(tally, tuple(item for item in items if is_kept(item)))
    before, fixed = await tally(items), await tally(kept)
    stood = 0
    if last := tuple(item for item in items if is_shown_summary(item)):
        stood = await tally((*kept, *last, *(items[index] for index in plan.forced))) - fixed
    characters = sum(length_of(item) for item in items if not is_kept(item))
    low, high = _DENSITIES
    return _Sizes(
        kept=kept,
        fixed=fixed,
        before=before,
        density=min(high, max(low, characters / max(1, before - fixed))),
        budget=budget_of(window=tally.window, fixed=fixed, before=before, stood=stood, threshold=threshold),
    )


def previous_record(items: tuple[Item, ...]) -> Record | None:
    """Return the record that the last compaction left in the conversation."""
    for item in items:
        if isinstance(item, ToolResult) and is_shown_summary(item):
            record, _ = read_summary(item.text)
            return record
    return None


def _folded(items: tuple[Item, ...], stays: dict[int, Item]) -> tuple[Item, ...]:
    """Return the items that are folded up: not the old summary, not what stays word for word, but what is abridged."""
    shortened_ids = {
        item.call_id
        for index, item in enumerate(items)
        if isinstance(item, ToolCall | ToolResult) and index in stays and stays[index] is not item
    }
    return tuple(
        item
        for index, item in enumerate(items)
        if not is_shown_summary(item)
        and (index not in stays or (isinstance(item, ToolCall | ToolResult) and item.call_id in shortened_ids))
    )


def _items(request: Generation) -> tuple[Item, ...]:
    assert isinstance(request.prompt, Conversation)  # noqa: S101
    return request.prompt.items
