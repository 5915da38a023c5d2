"""A chart of lines or bars as SVG, written by hand: no library draws it, and it reads on light and dark pages.

Pure. Values are shares of 1; a series is drawn in its own colour, with its name beside its last point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

import msgspec

_COLOURS = ("#0b7285", "#c2255c", "#e8930c")
_WIDTH, _HEIGHT = 300, 190
_LEFT, _TOP, _BELOW, _GAP = 36, 44, 34, 24
_TICKS = (0.0, 0.5, 1.0)


class Panel(msgspec.Struct, frozen=True):
    """A small chart: what it shows, what stands below each point, and a series of values for each name."""

    title: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float]]
    targets: Sequence[float | None] = ()


def chart(panels: Sequence[Panel], names: Sequence[str]) -> str:
    """Return the panels side by side, with one legend above them."""
    wide = len(panels) * (_WIDTH + _GAP)
    high = _TOP + _HEIGHT + _BELOW
    size = f'viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
    font = 'font-family="system-ui, sans-serif" font-size="11" fill="#868e96"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>']
    for place, name in enumerate(names):
        x = _LEFT + place * 110
        parts.append(f'<rect x="{x}" y="6" width="10" height="10" fill="{_COLOURS[place]}"/>')
        parts.append(f'<text x="{x + 15}" y="15">{escape(name)}</text>')
    for place, panel in enumerate(panels):
        parts.append(f'<g transform="translate({place * (_WIDTH + _GAP)} {_TOP})">{_drawn(panel, names)}</g>')
    return "\n".join([*parts, "</svg>\n"])


def _drawn(panel: Panel, names: Sequence[str]) -> str:
    parts = [f'<text x="{_LEFT}" y="-10" font-weight="bold">{escape(panel.title)}</text>']
    for tick in _TICKS:
        y = _y(tick)
        parts.append(
            f'<path d="M{_LEFT} {y:.1f}H{_WIDTH}" stroke="#868e96" stroke-opacity="0.3"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
        )
    slot = (_WIDTH - _LEFT) / len(panel.labels)
    for place, label in enumerate(panel.labels):
        middle = _LEFT + slot * (place + 0.5)
        parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT + 16}" text-anchor="middle">{escape(label)}</text>')
        bar = slot * 0.7 / len(panel.series)
        for at, name in enumerate(each for each in names if each in panel.series):
            value = panel.series[name][place]
            x, y = middle - slot * 0.35 + at * bar, _y(value)
            parts.append(
                f'<rect x="{x:.1f}" y="{min(y, _HEIGHT - 1):.1f}" width="{bar - 2:.1f}" '
                f'height="{max(1.0, _HEIGHT - y):.1f}" fill="{_COLOURS[at]}"/>'
                f'<text x="{x + bar / 2 - 1:.1f}" y="{y - 3:.1f}" text-anchor="middle" font-size="9">{value:.2f}</text>'
            )
        target = panel.targets[place] if panel.targets else None
        if target is not None:
            parts.append(
                f'<path d="M{middle - slot * 0.4:.1f} {_y(target):.1f}h{slot * 0.8:.1f}" '
                'stroke="#868e96" stroke-dasharray="3 3"/>'
            )
    return "".join(parts)


def _y(value: float) -> float:
    return _HEIGHT * (1 - min(1.0, value) * 0.93)
