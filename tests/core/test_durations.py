"""Durations: numbers of seconds, and texts in Go's notation."""

import math

import pytest

from diglot.core.durations import InvalidDuration, seconds_of


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (5, 5.0),
        (0.5, 0.5),
        (0, 0.0),
        ("0", 0.0),
        ("0s", 0.0),
        ("300ms", 0.3),
        ("1.5h", 5400.0),
        ("2h45m", 9900.0),
        (".5m", 30.0),
        ("+1s", 1.0),
        ("10us", 1e-5),
        ("10µs", 1e-5),
        ("10μs", 1e-5),
        ("10ns", 1e-8),
        (-1, math.inf),
        ("-1s", math.inf),
        ("-0s", 0.0),
        ("300", 300.0),
        ("1.5", 1.5),
        ("-1", math.inf),
    ],
)
def test_a_duration_is_read(written: float | str, seconds: float) -> None:
    assert seconds_of(written) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "-", "soon", "5 m", "1d", "s", ".s", "1m30", "1e3s", "\u0661s", "1s" * 40])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidDuration):
        seconds_of(text)


def test_a_number_without_a_unit_is_told_so() -> None:
    with pytest.raises(InvalidDuration, match="missing unit"):
        seconds_of("1m30")
