"""Numerals: whole numbers that a client wrote with a fraction of nothing, as `10.0`.

JSON has one kind of number, and languages that have too write a whole one so. The decoders are strict, so what they
refuse is written anew here, once. Neighbours: the decoding of each dialect.

Invariant: strings stay as they are, and so does every number's value.
"""

from __future__ import annotations

import re
from typing import Final

_UNIT: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(-?\d++)\.0++(?![\deE])', re.DOTALL)


def with_whole_numbers(body: bytes) -> bytes:
    """Return JSON in which no whole number has a fraction."""
    return _UNIT.sub(lambda found: found[1] or found[0], body)
