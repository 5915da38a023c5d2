"""Digests: how a content is named by what it holds.

Invariant: a `Digest` is 64 hex digits, so that no other text that comes from outside becomes a path.
"""

from __future__ import annotations

import re
from typing import Self

import msgspec

_DIGEST = re.compile(r"sha256[:-]([0-9a-fA-F]{64})")


class Digest(msgspec.Struct, frozen=True):
    """The sha256 of a content: 64 lower-case hex digits."""

    hex: str

    def __post_init__(self) -> None:
        """Refuse everything else, whoever made this."""
        if not re.fullmatch(r"[0-9a-f]{64}", self.hex):
            raise ValueError(f"{self.hex!r} is no sha256 in hex")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `sha256:<hex>` or `sha256-<hex>`. Raises ValueError."""
        match = _DIGEST.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no digest of the form sha256:<64 hex digits>")
        return cls(match[1].lower())

    def __str__(self) -> str:
        return f"sha256:{self.hex}"


def digests_in(data: bytes) -> frozenset[Digest]:
    """Return every digest that stands anywhere in a document, also in a damaged one."""
    return frozenset(Digest(found.lower()) for found in _DIGEST.findall(data.decode("utf-8", errors="replace")))
