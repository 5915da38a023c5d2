"""Conversations of every kind come out in the form that the strictest chat templates take."""

import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.items import (
    Compaction,
    Image,
    Item,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    said,
    text_of,
)
from diglot.core.turns import Turn, turns_of

PNG = Image(b"\x89PNG", "image/png")


def call(call_id: str = "a", name: str = "look", **more: Any) -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments="{}", **more)


def result(call_id: str = "a", text: str = "seen", **more: Any) -> ToolResult:
    return ToolResult(call_id=call_id, content=(Text(text),), **more)


def told(*items: Item) -> list[str]:
    """Return the turns as one line each: role, calls, text."""
    return [_line(turn) for turn in turns_of(items)]


def _line(turn: Turn) -> str:
    calls = "".join(f" {each.name}({each.call_id})" for each in turn.calls)
    answers = "" if turn.call_id is None else f" {turn.name}({turn.call_id})"
    return f"{turn.role}{calls}{answers}: {text_of(turn.content)}"


def test_system_and_developer_messages_become_one_leading_system_turn_wherever_they_stand() -> None:
    items = (said("system", "one"), said("user", "hi"), said("developer", "two"), said("assistant", "yes"))
    assert told(*items) == ["system: one\n\ntwo", "user: hi", "assistant: yes"]


def test_a_developer_message_between_two_of_the_user_leaves_one_user_turn() -> None:
    assert told(said("user", "a"), said("developer", "rule"), said("user", "b")) == ["system: rule", "user: a\n\nb"]


def test_a_result_stands_right_behind_the_turn_of_its_call() -> None:
    items = (said("user", "go"), call("a"), said("user", "wait"), result("a"), said("assistant", "done"))
    assert told(*items) == ["user: go", "assistant look(a): ", "tool look(a): seen", "user: wait", "assistant: done"]


def test_parallel_calls_are_one_turn_and_their_results_follow_in_the_order_of_the_calls() -> None:
    items = (said("user", "go"), call("a"), call("b"), result("b", "2"), result("a", "1"))
    assert told(*items) == ["user: go", "assistant look(a) look(b): ", "tool look(a): 1", "tool look(b): 2"]


def test_text_and_thought_around_a_call_belong_to_its_turn() -> None:
    items = (said("user", "go"), Reasoning("hm"), said("assistant", "I look."), call("a"), result("a"))
    turns = turns_of(items)
    assert (turns[1].reasoning, text_of(turns[1].content), turns[1].calls) == ("hm", "I look.", (call("a"),))


def test_each_turn_keeps_its_own_thought() -> None:
    items = (said("user", "go"), Reasoning("one"), call("a"), result("a"), Reasoning("two"), call("b"), result("b"))
    assert [turn.reasoning for turn in turns_of(items)] == ["", "one", "", "two", ""]


def test_a_call_without_a_result_is_told_so_once_the_conversation_goes_on() -> None:
    assert told(said("user", "go"), call("a"), said("user", "stop")) == [
        "user: go",
        "assistant look(a): ",
        "tool look(a): [no result]",
        "user: stop",
    ]


def test_a_call_at_the_end_waits_for_its_result() -> None:
    assert told(said("user", "go"), call("a")) == ["user: go", "assistant look(a): "]


def test_a_result_whose_call_is_gone_gets_a_call_made_for_it() -> None:
    assert told(said("user", "go"), result("z", name="grep")) == [
        "user: go",
        "assistant grep(z): ",
        "tool grep(z): seen",
    ]


def test_two_orphans_of_one_id_are_both_shown() -> None:
    lines = told(said("user", "go"), result("", "one"), result("", "two"))
    assert [line for line in lines if line.startswith("tool")] == ["tool tool(): one", "tool tool(): two"]


def test_two_results_of_one_call_become_one() -> None:
    lines = told(said("user", "go"), call("a"), result("a", "one"), result("a", "two"))
    assert lines[2:] == ["tool look(a): one\n\ntwo"]


def test_an_id_that_comes_again_in_a_later_turn_takes_the_later_result() -> None:
    items = (said("user", "go"), call("c0"), result("c0", "first"), call("c0"), result("c0", "second"))
    assert [line for line in told(*items) if line.startswith("tool")] == [
        "tool look(c0): first",
        "tool look(c0): second",
    ]


def test_calls_of_one_turn_that_share_an_id_take_their_results_in_order() -> None:
    lines = told(said("user", "go"), call(""), call("", "read"), result("", "1"), result("", "2"))
    assert lines[2:] == ["tool look(): 1", "tool read(): 2"]


def test_an_aborted_call_does_not_take_the_result_of_a_later_one_with_its_id() -> None:
    items = (said("user", "go"), call("c0"), said("user", "again"), call("c0"), result("c0"))
    assert [line for line in told(*items) if line.startswith("tool")] == [
        "tool look(c0): [no result]",
        "tool look(c0): seen",
    ]


def test_a_result_that_came_before_its_call_is_put_behind_it() -> None:
    assert told(said("user", "go"), result("a"), call("a"))[1:] == ["assistant look(a): ", "tool look(a): seen"]


def test_a_tool_turn_has_the_name_that_the_model_sees() -> None:
    assert (
        turns_of((said("user", "go"), call("a", "add", namespace="mcp__lab"), result("a")))[2].name == "mcp__lab__add"
    )


def test_pictures_in_a_result_are_shown_by_the_user_behind_the_results() -> None:
    seen = ToolResult(call_id="a", content=(Text("here:"), PNG))
    turns = turns_of((said("user", "go"), call("a"), call("b"), seen, result("b"), said("user", "and?")))
    assert [turn.role for turn in turns] == ["user", "assistant", "tool", "tool", "user"]
    assert turns[2].content == (Text("here:\n\n[image: see below]"),)
    assert turns[4].content == (PNG, Text("and?"))


