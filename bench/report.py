"""A line of the report: what was measured, its median and spread, and whether it is as good as it has to be.

Pure: it measures nothing. Every value is the median of several, with the least and the greatest beside it, because
a machine that others use too makes single values worthless.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec


class Target(msgspec.Struct, frozen=True):
    """What a median has to be: at least or at most `value`."""

    value: float
    least: bool = False

    def met(self, value: float) -> bool:
        """Whether a value is good enough."""
        return value >= self.value if self.least else value <= self.value


def at_least(value: float) -> Target:
    """Return a target for what is to be large."""
    return Target(value, least=True)


def at_most(value: float) -> Target:
    """Return a target for what is to be small."""
    return Target(value)


class Line(msgspec.Struct, frozen=True):
    """One measurement. `form` formats a value, such as `{:.2f}`; `unit` stands behind it; `note` says what else there is to know."""

    what: str
    values: tuple[float, ...]
    form: str
    unit: str = ""
    target: Target | None = None
    note: str = ""

    @property
    def median(self) -> float:
        """The value that half of all are not above."""
        return median(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        return None if self.target is None else self.target.met(self.median)

    def cells(self) -> tuple[str, ...]:
        """Return what, value, spread, target, verdict and note as text."""
        low, high = self.form.format(min(self.values)), self.form.format(max(self.values))
        wanted = "" if self.target is None else f"{'>=' if self.target.least else '<='} {self._told(self.target.value)}"
        verdict = {True: "met", False: "NOT MET", None: ""}[self.met]
        return (self.what, self._told(self.median), f"{low}..{high}", wanted, verdict, self.note)

    def _told(self, value: float) -> str:
        return f"{self.form.format(value)} {self.unit}".rstrip()


HEAD = ("what", "median", "spread", "target", "", "")


def ratios(ours: Sequence[float], alone: Sequence[float]) -> tuple[float, ...]:
    """Return the ratio of each pair."""
    return tuple(one / other for one, other in zip(ours, alone, strict=True))


def differences(ours: Sequence[float], alone: Sequence[float]) -> tuple[float, ...]:
    """Return the difference of each pair."""
    return tuple(one - other for one, other in zip(ours, alone, strict=True))


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Return rows as lines of text with their cells one below the other."""
    rows = list(rows)
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))] if rows else []
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
