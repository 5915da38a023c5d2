"""Every item survives being written down."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.items import (
    Compaction,
    File,
    Image,
    Item,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    images_of,
    pictures_in,
    said,
    text_of,
    with_pictures,
)

texts = st.text(max_size=8)
marks = st.none() | texts
parts = st.one_of(
    st.builds(Text, texts),
    st.builds(Image, st.binary(max_size=16), texts),
    st.builds(File, st.binary(max_size=16), texts, texts),
)
contents = st.lists(parts, max_size=3).map(tuple)
kinds: Any = st.sampled_from(["function", "freeform"])
roles: Any = st.sampled_from(["system", "developer", "user", "assistant"])
items = st.one_of(
    st.builds(Message, roles, contents, marks, marks, marks),
    st.builds(Reasoning, texts, marks, marks),
    st.builds(ToolCall, texts, texts, texts, marks, kinds, marks),
    st.builds(ToolResult, texts, contents, marks, kinds, marks),
    st.builds(Compaction, texts, marks, marks),
    st.builds(Opaque, texts, texts),
)


@given(st.lists(items, max_size=5).map(tuple))
def test_every_item_comes_back_from_json_as_it_was(conversation: tuple[Item, ...]) -> None:
    written = msgspec.json.encode(conversation)
    assert msgspec.json.decode(written, type=tuple[Item, ...]) == conversation


@pytest.mark.parametrize("data", [b"", b"\x00\xff\x89PNG\r\n", bytes(range(256))])
def test_the_bytes_of_an_image_come_back_whole(data: bytes) -> None:
    message = Message("user", (Image(data, "image/png"),))
    assert msgspec.json.decode(msgspec.json.encode(message), type=Item) == message


def test_an_item_that_is_stored_today_is_read_by_its_tag_whatever_the_order_of_its_fields() -> None:
    written = b'{"content":[{"text":"hi","type":"text"}],"role":"user","type":"message"}'
    assert msgspec.json.decode(written, type=Item) == said("user", "hi")


def test_text_and_images_are_told_apart_in_order() -> None:
    first, second = Image(b"1", "image/png"), Image(b"2", "image/jpeg")
    content = (Text("a"), first, Text("b"), File(b"f", "application/pdf"), second)
    assert text_of(content) == "ab"
    assert images_of(content) == (first, second)
    assert Message("user", content).text == ToolResult("1", content).text == "ab"


def test_pictures_are_taken_from_where_they_stand_and_others_put_there() -> None:
    first, second, other = Image(b"1", "image/png"), Image(b"2", "image/jpeg"), Image(b"3", "image/png")
    items = (said("user", "a"), Message("user", (first, Text("b"))), ToolResult("1", (second,)), Reasoning("c"))
    assert pictures_in(items) == (first, second)
    assert with_pictures(items, (first, second)) == items
    changed = (items[0], Message("user", (other, Text("b"))), items[2], items[3])
    assert with_pictures(items, (other, second)) == changed
