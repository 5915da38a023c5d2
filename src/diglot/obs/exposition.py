"""Exposition: numbers in the text that Prometheus reads, and in its successor OpenMetrics.

Two formats that differ in little: https://prometheus.io/docs/instrumenting/exposition_formats (0.0.4) and
https://prometheus.io/docs/specs/om/open_metrics_spec (1.0.0). It keeps no numbers and knows none by name: `http.metrics`
brings them.

Invariant: whatever a label's value holds, each sample is one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal

import msgspec

PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


class Sample(msgspec.Struct, frozen=True):
    """One number. `suffix` is what the name of the family is followed by."""

    value: float
    labels: Labels = ()
    suffix: str = ""


class Family(msgspec.Struct, frozen=True):
    """All samples of one name, which for a counter does not end in `_total`: its samples do."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    told: str
    samples: tuple[Sample, ...]


def counter(name: str, told: str, values: Iterable[tuple[Labels, float]]) -> Family:
    """Return a family of numbers that only grow."""
    return Family(name, "counter", told, tuple(Sample(value, labels, "_total") for labels, value in values))


def gauge(name: str, told: str, values: Iterable[tuple[Labels, float]]) -> Family:
    """Return a family of numbers that go up and down."""
    return Family(name, "gauge", told, tuple(Sample(value, labels) for labels, value in values))


def histogram(
    name: str, told: str, values: Iterable[tuple[Labels, Sequence[int], float]], *, bounds: Sequence[float]
) -> Family:
    """Return a family of distributions: how many values lie in each bucket (one more than `bounds`), and their sum."""
    samples: list[Sample] = []
    for labels, counts, total in values:
        edges = (*map(_number, bounds), "+Inf")
        heights = list(accumulate(counts))
        samples += [
            Sample(height, (*labels, ("le", edge)), "_bucket") for edge, height in zip(edges, heights, strict=True)
        ]
        samples += [Sample(heights[-1], labels, "_count"), Sample(total, labels, "_sum")]
    return Family(name, "histogram", told, tuple(samples))


def exposition(families: Iterable[Family], *, openmetrics: bool = False) -> bytes:
    """Write families down. Those without samples are left out."""
    lines = [line for family in families if family.samples for line in _lines(family, openmetrics=openmetrics)]
    if openmetrics:
        lines.append("# EOF")
    return "".join(f"{line}\n" for line in lines).encode()


def _lines(family: Family, *, openmetrics: bool) -> Iterator[str]:
    name = family.name if openmetrics or family.kind != "counter" else f"{family.name}_total"
    yield f"# HELP {name} {family.told}"
    yield f"# TYPE {name} {family.kind}"
    for sample in family.samples:
        labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in sample.labels)
        yield f"{family.name}{sample.suffix}{f'{{{labels}}}' if labels else ''} {_number(sample.value)}"


def _number(value: float) -> str:
    return repr(float(value))


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
