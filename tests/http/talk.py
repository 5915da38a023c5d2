"""A WebSocket over ASGI, for tests to hold in their hand."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.types import ASGIApp, Message

from diglot.http.socket_protocol import GOING_DOWN


class Talk:
    """One connection over ASGI, in a task."""

    def __init__(self, app: ASGIApp, *, path: str = "/talk", headers: dict[str, str] | None = None) -> None:
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._inbox.put_nowait({"type": "websocket.connect"})
        self.sent: list[Message] = []
        self.gone = False
        told = {"host": "localhost:11435", **(headers or {})}
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in told.items()],
        }
        self.task: asyncio.Task[None] = asyncio.ensure_future(app(scope, self._inbox.get, self._send))

    async def _send(self, message: Message) -> None:
        if self.gone:
            raise OSError("the client has left")
        self.sent.append(message)

    def go_down(self) -> None:
        """Tell it as our server does that it goes down."""
        self._inbox.put_nowait({"type": GOING_DOWN})

    def say(self, body: Any) -> None:
        """Send a message."""
        self._inbox.put_nowait({"type": "websocket.receive", "text": json.dumps(body)})

    async def leave(self) -> None:
        """Hang up, and wait for the end."""
        self._inbox.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await self.task

    @property
    def lines(self) -> list[str]:
        """The messages that have come back."""
        return [message["text"] for message in self.sent if message["type"] == "websocket.send"]
