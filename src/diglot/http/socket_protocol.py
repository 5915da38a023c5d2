"""The upgraded connection: uvicorn's WebSocket protocol, with the bounds and the orderly end that it lacks.

uvicorn waits for ever for a client that takes nothing, and when the server goes down it closes every WebSocket at
once, whatever is being answered on it. Here the application is told, ends what it has begun, and closes itself.
It does everything else; `server` names this class as uvicorn's `ws`. Neighbours: `protocol` for plain HTTP,
`websocket` for what is said.

Invariant: a client that takes nothing of what it is sent costs a bounded amount of memory for a bounded time.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

GOING_DOWN: Final = "diglot.going_down"
"""What `receive` gives, besides the messages of ASGI, when the server goes down: end what you have begun, then close."""
_GOODBYE: Final = 2.0


class BoundedSocket(WebSocketsSansIOProtocol):
    """One connection. Times are in seconds."""

    longest_stall: ClassVar[float] = 120.0  # How long a full buffer may stay full: whoever takes nothing holds a slot.

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stall: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """Wait for a client that takes too little, but not for ever."""
        super().pause_writing()
        self._stall = self.loop.call_later(self.longest_stall, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: it takes again."""
        self._forget_stall()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the application."""
        self._forget_stall()
        super().connection_lost(exc)

    async def send(self, message: Any) -> None:
        """Send a message. That a refusal ends the handshake is what uvicorn forgets, and then complains of."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True

    def shutdown(self) -> None:
        """Let the application end what it has begun; it closes the connection then. What never opened is closed now."""
        if self.handshake_complete and not self.close_sent:
            self.stop_keepalive()
            self.close_timeout = _GOODBYE  # For the client to say goodbye in turn.
            message: Any = {"type": GOING_DOWN}
            self.queue.put_nowait(message)
        else:
            super().shutdown()

    def _forget_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
