"""Transcripts for tests of compaction: what agents and people say, generated."""

import struct
import zlib
from typing import Final

from hypothesis import strategies as st

from diglot.core.items import CallKind, Image, Item, Message, Opaque, Reasoning, Text, ToolCall, ToolResult


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG: Final = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\0\0"))
    + _chunk(b"IEND", b"")
)
"""One black pixel."""

words = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=60)


def message(role: str) -> st.SearchStrategy[Item]:
    parts = st.tuples(words.map(Text)) | st.tuples(words.map(Text), st.just(Image(PNG, "image/png")))
    return st.builds(Message, role=st.just(role), content=parts)


@st.composite
def _call(draw: st.DrawFn) -> list[Item]:
    """A call, mostly with its result."""
    name = draw(st.uuids()).hex
    tool = draw(st.sampled_from(["shell", "apply_patch", "read_file"]))
    kinds: st.SearchStrategy[CallKind] = st.sampled_from(("function", "function", "freeform"))
    kind = draw(kinds)
    arguments = draw(words) if kind == "freeform" else '{"command": ["ls"]}'
    call = ToolCall(call_id=name, name=tool, arguments=arguments, kind=kind)
    result = ToolResult(call_id=name, content=(Text(draw(words) * draw(st.integers(0, 20))),), kind=kind)
    return [call, result] if draw(st.integers(0, 9)) else [call]


_steps = st.one_of(
    message("user").map(lambda item: [item]),
    message("assistant").map(lambda item: [item]),
    message("developer").map(lambda item: [item]),
    words.map(lambda text: [Reasoning(text)]),
    st.just([Opaque("web_search_call", "{}")]),
    _call(),
    _call(),
)


def transcripts(*, least: int = 0, largest: int = 25) -> st.SearchStrategy[tuple[Item, ...]]:
    """Conversations of so many steps, each an item or a call with its result."""
    return st.lists(_steps, min_size=least, max_size=largest).map(
        lambda steps: tuple(item for step in steps for item in step)
    )


def talk(text: str = "do it") -> tuple[Item, ...]:
    """A short conversation with one finished call and one that just came back."""
    return (
        Message("system", (Text("be brief"),)),
        Message("user", (Text(text),)),
        Message("assistant", (Text("I look"),)),
        ToolCall("a", "shell", '{"command":["ls"]}'),
        ToolResult("a", (Text("README.md"),)),
        Message("assistant", (Text("I test"),)),
        ToolCall("b", "shell", '{"command":["pytest"]}'),
        ToolResult("b", (Text("1 failed"),)),
    )
