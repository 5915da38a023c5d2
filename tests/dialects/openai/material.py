"""What the tests of this folder share: bodies, event runs, and streams read as OpenAI's package reads them."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from diglot.core.errors import Fault
from diglot.core.events import (
    Alternative,
    Event,
    Finished,
    Progress,
    ReasoningDelta,
    Started,
    TextDelta,
    TokenLogprob,
    ToolCallDone,
    Usage,
)
from diglot.core.items import ToolCall
from diglot.dialects.openai.errors import render_error
from diglot.dialects.operation import Parsed, Renderer, Stamp, Wire

STAMP: Final = Stamp(id="a1b2c3d4e5f6g7h8i9j0k1l2", now=1_700_000_000.5)


class Shown(NamedTuple):
    """The files that were collected, and the fields that their tests show."""

    files: frozenset[str]
    fields: frozenset[tuple[str, str]]


SHOWN: Final = pytest.StashKey[Shown]()


def wire(body: Any) -> Wire:
    """Return a request with this JSON body."""
    return Wire(body=json.dumps(body).encode())


def chat(**fields: Any) -> dict[str, Any]:
    """Return a chat body, the smallest there is but for these fields."""
    return {"messages": [{"role": "user", "content": "hi"}], **fields}


def function(name: str = "look", **fields: Any) -> dict[str, Any]:
    """Return a declared function."""
    return {"type": "function", "function": {"name": name, **fields}}


def refusal(parse: Callable[[Wire], Parsed], body: Any) -> dict[str, Any]:
    """Return the error that a body is refused with, and its status."""
    with pytest.raises(Fault) as raised:
        parse(body if isinstance(body, Wire) else wire(body))
    rendered = render_error(raised.value)  # type: ignore[arg-type]  # Every fault is one of AnyFault.
    return {"status": int(rendered.status), **json.loads(rendered.body)["error"]}


def png(width: int = 1, height: int = 1) -> bytes:
    """Return a small PNG file that claims this size."""

    def piece(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0\0")
    return b"\x89PNG\r\n\x1a\n" + piece(b"IHDR", head) + piece(b"IDAT", pixels) + piece(b"IEND", b"")


def data_url(data: bytes, kind: str = "image/png") -> str:
    """Return data as a URL."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def stream(renderer: Renderer, events: Iterable[Event]) -> bytes:
    """Return a whole stream that came to its end."""
    return b"".join(renderer.feed(event, STAMP.now) for event in events) + renderer.close()


def data_lines(body: bytes) -> list[str]:
    """Return the data of every event, and see that there is nothing else."""
    *pieces, last = body.decode().split("\n\n")
    assert not last
    assert all(piece.startswith("data: ") and "\n" not in piece for piece in pieces)
    return [piece.removeprefix("data: ") for piece in pieces]


def chunks_of(body: bytes) -> list[dict[str, Any]]:
    """Return the chunks of a stream that came to its end."""
    *chunks, last = data_lines(body)
    assert last == "[DONE]"
    return [json.loads(chunk) for chunk in chunks]


def folded(body: bytes) -> dict[str, Any]:
    """Return what OpenAI's package makes of a stream, in the form of a whole answer."""
    state = ChatCompletionStreamState()
    for chunk in chunks_of(body):
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    return plain(state.current_completion_snapshot)


def plain(completion: ChatCompletion) -> dict[str, Any]:
    """Return a whole answer without what only one of the two forms has: an object's name, a call's index."""
    answer = completion.model_dump(mode="json", exclude={"object", "service_tier", "system_fingerprint", "moderation"})
    for choice in answer["choices"]:
        message = {key: value for key, value in choice["message"].items() if value is not None and key != "parsed"}
        for call in message.get("tool_calls", ()):
            call.pop("index", None)
            call.get("function", {}).pop("parsed_arguments", None)
        choice["message"] = message
    return answer


def logprob(token: str, value: float = -0.5, top: Sequence[tuple[str, float]] = ()) -> TokenLogprob:
    """Return a token of an answer."""
    others = tuple(Alternative(token=each, logprob=chance, bytes=each.encode()) for each, chance in top)
    return TokenLogprob(token=token, logprob=value, bytes=token.encode(), top=others)


_WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
_COUNTS = st.integers(0, 1000)
_CALLS = st.builds(ToolCall, call_id=_WORDS, name=_WORDS, arguments=st.sampled_from(["", "{}", '{"a": "é"}']))
_CHANCES = st.floats(-20, 0)
_TOKENS = st.builds(logprob, _WORDS, _CHANCES, st.lists(st.tuples(_WORDS, _CHANCES), max_size=2))


def _deltas(choice: int, *, raw: bool) -> st.SearchStrategy[list[Event]]:
    spoken = st.builds(TextDelta, text=_WORDS, choice=st.just(choice))
    measured = _TOKENS.map(lambda token: TextDelta(text=token.token, logprobs=(token,), choice=choice))
    thought = st.builds(ReasoningDelta, text=_WORDS, choice=st.just(choice))
    called = st.builds(ToolCallDone, call=_CALLS, choice=st.just(choice))
    kinds: list[st.SearchStrategy[Any]] = [spoken, measured] if raw else [spoken, measured, thought, called]
    return st.lists(st.one_of(kinds), max_size=6)


@st.composite
def runs(draw: st.DrawFn, *, raw: bool = False) -> tuple[int, list[Event]]:
    """Draw how many answers there are, and the events that made them, in any order that the invariant allows."""
    count = draw(st.integers(1, 3))
    tracks: list[list[Event]] = []
    for choice in range(count):
        usage = Usage(input=draw(_COUNTS), output=draw(_COUNTS), cached=draw(_COUNTS), reasoning=draw(_COUNTS))
        end = Finished(draw(st.sampled_from(["stop", "length", "tool_calls"])), usage=usage, choice=choice)
        tracks.append([*draw(_deltas(choice, raw=raw)), end])
    events: list[Event] = [Progress(), Started(input_tokens=draw(_COUNTS), model="tiny:latest")]
    while any(tracks):
        track = draw(st.sampled_from([each for each in tracks if each]))
        events.append(track.pop(0))
    return count, events


JSON_VALUES: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10)
    | st.sampled_from(
        ["user", "assistant", "tool", "function", "auto", "text", "json_schema", "data:;base64,", "base64"]
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
"""Any JSON value, with words in it that this protocol knows."""
