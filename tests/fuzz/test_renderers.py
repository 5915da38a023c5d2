"""Every renderer of a stream, over any run that the invariant of events allows, ended well or broken off anywhere.

Whatever happens: the bytes are messages of the stream's framing, each of them JSON, with one end and nothing behind it.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core import errors
from diglot.core.assemble import assemble
from diglot.core.digest import Digest
from diglot.core.events import (
    Compacted,
    Event,
    Finished,
    Progress,
    ReasoningDelta,
    Stage,
    Started,
    Step,
    TextDelta,
    TokenLogprob,
    ToolCallDone,
    Usage,
)
from diglot.core.items import Compaction, ToolCall, said
from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.ollama.create import CREATE_WORDS
from diglot.dialects.ollama.moving import PULL_WORDS, PUSH_WORDS
from diglot.dialects.openai import DIALECT as OPENAI
from diglot.dialects.operation import NDJSON, Ending, Operation, Stamp, Wire
from diglot.framing.ndjson import NdjsonDecoder
from diglot.framing.sse import SseDecoder
from tests.fuzz.bodies import BODIES
from tests.fuzz.odd import FEW

STAMP: Final = Stamp(id="a1b2c3d4e5f6g7h8i9j0k1l2", now=1_700_000_000.5)
ROWS: Final = {row.path: row for dialect in (OLLAMA, OPENAI) for row in dialect.operations}
STREAMED: Final = sorted(path for path, row in ROWS.items() if row.stream is not None)
STEPPED: Final = sorted(path for path, row in ROWS.items() if row.steps is not None)
FAULTS: Final[tuple[errors.AnyFault, ...]] = (
    errors.EngineCrashed("m"),
    errors.EngineFailed("it failed", detail="\x00\ud7ff"),
    errors.Cancelled(),
    errors.Busy(retry_after=1.5),
    errors.CompactionFailed("none"),
    errors.ContextExceeded(tokens=9, window=3),
)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6) | st.sampled_from(
    ["\n\n", "\r", "data: [DONE]", '"', "\\", "\u2028", "{}", "</think>"]
)
counts = st.integers(0, 1 << 40)
tokens = st.builds(
    TokenLogprob, token=texts, logprob=st.floats(max_value=0, allow_nan=False), bytes=st.binary(max_size=3)
)
calls = st.builds(
    ToolCall,
    call_id=texts,
    name=texts,
    arguments=texts | st.sampled_from(["", "{}", "[1]", '{"command":"ls"}']),
    namespace=st.none() | texts,
    kind=st.sampled_from(["function", "freeform", "search", "shell", "local_shell", "patch"]),
)
pieces: st.SearchStrategy[Event] = st.one_of(
    st.builds(TextDelta, text=texts),
    st.builds(TextDelta, text=texts, logprobs=st.lists(tokens, min_size=1, max_size=2).map(tuple)),
    st.builds(ReasoningDelta, text=texts),
    st.builds(ToolCallDone, call=calls),
)
STAGES: Final[dict[str, list[Stage]]] = {
    "/api/pull": [*PULL_WORDS],
    "/api/push": [*PUSH_WORDS],
    "/api/create": [*CREATE_WORDS, "reuse", "make"],
}


def steps(stages: list[Stage]) -> st.SearchStrategy[Step]:
    """Return the steps that a kind of transfer takes."""
    return st.builds(
        Step,
        stage=st.sampled_from(stages),
        digest=st.none() | st.just(Digest("0123456789abcdef" * 4)),
        total=counts,
        completed=counts,
        subject=texts,
    )


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    """Draw a run of one choice."""
    phases = st.builds(Progress, done=counts, total=counts)
    events: list[Event] = list(draw(st.lists(phases, max_size=2)))
    if draw(st.booleans()):
        kept = (said("user", draw(texts)),)
        events.append(Compacted(Compaction(draw(texts)), kept, before=draw(counts), after=draw(counts)))
    events.append(Started(draw(counts), draw(texts)))
    events += draw(st.lists(pieces, max_size=8))
    usage = Usage(input=draw(counts), output=draw(counts), cached=draw(counts), reasoning=draw(counts))
    return [*events, Finished(draw(st.sampled_from(["stop", "length", "tool_calls"])), usage=usage)]


def view_of(row: Operation) -> Any:
    """Return what the renderer of an operation needs, for a rich request."""
    return row.parse(Wire(body=json.dumps(BODIES[row.path]).encode())).view


def messages(row: Operation, data: bytes) -> list[dict[str, Any]]:
    """Return the messages of a stream, each an object; `[DONE]` may only be the last."""
    decoder = NdjsonDecoder() if row.stream_type == NDJSON else SseDecoder()
    found = [*decoder.feed(data), *decoder.close()]
    contents = [each if isinstance(each, bytes) else each.data for each in found]
    if contents and contents[-1] == b"[DONE]":
        contents.pop()
    read = [msgspec.json.decode(each) for each in contents]
    assert all(isinstance(each, dict) for each in read)
    return read


def tells_a_fault(message: dict[str, Any]) -> bool:
    """Whether a message says that the stream broke, in whichever form."""
    within = message.get("response")  # In Responses; in Ollama's generate it is text.
    return bool(message.get("error") or (isinstance(within, dict) and within.get("error")))


def fed(renderer: Any, events: Iterable[Any], beats: Iterable[bool]) -> bytes:
    """Return what comes of events, with a sign of life before some of them."""
    out = b""
    for event, beat in zip(events, beats, strict=False):
        out += (renderer.beat() if beat else b"") + renderer.feed(event, STAMP.now)
    return out


def broken(renderer: Ending, row: Operation, before: bytes, fault: errors.AnyFault) -> None:
    """See that a stream that broke says so, once, at its end."""
    read = messages(row, before + renderer.fail(fault))
    assert [tells_a_fault(each) for each in read] == [False] * (len(read) - 1) + [True]


@pytest.mark.parametrize("path", STREAMED)
@FEW
@given(events=runs(), beats=st.lists(st.booleans(), min_size=14, max_size=14))
def test_a_run_that_ends_well_is_sound_streamed_and_whole(path: str, events: list[Event], beats: list[bool]) -> None:
    row = ROWS[path]
    assert row.stream is not None
    renderer = row.stream(view_of(row), STAMP)
    read = messages(row, fed(renderer, events, beats) + renderer.close())
    assert read
    assert not any(map(tells_a_fault, read))
    assert msgspec.json.decode(row.whole(view_of(row), STAMP, assemble(events)).body)


@pytest.mark.parametrize("path", STREAMED)
@FEW
@given(
    events=runs(), where=st.integers(0, 13), beats=st.lists(st.booleans(), min_size=14), fault=st.sampled_from(FAULTS)
)
def test_a_run_that_breaks_off_anywhere_says_so_at_its_end(
    path: str, events: list[Event], where: int, beats: list[bool], fault: errors.AnyFault
) -> None:
    row = ROWS[path]
    assert row.stream is not None
    renderer = row.stream(view_of(row), STAMP)
    broken(renderer, row, fed(renderer, events[:-1][:where], beats), fault)


@pytest.mark.parametrize("path", STEPPED)
@FEW
@given(data=st.data(), fault=st.none() | st.sampled_from(FAULTS))
def test_steps_in_any_order_are_lines(path: str, data: st.DataObject, fault: errors.AnyFault | None) -> None:
    row, taken = ROWS[path], data.draw(st.lists(steps(STAGES[path]), max_size=8))
    assert row.steps is not None
    renderer = row.steps(view_of(row), STAMP)
    before = fed(renderer, taken, [False] * len(taken))
    if fault is not None:
        broken(renderer, row, before, fault)
    else:
        assert not any(map(tells_a_fault, messages(row, before + renderer.close())))
