"""The fold from events to a result loses nothing and does not see where the text was cut."""

from collections.abc import AsyncIterator, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.assemble import Assembly, assemble, gather
from diglot.core.errors import EngineCrashed
from diglot.core.events import (
    Compacted,
    Event,
    Finished,
    Progress,
    ReasoningDelta,
    Started,
    TextDelta,
    Timings,
    TokenLogprob,
    ToolCallDone,
    Usage,
)
from diglot.core.items import Compaction, Reasoning, ToolCall, said
from diglot.core.result import Choice, Result

CALL = ToolCall("1", "f", "{}")
LOGPROB = TokenLogprob("a", -0.5, b"a")
EVENTS: tuple[Event, ...] = (
    Progress(done=1, total=2),
    Started(input_tokens=7, model="m:1b"),
    ReasoningDelta("h"),
    ReasoningDelta("m"),
    TextDelta("ab", logprobs=(LOGPROB,)),
    TextDelta("c"),
    ToolCallDone(CALL),
    Finished("tool_calls", usage=Usage(input=7, output=5, cached=3, reasoning=2), timings=Timings(9, 1, 2, 3)),
)


def test_events_become_one_result() -> None:
    items = (Reasoning("hm"), said("assistant", "abc"), CALL)
    choice = Choice("abc", reasoning="hm", calls=(CALL,), logprobs=(LOGPROB,), reason="tool_calls", items=items)
    usage = Usage(input=7, output=5, cached=3, reasoning=2)
    assert assemble(EVENTS) == Result((choice,), usage=usage, timings=Timings(9, 1, 2, 3), model="m:1b")


def test_what_a_model_made_keeps_its_order() -> None:
    events: list[Event] = [TextDelta("a"), TextDelta("b"), ToolCallDone(CALL), TextDelta("c"), ReasoningDelta("d")]
    assert assemble(events).choices[0].items == (said("assistant", "ab"), CALL, said("assistant", "c"), Reasoning("d"))


def test_a_compaction_that_came_first_is_told() -> None:
    compacted = Compacted(Compaction("x"), kept=(said("user", "u"),), before=9, after=3)
    assert assemble([compacted, *EVENTS]).compacted == compacted


def test_choices_come_in_the_order_of_their_index_and_their_prompt_is_counted_once() -> None:
    result = assemble(
        [
            Started(input_tokens=7),
            TextDelta("b", choice=1),
            Finished("stop", usage=Usage(input=7, output=2), timings=Timings(5, 1, 2, 3), choice=1),
            TextDelta("a"),
            Finished("length", usage=Usage(input=7, output=3), timings=Timings(8, 1, 0, 4)),
        ]
    )
    assert [(choice.text, choice.reason) for choice in result.choices] == [("a", "length"), ("b", "stop")]
    assert result.usage == Usage(input=7, output=5)
    assert result.timings == Timings(total=8, load=1, prefill=2, decode=7)


def test_a_choice_that_says_nothing_is_still_one() -> None:
    assert [choice.text for choice in assemble([Started(1), Finished("stop")]).choices] == [""]


def test_what_has_come_so_far_can_be_read_before_the_end() -> None:
    assembly = Assembly()
    for event in EVENTS[:5]:
        assembly.feed(event)
    assert (assembly.result().choices[0].text, assembly.result().usage.input) == ("ab", 7)


deltas = st.one_of(
    st.builds(TextDelta, st.text(min_size=1), choice=st.integers(0, 1)),
    st.builds(ReasoningDelta, st.text(min_size=1), choice=st.integers(0, 1)),
    st.builds(ToolCallDone, st.just(CALL), choice=st.integers(0, 1)),
)


def letters(events: Iterable[Event]) -> Iterable[Event]:
    """Cut every delta into its letters."""
    for event in events:
        match event:
            case TextDelta() | ReasoningDelta():
                yield from (type(event)(letter, choice=event.choice) for letter in event.text)
            case _:
                yield event


@given(st.lists(deltas))
def test_where_the_text_is_cut_makes_no_difference(events: list[Event]) -> None:
    assert assemble(letters(events)) == assemble(events)


async def test_a_stream_is_folded_like_a_list_and_its_fault_passes_through() -> None:
    async def stream(*, breaks: bool) -> AsyncIterator[Event]:
        for event in EVENTS:
            yield event
        if breaks:
            raise EngineCrashed("m")

    assert await gather(stream(breaks=False)) == assemble(EVENTS)
    with pytest.raises(EngineCrashed):
        await gather(stream(breaks=True))
