"""Thought that a model wrote into its text is told from its answer, wherever the text is cut."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.reasoning import ReasoningSplitter, overlap


def split(*pieces: str) -> tuple[str, str]:
    """Return thought and text."""
    splitter = ReasoningSplitter()
    made = [*map(splitter.feed, pieces), splitter.close()]
    return "".join(each.reasoning for each in made), "".join(each.text for each in made)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<think>hm</think>yes", ("hm", "yes")),
        ("<think>\nhm\n</think>\n\nyes", ("hm\n", "yes")),
        ("\n <think>hm</think> yes", ("hm", "yes")),
        ("<thinking>hm</thinking>yes", ("hm", "yes")),
        ("[THINK]hm[/THINK]yes", ("hm", "yes")),
        ("<think></think>yes", ("", "yes")),
        ("<think>\n\n</think>\n\nyes", ("", "yes")),
        ("<think>a < b </thin> c</think>d", ("a < b </thin> c", "d")),
        ("<think>one</think><think>two</think>", ("one", "<think>two</think>")),
        ("<think>never ends", ("never ends", "")),
        ("<think>cut </thi", ("cut </thi", "")),
        ("<think>hm</think>\n\n", ("hm", "")),
        ("<think", ("", "<think")),
        ("<thinks>", ("", "<thinks>")),
        ("yes <think>no</think>", ("", "yes <think>no</think>")),
        ("  yes", ("", "  yes")),
        (" " * 64 + "<think>hm</think>", ("hm", "")),
        (" " * 65 + "<think>hm</think>", ("", " " * 65 + "<think>hm</think>")),
        ("", ("", "")),
    ],
)
def test_what_opens_with_a_marker_is_thought_until_the_marker_closes(text: str, parts: tuple[str, str]) -> None:
    assert split(text) == parts
    assert split(*text) == parts


def test_thought_and_text_go_on_as_soon_as_they_are_sure() -> None:
    splitter = ReasoningSplitter()
    assert splitter.feed("<think>so").reasoning == "so"
    assert splitter.feed(" far <").reasoning == " far "
    assert splitter.feed("b").reasoning == "<b"
    assert splitter.feed("</think>\n").text == ""
    assert splitter.feed("\nyes").text == "yes"
    assert splitter.feed("\n<think>").text == "\n<think>"


FRAGMENTS = [
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "[THINK]",
    "[/THINK]",
    "<",
    "think",
    ">",
    " ",
    "\n",
    "x",
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=10).map("".join), st.data())
def test_any_cutting_gives_the_same_thought_and_text(text: str, data: st.DataObject) -> None:
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5))), len(text)]
    assert split(*(text[begin:end] for begin, end in pairwise(cuts))) == split(text) == split(*text)


@pytest.mark.parametrize("text", [" " * 200_000, "<think></think>" + " " * 200_000, "<think>" + " <" * 100_000])
def test_the_work_is_linear(text: str) -> None:
    begun = time.process_time()
    split(*(text[at : at + 4] for at in range(0, len(text), 4)))
    assert time.process_time() - begun < 5  # It is far below one second.


@pytest.mark.parametrize(
    ("text", "length"), [("abc", 0), ("ab</", 2), ("</think", 7), ("</think>", 0), ("", 0), ("<<", 1)]
)
def test_the_overlap_is_the_longest_end_that_may_become_the_marker(text: str, length: int) -> None:
    assert overlap(text, "</think>") == length
