"""The server process: uvicorn, with our bounds on connections and an orderly end.

It runs an application until a signal comes and knows nothing of what that application does. Neighbours:
`protocol` and `socket_protocol` for the bounds, `application` for what is run; `app` calls `run`.

Invariant: a client whose answer is called off is told so in its own protocol before its connection ends.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Awaitable, Callable

import msgspec
import uvicorn
from starlette.types import ASGIApp

from diglot.http.protocol import BoundedProtocol
from diglot.http.reply import Refusal
from diglot.http.socket_protocol import BoundedSocket

log = logging.getLogger(__name__)

_LAST_WORDS = 2.0
"""Seconds for clients to take what they are told when their answers are called off."""
_KEEP_ALIVE = 75
"""Seconds that an idle connection is kept: longer than clients keep theirs, so that they never find it closed."""


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """The sockets that listen, and how many seconds answers in flight may go on after a request to stop.

    `stall` is how many seconds a client may take nothing of its answer, `max_message` in bytes, of one message of a
    WebSocket, unpacked. `max_head` is in bytes, `head_timeout` in seconds, and `refusal` says what is wrong with a head.
    """

    sockets: list[socket.socket]
    drain: float
    stall: float
    max_message: int
    max_head: int
    head_timeout: float
    max_connections: int
    refusal: Refusal


class DrainingServer(uvicorn.Server):
    """A server that goes down in order: nobody new comes in, and answers in flight get `drain` seconds to end.

    Then `call_off` is called, which ends them with a fault, so that each client is told in the form of its
    dialect. What uvicorn would do alone is to cancel them, and their clients would be told nothing.
    """

    def __init__(self, config: uvicorn.Config, *, drain: float, call_off: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._drain = drain
        self._end_answers = call_off

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        log.info("listening on %s", ", ".join(map(_url, sockets or ())))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Go down."""
        calling_off = asyncio.create_task(self._call_off())
        try:
            await super().shutdown(sockets)
        finally:
            calling_off.cancel()
        if self.force_exit:  # By a second Ctrl-C, after which uvicorn leaves everything as it lies.
            await self._hang_up()
            await self.lifespan.shutdown()

    async def _call_off(self) -> None:
        await asyncio.sleep(self._drain)
        log.info("answers in flight are called off after %g seconds", self._drain)
        await self._end_answers()
        await asyncio.sleep(_LAST_WORDS)
        await self._hang_up()

    async def _hang_up(self) -> None:
        """End what is left as if the clients had: those who have taken nothing by now never will."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        if tasks := self.server_state.tasks:
            await asyncio.wait(tasks, timeout=_LAST_WORDS)


def _url(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(application: ASGIApp, listening: Listening, *, call_off: Callable[[], Awaitable[None]]) -> int:
    """Serve until told to stop. Returns the exit code, or raises KeyboardInterrupt after SIGINT and SIGTERM."""
    bounds = {
        "refusal": staticmethod(listening.refusal),
        "head_limit": listening.max_head,
        "patience": listening.head_timeout,
        "longest_stall": listening.stall,
        "most_connections": listening.max_connections,
    }
    config = uvicorn.Config(
        application,
        http=type("HttpConnection", (BoundedProtocol,), bounds),
        ws=type("SocketConnection", (BoundedSocket,), {"longest_stall": listening.stall}),
        ws_ping_timeout=None,  # A slow reader answers a ping late; one that takes nothing is let go for that.
        ws_max_size=listening.max_message,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # What a proxy tells of its client could be told by anybody.
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
    )
    server = DrainingServer(config, drain=listening.drain, call_off=call_off)
    # uvicorn raises the signal again once it has ended. As the default that would be a death, and it is none.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server.run(listening.sockets)
    return 0 if server.started else 1
