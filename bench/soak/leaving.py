"""Leaving: clients that go before anything has come, each over a connection of its own.

At every stage: half of the head, half of the body, all of it sent and nothing awaited, while others hold the slots or
the model loads. What the server makes of that is seen in what it holds afterwards.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final
from urllib.parse import urlsplit

import httpx2

from bench.soak.mix import CHAT, EMBEDDING, Card, Ending

_BODIES: Final = {
    "/api/chat": {"model": CHAT, "messages": [{"role": "user", "content": "Go on."}], "stream": False},
    "/v1/chat/completions": {"model": CHAT, "messages": [{"role": "user", "content": "Go on."}], "stream": True},
    "/v1/responses": {"model": CHAT, "input": "Go on.", "store": True},
    "/v1/embeddings": {"model": EMBEDDING, "input": ["Go on."]},
}


def _sent(share: float) -> Callable[[httpx2.AsyncClient, Random], Awaitable[Ending]]:
    async def play(client: httpx2.AsyncClient, random: Random) -> Ending:
        path, body = random.choice(list(_BODIES.items()))
        content = json.dumps(body).encode()
        parts = urlsplit(str(client.base_url))
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n".encode()
        request = head + content
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(request[: int(len(request) * share)])
        await writer.drain()
        for _ in range(random.randrange(20)):  # A while that is not measured: the requests of others go on.
            await client.get("/health")
        writer.transport.abort()
        return Ending("left")

    return play


def leavers() -> list[Card]:
    """Return the cards."""
    return [
        Card("left in the head", _sent(0.2)),
        Card("left in the body", _sent(0.9)),
        Card("left before an answer", _sent(1.0), times=3),
    ]
