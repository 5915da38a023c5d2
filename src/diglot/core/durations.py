"""How long: durations as clients of this kind of server write them.

A number counts seconds, also as a text, which Ollama refuses and its clients send all the same (`"-1"`); any other
text is in the notation of Go's `time.ParseDuration` (`300ms`, `1.5h`, `2h45m`).
A negative duration means "for ever" wherever one is asked for here. No dates, no time zones.
"""

from __future__ import annotations

import math
import re
from typing import Final

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_STRETCH = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_BARE = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
_LONGEST = 64


class InvalidDuration(ValueError):
    """The text is no duration; the message says what is wrong with it."""


def seconds_of(value: float | str) -> float:
    """Return seconds; `inf` for every negative duration. Raises InvalidDuration."""
    seconds = _parse(value) if isinstance(value, str) else float(value)
    return math.inf if seconds < 0 else seconds


def _parse(text: str) -> float:
    sign = -1.0 if text.startswith("-") else 1.0
    rest = text[1:] if text[:1] in {"-", "+"} else text
    if not rest or len(rest) > _LONGEST:
        raise InvalidDuration("invalid duration")
    if _BARE.fullmatch(rest):
        return sign * float(rest)
    total, end = 0.0, 0
    while end < len(rest):
        found = _STRETCH.match(rest, end)
        if found is None:
            missing = _BARE.fullmatch(rest[end:])
            raise InvalidDuration("missing unit in duration" if missing else "invalid duration")
        total += float(found[1]) * _UNITS[found[2]]
        end = found.end()
    return sign * total
