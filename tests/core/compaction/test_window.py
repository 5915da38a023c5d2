"""The window: what a compaction item in a conversation means."""

import json

from hypothesis import given
from hypothesis import strategies as st

from diglot.core.compaction.envelope import Summary, open_envelope, write_envelope
from diglot.core.compaction.window import TOOL, effective, is_kept, is_shown_summary, shown
from diglot.core.items import Compaction, Item, Message, Text, ToolCall, ToolResult, said
from tests.core.compaction.transcripts import talk, transcripts


def opened(item: Compaction) -> Summary:
    return open_envelope(item.payload)


def folded(text: str, *retained: Item) -> Compaction:
    return Compaction(write_envelope(Summary(text, retained)))


@given(transcripts())
def test_a_conversation_without_a_compaction_item_is_as_it_was(items: tuple[Item, ...]) -> None:
    assert effective(items, opened) == items


@given(transcripts(), transcripts())
def test_everything_before_goes_but_what_people_and_the_system_said(
    before: tuple[Item, ...], after: tuple[Item, ...]
) -> None:
    seen = effective((*before, folded("what happened"), *after), opened)
    kept = tuple(item for item in before if is_kept(item))
    assert seen[: len(kept)] == kept
    assert [is_shown_summary(item) for item in seen[len(kept) : len(kept) + 2]] == [True, True]
    assert seen[len(kept) + 2 :] == after


def test_the_summary_is_shown_as_the_output_of_a_call_and_retained_items_follow() -> None:
    last = talk()[-2:]
    seen = effective((said("user", "go"), folded("all went well", *last), said("user", "next")), opened)
    call, result = seen[1], seen[2]
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert (call.name, result.text, call.call_id) == (TOOL, "all went well", result.call_id)
    assert [type(item) for item in seen[3:]] == [ToolCall, ToolResult, Message]


def test_only_the_newest_of_several_counts_and_older_ones_are_not_shown() -> None:
    items = (said("user", "1"), folded("old"), said("user", "2"), folded("new"), said("user", "3"))
    texts = [item.text for item in effective(items, opened) if isinstance(item, Message | ToolResult)]
    assert texts == ["1", "2", "new", "3"]


def test_the_call_id_depends_on_the_payload_alone_so_that_the_prompt_is_the_same_every_time() -> None:
    first, second = (shown(folded("x").payload, Summary("x"))[0] for _ in range(2))
    assert first == second
    assert isinstance(first, ToolCall)
    assert first.call_id.startswith("call_ollama_compaction_")
    assert json.loads(first.arguments) == {"version": 1}


@given(st.sampled_from(["system", "developer", "user", "assistant"]))
def test_a_message_outlives_compaction_unless_a_model_wrote_it(role: str) -> None:
    assert is_kept(Message(role, (Text("x"),))) == (role != "assistant")  # type: ignore[arg-type]
