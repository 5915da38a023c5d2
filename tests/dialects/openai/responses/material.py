"""What the tests of Responses share: streams read and folded as OpenAI's package does it, and runs of events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from diglot.core.assemble import assemble
from diglot.core.events import (
    Compacted,
    Event,
    Finished,
    Progress,
    ReasoningDelta,
    Started,
    TextDelta,
    ToolCallDone,
    Usage,
)
from diglot.core.items import CallKind, Compaction, ToolCall
from diglot.core.result import Result
from diglot.dialects.openai.responses import create
from diglot.dialects.openai.responses.reply import EchoReply, View
from tests.dialects.openai.material import STAMP, logprob

VIEW: Final = View(
    echo=EchoReply(model="tiny", reasoning={"effort": None, "summary": "auto"}, text={"format": {"type": "text"}})
)
OPEN: Final = View(echo=VIEW.echo, open_text=True)
STARTED: Final = Started(input_tokens=7, model="tiny:latest")
USAGE: Final = Usage(input=7, output=3, cached=2, reasoning=1)
_EVENT: Final[TypeAdapter[Any]] = TypeAdapter(ResponseStreamEvent)
TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed")


def call(
    kind: CallKind = "function", arguments: str = '{"a":1}', name: str = "look", namespace: str | None = None
) -> ToolCall:
    """Return a call."""
    return ToolCall(call_id="call_1", name=name, arguments=arguments, namespace=namespace, kind=kind)


def run(*events: Event, reason: Any = "stop") -> list[Event]:
    """Return a whole run of events with these in its middle."""
    return [Progress(), STARTED, *events, Finished(reason, usage=USAGE)]


def streamed(events: Iterable[Event], view: View = VIEW) -> bytes:
    """Return the stream of a run."""
    renderer = create.stream(view, STAMP)
    return b"".join(renderer.feed(event, STAMP.now) for event in events) + renderer.close()


def read(stream: bytes) -> list[dict[str, Any]]:
    """Return the events of a stream, each of which must be named as it says itself, and numbered."""
    *pieces, last = stream.decode().split("\n\n")
    assert not last
    events = []
    for number, piece in enumerate(pieces):
        name, data = piece.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        assert event["sequence_number"] == number
        events.append(event)
    return events


def validated(events: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the events as OpenAI's types."""
    return [_EVENT.validate_python(event) for event in events]


def folded(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what OpenAI's package makes of a stream."""
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)
    for event in validated(events):
        state.handle_event(event)
    final = validated(events)[-1].response
    snapshot = state._completed_response or final  # noqa: SLF001  It gives the others out as events only.
    return plain(snapshot)


def plain(response: Response) -> dict[str, Any]:
    """Return a response without what only the package adds."""
    shown = response.model_dump(mode="json", exclude_unset=True, by_alias=True)
    for item in shown["output"]:
        item.pop("parsed_arguments", None)
        for part in item.get("content") or ():
            part.pop("parsed", None)
    return shown


def whole(events: Iterable[Event], view: View = VIEW) -> dict[str, Any]:
    """Return the same, whole."""
    answer: dict[str, Any] = json.loads(create.whole(view, STAMP, result_of(events)).body)
    return answer


def result_of(events: Iterable[Event]) -> Result:
    """Return a run, folded up."""
    return assemble(events)


def compacted(payload: str = "folded") -> Compacted:
    """Return a compaction."""
    return Compacted(item=Compaction(payload), kept=(), before=100, after=10, usage=Usage(input=100, output=5))


_WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
_KINDS: st.SearchStrategy[CallKind] = st.sampled_from(
    ["function", "freeform", "search", "shell", "local_shell", "patch"]
)
_ARGUMENTS = st.sampled_from(
    (
        *("", "{}", "[1]", "no json", '{"commands":["ls","pwd"],"timeout_ms":5}', '{"commands":"ls"}'),
        *('{"command":["ls"]}', '{"command":"ls","env":{"A":1}}', '{"type":3,"path":[]}', '{"query":"é"}'),
        '{"type":"create_file","path":"a","diff":"+b"}',
    )
)


def _piece(number: int, *, measured: bool) -> st.SearchStrategy[Event]:
    made = st.builds(
        ToolCall,
        call_id=st.just(f"call_{number}"),
        name=_WORDS,
        arguments=_ARGUMENTS,
        namespace=st.none() | _WORDS,
        kind=_KINDS,
    )
    return st.one_of(
        _WORDS.map(lambda word: TextDelta(word, logprobs=(logprob(word, top=[("a", -1.0)]),) if measured else ())),
        st.builds(ReasoningDelta, text=_WORDS),
        st.builds(ToolCallDone, call=made),
    )


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    """Draw any run of one answer that the invariant of events allows."""
    events: list[Event] = [Progress()] if draw(st.booleans()) else []
    if draw(st.booleans()):
        events.append(compacted(draw(_WORDS)))
    events.append(Started(input_tokens=draw(st.integers(0, 99)), model="tiny:latest"))
    measured = draw(st.booleans())
    events += [draw(_piece(number, measured=measured)) for number in range(draw(st.integers(0, 8)))]
    usage = Usage(input=draw(st.integers(0, 99)), output=draw(st.integers(0, 99)), cached=draw(st.integers(0, 9)))
    events.append(Finished(draw(st.sampled_from(["stop", "length", "tool_calls"])), usage=usage))
    return events
