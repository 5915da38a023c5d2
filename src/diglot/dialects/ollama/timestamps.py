"""Points in time as Ollama's clients read them: RFC 3339 in UTC.

No clock here: the time comes in. Invariant: every result is read by Go's and Python's parsers.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

NEVER: Final = "2200-01-01T00:00:00Z"
"""Of a model that stays for ever: the CLI prints "Forever" for what is more than 20 years away."""

_LAST: Final = 253_402_300_799
"""The last second of the year 9999, where RFC 3339 ends."""


def rfc3339(now: float) -> str:
    """Write seconds since the epoch, with microseconds."""
    return Stamper()(now).decode()


def rfc3339_ns(nanoseconds: int) -> str:
    """Write nanoseconds since the epoch, exactly."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{_seconds(seconds)}.{rest:09d}Z"


def expiry(seconds: float) -> str:
    """Write when a model goes; `inf` means never."""
    return rfc3339(seconds) if math.isfinite(seconds) else NEVER


class Stamper:
    """Writes the time of each piece of a stream; what is the same for a whole second is written once."""

    def __init__(self) -> None:
        self._second = -1
        self._text = b""

    def __call__(self, now: float) -> bytes:
        """Write seconds since the epoch, with microseconds."""
        second = int(now)
        if second != self._second:
            self._second = second
            self._text = _seconds(second).encode()
        return b"%b.%06dZ" % (self._text, (now - second) * 1_000_000)


def _seconds(second: int) -> str:
    return datetime.fromtimestamp(min(max(second, 0), _LAST), UTC).strftime("%Y-%m-%dT%H:%M:%S")
