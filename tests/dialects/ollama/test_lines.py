"""The lines of a stream say what the whole answer says, as Ollama's own client package reads them."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import ollama
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.events import (
    Alternative,
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
from diglot.core.items import ToolCall
from diglot.dialects.ollama.replies import ChatReply, GenerateReply, Said, chat_form, generate_form
from diglot.dialects.ollama.timestamps import Stamper, rfc3339
from diglot.dialects.operation import Parsed
from tests.dialects.ollama.asking import (
    CHAT,
    GENERATE,
    NOW,
    STAMP,
    USER,
    answer,
    folded,
    operation,
    parse,
    streamed,
    whole,
)
from tests.dialects.ollama.test_embed import VECTORS
from tests.dialects.ollama.test_models import CARD, MODEL, running

BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [USER]},
    GENERATE: {"model": "m", "prompt": "hi"},
}
TYPES: dict[str, Any] = {CHAT: ollama.ChatResponse, GENERATE: ollama.GenerateResponse}

TEXT = st.text(min_size=1, max_size=8)
PROBABILITY = st.floats(max_value=0, allow_nan=False, allow_infinity=False)
LOGPROBS = st.lists(
    st.builds(
        TokenLogprob,
        token=TEXT,
        logprob=PROBABILITY,
        bytes=st.binary(max_size=4),
        top=st.lists(
            st.builds(Alternative, token=TEXT, logprob=PROBABILITY, bytes=st.binary(max_size=4)), max_size=2
        ).map(tuple),
    ),
    max_size=2,
).map(tuple)
ARGUMENTS = st.dictionaries(TEXT, st.integers() | TEXT | st.none(), max_size=3).map(json.dumps) | st.text(max_size=5)
MIDDLE: st.SearchStrategy[Event] = st.one_of(
    st.builds(TextDelta, text=TEXT, logprobs=LOGPROBS),
    st.builds(TextDelta, text=TEXT),
    st.builds(ReasoningDelta, text=TEXT),
    st.builds(ToolCallDone, call=st.builds(ToolCall, call_id=TEXT, name=TEXT, arguments=ARGUMENTS)),
    st.builds(Progress),
)
COUNT = st.integers(0, 1 << 40)


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    """Return the events of an answer."""
    tokens = draw(COUNT)
    timings = Timings(total=draw(COUNT), load=draw(COUNT), prefill=draw(COUNT), decode=draw(COUNT))
    usage = Usage(input=tokens, output=draw(COUNT), cached=draw(COUNT))
    end = Finished(draw(st.sampled_from(["stop", "length", "tool_calls"])), usage, timings)
    return [Started(tokens, "m:latest"), *draw(st.lists(MIDDLE, max_size=8)), end]


@pytest.mark.parametrize("path", BODIES)
@given(events=runs())
def test_a_stream_says_what_the_whole_answer_says(path: str, events: list[Event]) -> None:
    parsed = parse(path, BODIES[path])
    lines = streamed(path, parsed, events)
    assert folded(lines) == whole(path, parsed, events)
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    for line in lines:
        TYPES[path].model_validate(line)


@pytest.mark.parametrize("path", BODIES)
@given(text=st.text(min_size=1), thought=st.text(min_size=1), now=st.floats(0, 4e9))
def test_a_line_from_parts_is_the_line_that_encoding_makes(path: str, text: str, thought: str, now: float) -> None:
    make, form = operation(path).stream, {CHAT: chat_form, GENERATE: generate_form}[path]
    assert make is not None
    renderer = make(parse(path, BODIES[path]).view, STAMP)
    for event, said in ((TextDelta(text), Said(text)), (ReasoningDelta(thought), Said(thinking=thought))):
        expected = form(said, model="m", created_at=rfc3339(now), done=False)
        assert renderer.feed(event, now) == msgspec.json.encode(expected) + b"\n"


@pytest.mark.parametrize(("path", "kind"), [(CHAT, ChatReply), (GENERATE, GenerateReply)])
def test_the_fields_of_the_official_package_are_all_known(path: str, kind: type[msgspec.Struct]) -> None:
    theirs = set(TYPES[path].model_fields) - {"image", "completed", "total"}  # Those are of image generation.
    assert theirs <= set(kind.__struct_fields__)


@pytest.mark.parametrize(
    ("path", "kind", "answered", "body"),
    [
        ("/api/embed", ollama.EmbedResponse, VECTORS, {"model": "m", "input": "a"}),
        ("/api/embeddings", ollama.EmbeddingsResponse, VECTORS, {"model": "m", "prompt": "a"}),
        ("/api/tags", ollama.ListResponse, (MODEL,), None),
        ("/api/ps", ollama.ProcessResponse, (running(MODEL, NOW),), None),
        ("/api/show", ollama.ShowResponse, CARD, {"model": "m"}),
    ],
)
def test_what_does_not_stream_is_read_by_the_official_package(path: str, kind: Any, answered: Any, body: Any) -> None:
    kind.model_validate(answer(path, answered, body))


@given(seconds=st.integers(0, 4_000_000_000), micros=st.integers(0, 999_999))
def test_a_time_is_written_as_clients_read_it(seconds: int, micros: int) -> None:
    now = seconds + micros / 1_000_000
    read = datetime.fromisoformat(rfc3339(now))
    assert read.tzinfo == UTC
    assert abs(read.timestamp() - now) < 2e-6


def test_time_goes_on_within_a_second_and_past_it() -> None:
    stamp = Stamper()
    assert [stamp(now) for now in (1.25, 1.5, 2.0)] == [
        b"1970-01-01T00:00:01.250000Z",
        b"1970-01-01T00:00:01.500000Z",
        b"1970-01-01T00:00:02.000000Z",
    ]


def test_before_anything_is_said_nothing_is_sent() -> None:
    parsed: Parsed = parse(CHAT, BODIES[CHAT])
    assert streamed(CHAT, parsed, [Progress(1, 2), Started(1, "m:latest"), Progress()]) == []
