"""Server-sent events: written, and read in any pieces.

Only what a request-and-answer protocol uses: the name of an event and its data. `id` and `retry` serve
reconnection, which no answer here survives, and are read over. Source: the WHATWG HTML standard,
section 9.2. Neighbours: `lines`; dialects write, engines read.

Invariant: what `encode` writes is what `SseDecoder` gives back.
"""

from __future__ import annotations

import msgspec

from diglot.framing.lines import MAX_LINE, LineDecoder, LineTooLong

MEDIA_TYPE = "text/event-stream"
DONE = b"data: [DONE]\n\n"
HEARTBEAT = b":\n\n"


class ServerSentEvent(msgspec.Struct, frozen=True, gc=False):
    """One event. `name` is empty where the stream gives none."""

    data: bytes
    name: bytes = b""


def encode(data: bytes, name: bytes = b"") -> bytes:
    """Write one event. `data` is one line or several; `name` holds no line end."""
    head = b"event: " + name + b"\n" if name else b""
    if b"\n" in data:
        data = data.replace(b"\n", b"\ndata: ")
    return head + b"data: " + data + b"\n\n"


class SseDecoder:
    """Feed bytes, get the events that became whole. Raises LineTooLong for a line or an event over `limit` bytes."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._lines = LineDecoder(limit)
        self._limit = limit
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """Take bytes in."""
        return self._read(self._lines.feed(piece))

    def close(self) -> list[ServerSentEvent]:
        """End. An event that lacks its closing empty line is given all the same: servers that fail leave one."""
        return self._read([*self._lines.close(), b""])

    def _read(self, lines: list[bytes]) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(ServerSentEvent(b"\n".join(self._data), self._name))
                    self._data.clear()
                    self._size = 0
                self._name = b""
                continue
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                self._size += len(value) + 1
                if self._size > self._limit + 1:
                    raise LineTooLong(self._limit)
                self._data.append(value)
            elif field == b"event":
                self._name = value
        return events
