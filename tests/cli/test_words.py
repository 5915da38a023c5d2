"""Sizes, times, tables, progress, and text that is not ours."""

import io
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.cli.progress import Progress
from diglot.cli.words import ago, plain, size_in_words, table, until

NOW: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 KB"), (1_900_000_000, "1.9 GB"), (92_871_040, "93 MB"), (10**18, "1000 PB")],
)
def test_sizes_are_in_the_largest_unit(count: int, words: str) -> None:
    assert size_in_words(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.5, "just now"), (-5, "just now"), (61, "1 minute ago"), (3 * 86400, "3 days ago")]
)
def test_the_past_is_told(seconds: float, words: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), now=NOW) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(299, "4 minutes from now"), (-1, "stopping"), (50 * 365 * 86400, "for ever")]
)
def test_the_future_is_told(seconds: float, words: str) -> None:
    assert until(NOW + timedelta(seconds=seconds), now=NOW) == words


def test_columns_line_up() -> None:
    assert table(("A", "LONG"), [("long cell", "x"), ("y", "z")]) == "A            LONG\nlong cell    x\ny            z"


@given(st.text())
def test_nothing_in_plain_text_speaks_to_a_terminal(text: str) -> None:
    assert all(each in "\t\n" or (ord(each) >= 32 and not 127 <= ord(each) < 160) for each in plain(text))


def test_plain_text_stays_as_it_is() -> None:
    assert plain("Gr\u00fc\u00dfe\n\t\U0001f600") == "Gr\u00fc\u00dfe\n\t\U0001f600"


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


def test_progress_is_drawn_and_taken_away() -> None:
    screen, times = Screen(), iter([0.0, 0.05, 1.0])
    with Progress(screen, clock=lambda: next(times)) as progress:
        progress.bytes("pulling", 10, 100)
        progress.bytes("pulling", 11, 100)  # Too soon after the last.
        progress.bytes("pulling", 50, 100)
    written = screen.getvalue()
    assert "10%" in written
    assert "11%" not in written
    assert "50 B of 100 B" in written
    assert written.endswith("\r\x1b[K")


def test_progress_of_what_nobody_knows_is_its_name() -> None:
    screen = Screen()
    with Progress(screen) as progress:
        progress.bytes("verifying", 0, 0)
        assert "%" not in screen.getvalue()
        assert "verifying" in screen.getvalue()


def test_progress_is_silent_without_a_terminal() -> None:
    stream = io.StringIO()
    with Progress(stream) as progress:
        progress.bytes("pulling", 10, 100)
    assert stream.getvalue() == ""
