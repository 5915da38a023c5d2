"""The connection: uvicorn's HTTP protocol on httptools, with bounds where it has none.

uvicorn reads a request's head, its trailers and what is left of a body that was answered early without limit
of size or time, keeps any number of silent connections, waits for ever for a client that takes nothing, and forgets to tell a running request that its
pipelined connection is gone. It does everything else; `app` names this class as uvicorn's `http`. (The h11
implementation bounds heads too, at nearly twice the processor time for each piece of a stream.)

Invariant: a connection that is not being answered, or takes nothing of its answer, costs a bounded amount of memory
for a bounded time.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from diglot.core.errors import AnyFault, Busy, HeadTooLarge, TooSlow
from diglot.dialects.operation import Rendered


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Sizes are in bytes, times in seconds."""

    head_limit: ClassVar[int] = 64 * 1024
    patience: ClassVar[float] = 30.0
    longest_stall: ClassVar[float] = 120.0  # How long a full buffer may stay full: whoever takes nothing holds a slot.
    most_connections: ClassVar[int] = 500  # Half of the files that a process may have open by default.
    most_pipelined: ClassVar[int] = 16

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._overhead = 0  # Bytes in a row that belong to no body.
        self._timer: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._answering: RequestResponseCycle | None = None

    @staticmethod
    def refusal(path: str, fault: AnyFault) -> Rendered:
        """Render a fault in the form of the dialect that a path belongs to: whoever serves knows the dialects."""
        raise NotImplementedError

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # As uvicorn has it.
        """Begin to wait for a head, or send away whoever is one too many."""
        super().connection_made(transport)
        self._expect()
        if len(self.connections) > self.most_connections:
            self._refuse(Busy(retry_after=1, message="too many connections are open"))

    def data_received(self, data: bytes) -> None:
        """Read on, unless it has been enough."""
        self._overhead += len(data)
        if self._timer is None and self._is_silent:
            self._expect()  # The next request, or what is left of a body that was refused.
        super().data_received(data)
        if self._overhead > self.head_limit and not self.transport.is_closing():
            self._refuse(HeadTooLarge(self.head_limit))

    def on_headers_complete(self) -> None:
        """Begin to answer, or take the request into the pipeline."""
        self._arrived()
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > self.head_limit:
            self._refuse(HeadTooLarge(self.head_limit))
        if len(self.pipeline) >= self.most_pipelined:
            self.transport.close()
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._overhead = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of a request."""
        self._arrived()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered, which need not be the newest one."""
        self._forget_timer()
        self._forget_stall()
        answering = self._answering
        if answering is not None and not answering.response_complete:
            answering.disconnected = True
            answering.message_event.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a client that takes too little, but not for ever."""
        super().pause_writing()
        self._stall = self.loop.call_later(self.longest_stall, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: it takes again."""
        self._forget_stall()
        super().resume_writing()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: an upgrade may be passed over (RFC 9110, 7.8), and some clients ask for one every time."""

    def _arrived(self) -> None:
        self._overhead = 0
        self._forget_timer()

    def _expect(self) -> None:
        """Give the client its time to get on."""
        self._forget_timer()
        self._timer = self.loop.call_later(self.patience, self._refuse, TooSlow("head", seconds=self.patience))

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    @property
    def _is_silent(self) -> bool:
        """Whether nothing is being said."""
        return self._answering is None or self._answering.response_complete

    def _refuse(self, fault: AnyFault) -> None:
        """Close the connection, with a word where none has been said to the request."""
        self._forget_timer()
        if self._is_silent and not (self._answering and self._answering.more_body):
            path = getattr(self, "url", b"/").partition(b"?")[0].decode("latin-1")
            reply = self.refusal(path, fault)
            status = HTTPStatus(reply.status)
            lines = [f"HTTP/1.1 {status} {status.phrase}", f"content-type: {reply.media_type}", "connection: close"]
            lines += [f"{name.lower()}: {value}" for name, value in reply.headers.items()]
            lines += [f"content-length: {len(reply.body)}", "", ""]
            self.transport.write("\r\n".join(lines).encode("latin-1") + reply.body)
        self.transport.close()
