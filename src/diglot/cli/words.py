"""How things are said in a terminal: sizes, times, tables, and text that is not ours.

Pure: time comes in. Neighbours: the commands that print. Invariant: what `plain` gives back cannot move
the cursor, colour anything, or speak to the terminal in another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

SHORT_ID: Final = 12
_CONTROLS: Final = {code: None for code in (*range(32), *range(127, 160)) if code not in (9, 10)}
_UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB")
_STEP: Final = 1000
_FOR_EVER: Final = timedelta(days=20 * 365)
_SPANS: Final = (
    ("year", 365 * 86400),
    ("month", 30 * 86400),
    ("week", 7 * 86400),
    ("day", 86400),
    ("hour", 3600),
    ("minute", 60),
    ("second", 1),
)


def plain(text: str) -> str:
    """Return text without control characters but tabs and line ends."""
    return text.translate(_CONTROLS)


def size_in_words(count: float) -> str:
    """Return bytes in the largest unit of which there is one, such as `92 MB` or `1.9 GB`."""
    for unit in _UNITS:
        if count < _STEP or unit == _UNITS[-1]:
            break
        count /= _STEP
    small = unit not in ("B", "KB") and count < 10  # noqa: PLR2004  one digit more where it tells something
    return f"{count:.1f} {unit}" if small else f"{count:.0f} {unit}"


def span_in_words(seconds: float) -> str:
    """Return a length of time in its largest unit, such as `4 minutes`."""
    for word, length in _SPANS:
        number = int(seconds // length)
        if number:
            return f"{number} {word}{'s' if number > 1 else ''}"
    return "less than a second"


def ago(moment: datetime | None, *, now: datetime) -> str:
    """Return how long something is past."""
    if moment is None:
        return "-"
    seconds = (now - moment).total_seconds()
    return f"{span_in_words(seconds)} ago" if seconds >= 1 else "just now"


def until(moment: datetime | None, *, now: datetime) -> str:
    """Return how long something is away. A model that is to go already is on its way."""
    if moment is None or moment - now > _FOR_EVER:
        return "for ever"
    seconds = (moment - now).total_seconds()
    return f"{span_in_words(seconds)} from now" if seconds > 0 else "stopping"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under a head, in columns four blanks apart."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "    ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
