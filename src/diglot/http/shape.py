"""Shape: how deep a body of JSON is nested and how many values it holds, before it is decoded.

A decoder makes sixty bytes of memory of the three in `[],`, and whoever walks what it made goes as deep as it is.
This looks at the marks between strings only, a piece at a time and mostly in C; it is no parser and lets
broken JSON pass, which the decoder refuses. Neighbour: `http.body`.

Invariant: time is linear in the bytes, memory bounded by the piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from diglot.core.errors import MalformedBody, TooMany

_PIECE: Final = 1 << 17
_BACKSLASHES: Final = re.compile(rb"\\*")
_OPENED: Final = 0x01
_CLOSED: Final = 0xFF
"""Minus one, read as a signed byte."""
_STEPS: Final = bytes.maketrans(b"[{]}", bytes((_OPENED, _OPENED, _CLOSED, _CLOSED)))
_OTHERS: Final = bytes(set(range(256)) - set(b"[{]}"))


def check_shape(body: bytes, *, depth: int, values: int) -> None:
    """Raise MalformedBody where `body` is nested deeper than `depth`, TooMany where it has more than `values` values."""
    opened = body.count(b"[") + body.count(b"{")
    if opened <= depth and opened + body.count(b",") < values:
        return  # Also with all that stands in strings.
    level, held = 0, 1
    for marks in _outside_of_strings(body):
        steps = marks.translate(_STEPS, _OTHERS)
        opened = steps.count(_OPENED)
        held += opened + marks.count(b",")
        if held > values:
            raise TooMany("body", count=held, limit=values, kind="values")
        if level + opened > depth and max(accumulate(memoryview(steps).cast("b"), initial=level)) > depth:
            raise MalformedBody(f"the body is nested deeper than the limit of {depth}")
        level += opened - steps.count(_CLOSED)


def _outside_of_strings(body: bytes) -> Iterator[bytes]:
    """Yield what stands between the strings of JSON, in pieces."""
    at, inside = 0, False
    while at < len(body):
        end = at + _PIECE
        if body[end - 1 : end] == b"\\":  # What it escapes belongs to it.
            found = _BACKSLASHES.match(body, end)
            end = (found.end() if found else end) + 1
        parts = body[at:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(parts[inside::2])
        inside ^= len(parts) % 2 == 0
        at = end
