"""What holds for every transcript that is compacted."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from diglot.core.compaction.budget import budget_of
from diglot.core.compaction.record import read_summary
from diglot.core.compaction.window import effective, is_kept, is_shown_summary, shown
from diglot.core.errors import NothingGained
from diglot.core.events import Compacted
from diglot.core.items import Item, Message, Opaque, ToolCall, ToolResult, said
from tests.core.compaction.transcripts import transcripts
from tests.services.compacting import OddEngine, items_of, odd_engine
from tests.services.test_compact import ENVELOPES, asking, compacted, opened

windows = st.integers(900, 2000)
long_transcripts = transcripts(least=20, largest=40).map(
    lambda items: (said("user", "go"), *items, said("assistant", "done"))
)


async def tried(on: OddEngine, items: tuple[Item, ...]) -> Compacted | None:
    """Compact, if it gains anything."""
    try:
        return await compacted(on, items)
    except NothingGained:
        return None


def window_after(items: tuple[Item, ...], done: Compacted) -> tuple[Item, ...]:
    """Return the next request's conversation."""
    kept = [item for item in items if is_kept(item)]
    return effective((*kept, done.item), ENVELOPES.open)


@settings(max_examples=12)
@given(long_transcripts, windows)
def test_the_result_fits_its_budget(items: tuple[Item, ...], window: int) -> None:
    async def play() -> None:
        on = await odd_engine(window)
        done = await tried(on, items)
        if done is None:
            return
        system = tuple(item for item in items if isinstance(item, Message) and item.role in {"system", "developer"})
        fixed = done.after - await taken(on, done)
        budget = budget_of(window=window, fixed=fixed, before=done.before)
        retained = opened(done).retained
        answered = {item.call_id for item in retained if isinstance(item, ToolResult)}
        pending = [item for item in retained if isinstance(item, ToolCall) and item.call_id not in answered]
        most = budget.whole + await on.count(asking(tuple(pending))) if pending else budget.whole
        assert done.after - fixed <= most or budget.whole < 200, system

    async def taken(on: OddEngine, done: Compacted) -> int:
        kept = (*(item for item in items if is_kept(item) and item.role != "user"), *done.kept)  # type: ignore[union-attr]
        order = tuple(item for item in items if item in kept) or kept
        return done.after - (await on.count(asking(order)) if order else 0)

    asyncio.run(play())


@settings(max_examples=12)
@given(long_transcripts, windows)
def test_every_item_is_shown_to_the_model_once_and_in_order_whatever_the_window(
    items: tuple[Item, ...], window: int
) -> None:
    async def play() -> None:
        on = await odd_engine(window)
        if await tried(on, items) is None:
            return
        seen: list[str] = []
        for number, request in enumerate(on.asked):
            asked = list(items_of(request)[:-1])
            if number:  # Past the system text and the summary so far.
                asked = asked[next(at for at, item in enumerate(asked) if is_shown_summary(item)) + 2 :]
            seen += map(mark, asked)
        assert seen == list(map(mark, items))

    asyncio.run(play())


def mark(item: Item) -> str:
    """Return what tells an item from others though it be abridged."""
    text = getattr(item, "text", "") or getattr(item, "arguments", "")
    return f"{type(item).__name__} {getattr(item, 'call_id', '')} {text[:40]}"


@settings(max_examples=10)
@given(long_transcripts, windows)
def test_no_piece_parts_a_call_from_its_result(items: tuple[Item, ...], window: int) -> None:
    async def play() -> None:
        on = await odd_engine(window)
        await tried(on, items)
        all_results = {item.call_id for item in items if isinstance(item, ToolResult)}
        for request in on.asked:
            calls = {item.call_id for item in items_of(request) if isinstance(item, ToolCall)}
            results = {item.call_id for item in items_of(request) if isinstance(item, ToolResult)}
            assert calls & all_results <= results
            assert results <= calls

    asyncio.run(play())


@settings(max_examples=10)
@given(long_transcripts, st.integers(4000, 9000))
def test_however_it_is_cut_into_pieces_the_same_comes_out(items: tuple[Item, ...], window: int) -> None:
    async def play(real: int) -> Any:
        on = await odd_engine(window)
        on.real_window = real
        done = await tried(on, items)
        return done and (done.item.payload, done.kept, done.after)

    assert asyncio.run(play(1 << 40)) == asyncio.run(play(window // 2))


@settings(max_examples=10)
@given(long_transcripts, windows)
def test_compacting_what_was_just_compacted_loses_nothing(items: tuple[Item, ...], window: int) -> None:
    async def play() -> None:
        on = await odd_engine(window)
        first = await tried(on, items)
        if first is None:
            return
        after = window_after(items, first)
        second = await tried(on, after)
        if second is None:
            return
        one, other = read_summary(opened(first).text)[0], read_summary(opened(second).text)[0]
        assert one is not None
        assert other is not None
        assert other.ledger.files == one.ledger.files
        assert set(one.excerpt) <= set(other.excerpt)
        assert second.kept == first.kept

    asyncio.run(play())


@settings(max_examples=10)
@given(long_transcripts)
def test_items_of_an_unknown_kind_before_and_after_survive_byte_for_byte(items: tuple[Item, ...]) -> None:
    async def play() -> None:
        on = await odd_engine(4000)
        unknown = Opaque("future_thing", '{"type":"future_thing","n":1.50,"k":"\\u00e9"}')
        done = await tried(on, (*items, unknown))
        if done is None:
            return
        later = effective((*items, unknown, done.item, unknown), ENVELOPES.open)
        assert later[-1] == unknown
        assert later[-1 - len(shown(done.item.payload, opened(done))) : -1] == shown(done.item.payload, opened(done))
        assert items_of(on.asked[-1])[-2] == unknown

    asyncio.run(play())
