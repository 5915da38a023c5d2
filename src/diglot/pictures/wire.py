"""What the process that decodes and its parent say to each other: pictures one way, verdicts the other.

A picture is the index of its kind, its length and its bytes; a verdict is a byte, then the length and the bytes of the
picture as every engine reads it, of none where that is the picture itself. Neighbours: `studio` and `__main__`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import BinaryIO, Final

HEAD: Final = struct.Struct(">BI")
KINDS: Final[Mapping[str, str]] = MappingProxyType({"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP"})
_NAMES: Final = tuple(KINDS)


class Verdict(IntEnum):
    """What there is to say of a picture."""

    WHOLE = 0
    DAMAGED = 1
    TOO_LARGE = 2


def picture_bytes(kind: str, data: bytes) -> bytes:
    """Return a picture as it is sent."""
    return HEAD.pack(_NAMES.index(kind), len(data)) + data


def read_picture(source: BinaryIO) -> tuple[str, bytes] | None:
    """Return the next picture's kind and bytes, None at the end."""
    head = source.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    kind, length = HEAD.unpack(head)
    return _NAMES[kind], source.read(length)


def write_verdict(target: BinaryIO, verdict: Verdict, shown: bytes = b"") -> None:
    """Say a word on a picture at once: the next one may end the process."""
    target.write(HEAD.pack(verdict, len(shown)) + shown)
    target.flush()
