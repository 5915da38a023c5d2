"""Codings: bodies that came compressed, unpacked within bounds. Pure.

Codex sends zstd where it is logged in; others send gzip. A few kilobytes can unpack to gigabytes, so nothing is
unpacked further than the limit. The packages for zstd and Brotli are loaded when the first such body comes.
Source: RFC 9110, section 8.4; RFC 8878 for the window of zstd. Neighbour: `http.body`.

Invariant: never more than `limit` bytes come out, whatever goes in.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from diglot.core.errors import BodyTooLarge, MalformedBody, UnknownCoding

_MOST_CODINGS: Final = 2
_PIECE: Final = 1 << 20
_ZSTD_WINDOW: Final = 23
"""The binary logarithm of 8 MiB, which every reader of zstd must bear and no more."""
_WITH_HEADER: Final = zlib.MAX_WBITS
_GZIP: Final = zlib.MAX_WBITS | 16


class _Corrupt(Exception):
    """What came is not of its coding."""


class _Unpacking(Protocol):
    """Unpacks at most so many bytes more. Nothing means that there is no more to come."""

    def __call__(self, most: int) -> bytes: ...


def codings_of(header: str) -> tuple[str, ...]:
    """Return the codings of a Content-Encoding header in the order in which they are undone. Raises UnknownCoding."""
    named = [name.strip().lower() for name in header.split(",")]
    codings = tuple(reversed([name for name in named if name not in ("", "identity")]))
    for coding in codings:
        if coding not in _CODINGS:
            raise UnknownCoding(coding[:40], known=", ".join(name for name in _CODINGS if not name.startswith("x-")))
    if len(codings) > _MOST_CODINGS:
        raise UnknownCoding(header[:40], known=f"{_MOST_CODINGS} at a time")
    return codings


def decoded(body: bytes, codings: tuple[str, ...], *, limit: int) -> bytes:
    """Return the body as it was before it was coded. Raises BodyTooLarge and MalformedBody."""
    for coding in codings:
        try:
            body = _unpacked(_CODINGS[coding](body), limit)
        except _Corrupt:
            raise MalformedBody(f"the body is no valid {coding}") from None
    return body


def _unpacked(unpacking: _Unpacking, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := unpacking(min(_PIECE, limit - size + 1)):
        size += len(piece)
        if size > limit:
            raise BodyTooLarge(limit, unpacked=True)
        pieces.append(piece)
    return b"".join(pieces)


def _zlib(window: int) -> Callable[[bytes], _Unpacking]:
    def begin(body: bytes) -> _Unpacking:
        unpacker = zlib.decompressobj(window)
        left = body

        def more(most: int) -> bytes:
            nonlocal left
            try:
                piece = unpacker.decompress(left, most)
            except zlib.error as error:
                raise _Corrupt from error
            left = unpacker.unconsumed_tail
            if not piece and not (unpacker.eof and not unpacker.unused_data):
                raise _Corrupt
            return piece

        return more

    return begin


def _deflate(body: bytes) -> _Unpacking:
    """Begin with deflate, which half of the world writes without its header."""
    header = len(body) > 1 and body[0] & 0x0F == zlib.DEFLATED and (body[0] << 8 | body[1]) % 31 == 0
    return _zlib(_WITH_HEADER if header else -zlib.MAX_WBITS)(body)


def _zstd(body: bytes) -> _Unpacking:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415  loaded when it is needed
    else:
        from backports import zstd  # noqa: PLC0415  as above

    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW}
    unpacker = zstd.ZstdDecompressor(options=options)
    left = body

    def more(most: int) -> bytes:
        nonlocal unpacker, left
        while True:
            try:
                piece = b"" if unpacker.eof else unpacker.decompress(left, most)
            except zstd.ZstdError as error:
                raise _Corrupt from error
            left = b""
            if piece:
                return piece
            if not unpacker.eof:
                raise _Corrupt
            if not unpacker.unused_data:
                return b""
            left, unpacker = unpacker.unused_data, zstd.ZstdDecompressor(options=options)

    return more


def _brotli(body: bytes) -> _Unpacking:
    import brotli  # noqa: PLC0415  loaded when it is needed

    unpacker = brotli.Decompressor()
    left = body

    def more(most: int) -> bytes:
        nonlocal left
        if unpacker.is_finished():
            return b""
        try:
            piece = unpacker.process(left, output_buffer_limit=most)
        except brotli.error as error:
            raise _Corrupt from error
        left = b""
        if not piece and not unpacker.is_finished():
            raise _Corrupt
        return bytes(piece)

    return more


_CODINGS: Final[Mapping[str, Callable[[bytes], _Unpacking]]] = {
    "zstd": _zstd,
    "gzip": _zlib(_GZIP),
    "x-gzip": _zlib(_GZIP),
    "br": _brotli,
    "deflate": _deflate,
}
