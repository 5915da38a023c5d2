"""Newline-delimited JSON: one value a line, written, and read in any pieces.

Values stay bytes: whoever reads them knows their type. Neighbours: `lines`; dialects write, clients read.

Invariant: what `encode` writes is what `NdjsonDecoder` gives back.
"""

from __future__ import annotations

from diglot.framing.lines import MAX_LINE, LineDecoder

MEDIA_TYPE = "application/x-ndjson"


def encode(value: bytes) -> bytes:
    """Write one JSON text, which holds no line end, as JSON encoders write it."""
    return value + b"\n"


class NdjsonDecoder:
    """Feed bytes, get the values that became whole; empty lines are read over. Raises LineTooLong."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._lines = LineDecoder(limit)

    def feed(self, piece: bytes) -> list[bytes]:
        """Take bytes in."""
        return [line for line in self._lines.feed(piece) if line]

    def close(self) -> list[bytes]:
        """End: the last value needs no line end of its own."""
        return [line for line in self._lines.close() if line]
