"""Abridging: shorter, with both ends."""

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
        assert length_of(short) <= max(characters, 0) or length_of(short) == length_of(item)


def test_images_stay_and_function_arguments_are_not_cut() -> None:
    result = ToolResult("a", (Text("y" * 500), Image(PNG, "image/png")))
    short = abridged(result, 100)
    assert isinstance(short, ToolResult)
    assert short.content[-1] == Image(PNG, "image/png")
    call = ToolCall("a", "f", '{"a":"' + "y" * 500 + '"}')
    assert abridged(call, 100) == call
    assert abridged(said("user", "short"), 100) == said("user", "short")
