"""Lines come out the same however the bytes were cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.framing.lines import LineDecoder, LineTooLong


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut bytes at some places."""
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[begin:end] for begin, end in itertools.pairwise(edges)]


def lines_of(pieces: list[bytes], limit: int = 1000) -> list[bytes]:
    decoder = LineDecoder(limit)
    return [line for piece in pieces for line in decoder.feed(piece)] + decoder.close()


@given(
    st.lists(st.sampled_from(["a", "é", "日本", "\N{PARTY POPPER}", "\n", "\r", "\r\n", ""]), max_size=30),
    st.lists(st.integers(0, 200)),
)
def test_any_cutting_gives_the_same_lines(parts: list[str], places: list[int]) -> None:
    data = "".join(parts).encode()
    expected = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert lines_of(cut(data, places)) == expected


def test_a_pair_of_line_ends_may_be_cut_in_two() -> None:
    assert lines_of([b"one\r", b"\ntwo\r", b"", b"\n"]) == [b"one", b"two"]


@pytest.mark.parametrize(
    "pieces", [[b"12345678901"], [b"123456", b"78901"], [b"12345678901\n"], [b"123456", b"78901\n"]]
)
def test_a_line_over_the_limit_is_refused(pieces: list[bytes]) -> None:
    with pytest.raises(LineTooLong, match="10 bytes"):
        lines_of(pieces, limit=10)


def test_a_line_of_exactly_the_limit_is_taken() -> None:
    assert lines_of([b"12345", b"67890\n"], limit=10) == [b"1234567890"]
