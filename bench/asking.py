"""Asking: one light client for both sides, so that what it costs is the same on both.

It is the client that Diglot itself asks its engine with, one connection for each request.
"""

from __future__ import annotations

import time

import msgspec

from diglot.engines.peer.chunks import decode_chunk
from diglot.engines.peer.transport import Transport, read_all
from diglot.framing.sse import SseDecoder

_LARGEST = 1 << 28


class Streamed(msgspec.Struct):
    """A streamed answer: seconds of a monotonic clock when it was asked for, began and ended, and its tokens."""

    asked: float
    first: float
    last: float
    tokens: int


class AskedInVain(Exception):
    """The other side did not answer as it should; the text is what it said."""


async def stream(transport: Transport, body: dict[str, object]) -> Streamed:
    """Ask for a chat and read it to its end."""
    asked = time.perf_counter()
    first, last, tokens = 0.0, 0.0, 0
    decoder = SseDecoder()
    async with transport.send("POST", "/v1/chat/completions", msgspec.json.encode(body)) as reply:
        if reply.status != 200:
            raise AskedInVain((await read_all(reply, limit=_LARGEST)).decode(errors="replace"))
        async for piece in reply.pieces():
            now = time.perf_counter()
            for event in decoder.feed(piece):
                if event.data == b"[DONE]":
                    continue
                chunk = decode_chunk(event.data)
                if chunk.usage is not None:
                    tokens = chunk.usage.completion_tokens or tokens
                for choice in chunk.choices:
                    if choice.delta is not None and choice.delta.content:
                        first, last = first or now, now
    if not first:
        raise AskedInVain("the answer has no text")
    return Streamed(asked, first, last, tokens)


async def ask(transport: Transport, path: str, body: dict[str, object]) -> bytes:
    """Ask for something whole."""
    async with transport.send("POST", path, msgspec.json.encode(body)) as reply:
        answer = await read_all(reply, limit=_LARGEST)
        if reply.status != 200:
            raise AskedInVain(answer.decode(errors="replace"))
        return answer
