"""Lines: cut a stream of bytes into lines, whatever the pieces it comes in.

A line ends at LF, CR or CR LF, as server-sent events have it. It stays bytes: a character split over two
pieces is whole again once its line is. Neighbours: `sse` and `ndjson` read lines.

Invariant: any cutting of the same bytes gives the same lines, and no more than `limit` bytes and one
piece are ever held.
"""

from __future__ import annotations

MAX_LINE = 16 * 1024 * 1024


class LineTooLong(ValueError):
    """A line has more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"a line of the stream is longer than {limit} bytes")
        self.limit = limit


class LineDecoder:
    """Feed bytes, get the lines that became whole, without their ends. Raises LineTooLong."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._held: list[bytes] = []
        self._size = 0
        self._after_cr = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Take bytes in."""
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        if b"\r" in piece:
            self._after_cr = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *rest = piece.split(b"\n")
        if not rest:
            self._hold(first)
            return []
        whole = [self._take(first), *rest[:-1]]
        if max(map(len, whole)) > self._limit:
            raise LineTooLong(self._limit)
        self._hold(rest[-1])
        return whole

    def close(self) -> list[bytes]:
        """End: the last line needs no end of its own."""
        last = self._take(b"")
        return [last] if last else []

    def _hold(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            raise LineTooLong(self._limit)
        if part:
            self._held.append(part)

    def _take(self, end: bytes) -> bytes:
        if not self._held:
            return end
        line = b"".join((*self._held, end))
        self._held.clear()
        self._size = 0
        return line
