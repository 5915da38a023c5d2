"""Abridging: shorter, with both ends."""

import json

from hypothesis import given
from hypothesis import strategies as st

from diglot.core.compaction.abridge import abridged, length_of, shortened
from diglot.core.items import Image, Item, Text, ToolCall, ToolResult, said
from tests.core.compaction.transcripts import PNG, transcripts


@given(st.text(max_size=3000), st.integers(80, 2000))
def test_it_is_never_longer_than_asked_and_a_short_text_is_as_it_was(text: str, characters: int) -> None:
    short = shortened(text, characters)
    assert len(short) <= characters
    assert short == text or len(text) > characters


def test_the_beginning_and_the_end_stay_and_the_middle_says_how_much_is_gone() -> None:
    text = "BEGIN" + "x" * 1000 + "END"
    short = shortened(text, 120)
    assert short.startswith("BEGIN")
    assert short.endswith("END")
    assert "characters left out" in short


@given(transcripts(), st.integers(80, 400))
def test_every_kind_of_item_can_be_abridged_and_keeps_its_kind(items: tuple[Item, ...], characters: int) -> None:
    for item in items:
        short = abridged(item, characters)
        assert type(short) is type(item)
        assert length_of(short) <= characters


def test_images_stay() -> None:
    result = ToolResult("a", (Text("y" * 500), Image(PNG, "image/png")))
    short = abridged(result, 100)
    assert isinstance(short, ToolResult)
    assert short.content[-1] == Image(PNG, "image/png")
    assert abridged(said("user", "short"), 100) == said("user", "short")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=20), inner, max_size=5),
    max_leaves=20,
)


@given(json_values, st.integers(80, 400))
def test_arguments_that_are_abridged_are_an_object_still(value: object, characters: int) -> None:
    short = abridged(ToolCall("a", "f", json.dumps(value)), characters)
    assert isinstance(short, ToolCall)
    assert len(short.arguments) <= max(
        characters, len(json.dumps(value)) if len(json.dumps(value)) <= characters else 0
    )
    assert isinstance(json.loads(short.arguments), dict) or len(json.dumps(value)) <= characters


def test_only_long_texts_in_arguments_are_shortened() -> None:
    call = ToolCall("a", "write", json.dumps({"path": "src/a.py", "content": "x" * 5000, "mode": 420}))
    short = abridged(call, 300)
    assert isinstance(short, ToolCall)
    told = json.loads(short.arguments)
    assert (told["path"], told["mode"]) == ("src/a.py", 420)
    assert "characters left out" in told["content"]
