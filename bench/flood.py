"""The client of the flood: opens streams at once and counts their events, in a process of its own.

`python -m bench.flood PORT PATH STREAMS` reads the body from standard input and prints events and seconds as JSON. It
looks at bytes only, so that it is faster than any server: an event is what ends in the mark that its framing ends with.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from functools import partial

from bench.sides import pin


class Counting(asyncio.Protocol):
    """One stream. `ended` gets the number of marks in its body."""

    def __init__(self, request: bytes, mark: bytes, ended: asyncio.Future[int]) -> None:
        self._request = request
        self._mark = mark
        self._ended = ended
        self._count = 0
        self._left = b""
        self._good = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Count; a mark that is cut in two is put together."""
        self._good = self._good or data.startswith(b"HTTP/1.1 200")
        text = self._left + data
        self._count += text.count(self._mark)
        self._left = text[-(len(self._mark) - 1) :] if len(self._mark) > 1 and not text.endswith(self._mark) else b""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  how it ended makes no difference
        """Tell the count, which is 0 for an answer that was none."""
        if not self._ended.done():
            self._ended.set_result(self._count if self._good else 0)


async def flood(port: int, path: str, streams: int, body: bytes) -> tuple[int, float]:
    """Open all streams, read them to their ends; return events and seconds."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    mark = b"\n\n" if path.startswith("/v1") else b"}\n"
    loop = asyncio.get_running_loop()
    counts = [loop.create_future() for _ in range(streams)]
    begun = time.perf_counter()
    for count in counts:
        await loop.create_connection(partial(Counting, head.encode() + body, mark, count), "127.0.0.1", port)
    events = sum(await asyncio.gather(*counts))
    return events, time.perf_counter() - begun


def main() -> None:
    """Flood once for each line of standard input."""
    port, path, streams, *cores = sys.argv[1:]
    pin(os.getpid(), [int(core) for core in cores])
    for line in sys.stdin:
        events, seconds = asyncio.run(flood(int(port), path, int(streams), line.strip().encode()))
        print(json.dumps({"events": events, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