@pytest.mark.parametrize("role", ["system", "assistant"])
@pytest.mark.parametrize("content", [(), (Text(""),)])
def test_empty_content_makes_no_turn(role: Any, content: tuple[Text, ...]) -> None:
    assert told(said("user", "a"), Message(role=role, content=content), said("user", "b")) == ["user: a\n\nb"]


@pytest.mark.parametrize("content", [(), (Text(""),)])
def test_a_call_whose_text_is_empty_has_no_content(content: tuple[Text, ...]) -> None:
    assert turns_of((said("user", "a"), Message(role="assistant", content=content), call()))[1].content == ()


def test_an_empty_user_message_and_an_empty_result_keep_their_turns() -> None:
    assert told(said("user", ""), call("a"), result("a", "")) == ["user: ", "assistant look(a): ", "tool look(a): "]


def test_somebody_speaks_first_and_it_is_the_user() -> None:
    assert told(said("assistant", "Hello!"), said("user", "hi")) == ["user: ", "assistant: Hello!", "user: hi"]
    assert told(said("system", "Be kind.")) == ["system: Be kind.", "user: "]


def test_items_that_no_model_reads_are_left_out_without_a_gap() -> None:
    items = (said("assistant", "a"), Opaque("ghost", "{}"), Compaction("x"), said("assistant", "b"))
    assert told(said("user", "go"), *items) == ["user: go", "assistant: a\n\nb"]


def test_pictures_of_the_user_keep_their_place_among_the_text() -> None:
    message = Message(role="user", content=(Text("left"), PNG, Text("right")))
    assert turns_of((message,))[0].content == (Text("left"), PNG, Text("right"))


texts = st.sampled_from(["", "x", "y z"])
ids = st.sampled_from(["", "a", "b", "c"])
contents = st.lists(st.one_of(st.builds(Text, texts), st.just(PNG)), max_size=2).map(tuple)
calls = st.builds(call, ids, st.sampled_from(["look", "read"]))
results = st.builds(ToolResult, call_id=ids, content=contents)
messages = st.builds(Message, role=st.sampled_from(["user", "assistant"]), content=contents)
others = st.one_of(st.builds(Reasoning, texts), st.just(Opaque("ghost", "{}")))
spoken = st.one_of(messages, calls, results, others)
rules = st.builds(Message, role=st.sampled_from(["system", "developer"]), content=contents)


@given(st.lists(st.one_of(spoken, rules), max_size=12))
def test_any_conversation_keeps_the_form(items: list[Item]) -> None:
    turns = turns_of(items)
    roles = [turn.role for turn in turns]
    assert "system" not in roles[1:]
    assert roles[roles[:1] == ["system"] :][:1] in ([], ["user"])
    for left, right in pairwise(turns):
        assert left.role == "tool" or left.role != right.role
        assert right.role != "tool" or left.role in {"assistant", "tool"}
    assert not any(isinstance(part, Image) for turn in turns if turn.role == "tool" for part in turn.content)


@given(st.lists(st.one_of(spoken, rules), max_size=12))
def test_in_any_conversation_each_call_has_its_one_result(items: list[Item]) -> None:
    turns = turns_of(items)
    for index, turn in enumerate(turns):
        answers = []
        for after in turns[index + 1 :]:
            if after.role != "tool":
                break
            answers.append(after.call_id)
        if turn.role == "assistant" and (answers or index + 1 < len(turns)):
            last = index + 1 + len(answers) == len(turns)
            made = [each.call_id for each in turn.calls]
            assert answers == made or (last and all(each in made for each in answers))


@given(st.lists(st.one_of(spoken, rules), max_size=12))
def test_in_any_conversation_every_picture_and_every_text_is_shown(items: list[Item]) -> None:
    shown = [part for turn in turns_of(items) for part in turn.content]
    given_parts = [part for item in items if isinstance(item, Message | ToolResult) for part in item.content]
    assert shown.count(PNG) == given_parts.count(PNG)
    for text in ("x", "y z"):
        assert text_of(tuple(shown)).count(text) == text_of(tuple(given_parts)).count(text)


@given(st.lists(st.one_of(messages, others, calls), max_size=8), st.lists(st.one_of(messages, calls), max_size=5))
def test_what_is_appended_leaves_earlier_turns_as_they_were(before: list[Item], after: list[Item]) -> None:
    made = [item.call_id for item in before if isinstance(item, ToolCall)]
    answered = [*before, *(result(each) for each in made)]
    old, new = turns_of(answered), turns_of([*answered, *after])
    if old:
        assert new[: len(old) - 1] == old[:-1]
        grown = new[len(old) - 1]
        assert grown.role == old[-1].role
        assert text_of(grown.content).startswith(text_of(old[-1].content))
        assert grown.reasoning.startswith(old[-1].reasoning)


@pytest.mark.parametrize(
    "items",
    [
        [said("user", "word " * 10)] * 20_000,
        [said("assistant", "word " * 10), result("z")] * 10_000,
        [call("")] * 20_000 + [result("")] * 20_000,
        [call(""), said("user", "x")] * 10_000 + [result("")] * 10_000,
        [result("")] * 10_000 + [call("")] * 10_000,
    ],
    ids=range(5),
)
def test_the_work_is_linear(items: list[Item]) -> None:
    begun = time.process_time()
    turns_of(items)
    assert time.process_time() - begun < 5  # It is far below one second.
