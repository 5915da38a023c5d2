"""What is left out of a conversation is the oldest of what may go, and pairs go together."""

from hypothesis import given
from hypothesis import strategies as st

from diglot.core.items import Item, Message, Text, ToolCall, ToolResult, said
from diglot.core.overflow import removable, without_oldest


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id, "f", "{}")


def result(call_id: str) -> ToolResult:
    return ToolResult(call_id, (Text("r"),))


SYSTEM, ONE, TWO, LAST = said("system", "s"), said("user", "1"), said("assistant", "2"), said("user", "3")


def test_the_oldest_go_first_and_the_system_and_the_last_stay() -> None:
    items = (SYSTEM, ONE, TWO, LAST)
    assert removable(items) == 2
    assert without_oldest(items, 1) == (SYSTEM, TWO, LAST)
    assert without_oldest(items, 9) == (SYSTEM, LAST)


def test_a_result_goes_with_its_call() -> None:
    items = (ONE, call("a"), result("a"), LAST)
    assert without_oldest(items, 1) == (call("a"), result("a"), LAST)
    assert without_oldest(items, 2) == (LAST,)


def test_the_call_of_a_last_result_stays() -> None:
    items = (ONE, call("a"), call("b"), result("a"), result("b"))
    assert removable(items) == 3
    assert without_oldest(items, 9) == (call("b"), result("b"))


def test_an_id_that_comes_again_keeps_its_later_pair() -> None:
    items = (call("a"), result("a"), ONE, call("a"), result("a"), LAST)
    assert without_oldest(items, 1) == (ONE, call("a"), result("a"), LAST)


def test_a_last_result_whose_call_was_never_there_stays() -> None:
    assert without_oldest((ONE, result("z")), 5) == (result("z"),)


def test_nothing_can_be_left_out_of_nothing() -> None:
    assert (removable(()), without_oldest((), 3)) == (0, ())


ids = st.sampled_from("ab")
spoken = st.builds(said, st.sampled_from(["system", "developer", "user", "assistant"]), st.just("x"))
items_of = st.lists(st.one_of(spoken, st.builds(call, ids), st.builds(result, ids)), max_size=10).map(tuple)


@given(items_of, st.integers(0, 12))
def test_rules_and_the_last_always_stay_and_no_result_loses_its_call(items: tuple[Item, ...], count: int) -> None:
    kept = without_oldest(items, count)
    assert kept[-1:] == items[-1:]
    rules = [item for item in items if isinstance(item, Message) and item.role in {"system", "developer"}]
    assert [item for item in kept if isinstance(item, Message) and item.role in {"system", "developer"}] == rules
    assert kept == items if count == 0 else len(kept) <= len(items) - min(count, removable(items))
    for at, item in enumerate(kept):
        if isinstance(item, ToolResult) and any(item.call_id == each.call_id for each in _calls_before(items, item)):
            assert any(item.call_id == each.call_id for each in _calls_before(kept, item)), at


def _calls_before(items: tuple[Item, ...], result_item: ToolResult) -> list[ToolCall]:
    end = next(at for at in range(len(items) - 1, -1, -1) if items[at] is result_item)
    return [item for item in items[:end] if isinstance(item, ToolCall)]
