"""The plan: what stays word for word."""

from hypothesis import given
from hypothesis import strategies as st

from diglot.core.compaction.plan import closed, cuts, plan_of, reference
from diglot.core.compaction.window import is_kept
from diglot.core.items import Item, Message, Text, ToolCall, ToolResult, said
from tests.core.compaction.transcripts import talk, transcripts


def test_a_call_without_a_result_must_stay() -> None:
    items = (*talk(), ToolCall("c", "shell", "{}"))
    assert 8 in plan_of(items).forced


def test_the_last_call_and_its_result_must_stay_while_nothing_has_followed_up_on_it() -> None:
    assert plan_of(talk()).forced == (6, 7)


def test_what_was_followed_up_on_may_go() -> None:
    items = (*talk(), said("assistant", "done"))
    assert plan_of(items).forced == ()


def test_a_user_message_does_not_count_as_following_up() -> None:
    assert plan_of((*talk(), said("user", "and?"))).forced == (6, 7)


def test_parallel_calls_that_just_came_back_stay_together() -> None:
    calls: tuple[Item, ...] = (ToolCall("x", "f", "{}"), ToolCall("y", "g", "{}"))
    results: tuple[Item, ...] = (ToolResult("y", (Text("2"),)), ToolResult("x", (Text("1"),)))
    assert plan_of((said("user", "go"), *calls, *results)).forced == (1, 2, 3, 4)


@given(transcripts(), st.data())
def test_calls_and_results_are_never_separated(items: tuple[Item, ...], data: st.DataObject) -> None:
    plan = plan_of(items)
    wanted = data.draw(st.sets(st.sampled_from(plan.optional))) if plan.optional else set()
    chosen = closed(items, {*plan.forced, *wanted})
    for index in chosen:
        item = items[index]
        if isinstance(item, ToolCall | ToolResult):
            halves = {
                other
                for other, each in enumerate(items)
                if isinstance(each, ToolCall | ToolResult) and each.call_id == item.call_id
            }
            assert halves <= chosen


@given(transcripts())
def test_what_stays_anyway_is_neither_forced_nor_offered(items: tuple[Item, ...]) -> None:
    plan = plan_of(items)
    assert not any(is_kept(items[index]) for index in (*plan.forced, *plan.optional))
    assert not set(plan.forced) & set(plan.optional)


def test_references_count_from_one_in_six_digits() -> None:
    assert (reference(0), reference(41)) == ("item_000001", "item_000042")
    assert isinstance(talk()[0], Message)


@given(transcripts())
def test_no_cut_parts_a_call_from_its_result_and_every_other_place_is_one(items: tuple[Item, ...]) -> None:
    places = cuts(items)
    assert not items or places[-1] == len(items)
    for place in range(1, len(items) + 1):
        before = {item.call_id for item in items[:place] if isinstance(item, ToolCall)}
        after = {item.call_id for item in items[place:] if isinstance(item, ToolResult)}
        assert (place in places) == (not before & after)


def test_an_id_that_is_used_again_does_not_bind_everything_between() -> None:
    pair: tuple[Item, ...] = (ToolCall("1", "f", "{}"), ToolResult("1", (Text("x"),)))
    assert cuts((*pair, said("assistant", "and"), *pair)) == (2, 3, 5)
