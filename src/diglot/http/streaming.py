"""Streaming: events on their way to a client, over whatever carries them.

It renders each event, sends signs of life into silences, and ends a stream that broke in its dialect's own way.
Faults before the first byte are raised, so that they can still be a status. This is one of the three borders where an
unknown exception is caught: it becomes `EngineFailed` with an id that finds the log line.
Neighbours: `serve` and `websocket`, which call it; `reply.Outlet`.

Invariant: a stream that has begun comes to its end, whatever happens behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

from diglot.core.errors import AnyFault, EngineFailed, Fault
from diglot.core.ports import Clock, Ids
from diglot.dialects.operation import Ending
from diglot.services.visit import Visit, kind_of

log = logging.getLogger(__name__)
E = TypeVar("E")


class Sink(Protocol):
    """Where the pieces of a stream go. `begun` once one has gone, `quiet` while none has since it was last set."""

    begun: bool
    quiet: bool

    async def piece(self, data: bytes) -> None:
        """Send a piece."""

    async def end(self) -> None:
        """End the stream."""


class Streaming:
    """Carries streams for one endpoint. `where` names it in the log; `heartbeat` is in seconds."""

    def __init__(self, where: str, *, clock: Clock, ids: Ids, heartbeat: float) -> None:
        self._where = where
        self._clock = clock
        self._ids = ids
        self._heartbeat = heartbeat

    async def guarded(
        self, work: Coroutine[Any, Any, None], refuse: Callable[[AnyFault], Awaitable[None]], *, visit: Visit
    ) -> None:
        """Do the work of one request; what it raises is logged and goes to `refuse` as a fault."""
        try:
            await work
        except Fault as error:
            self._note(_known(error), visit)
            await refuse(_known(error))
        except Exception as error:  # noqa: BLE001  a border: a bug must be answered too
            await refuse(self._unknown(error, visit))

    async def run(
        self,
        events: AsyncGenerator[E],
        feed: Callable[[E, float], bytes],
        *,
        renderer: Ending,
        sink: Sink,
        visit: Visit,
    ) -> None:
        """Send events as they come. Raises the fault of a stream that has not begun."""
        pulse = asyncio.create_task(self._pulse(renderer, sink))
        try:
            async with aclosing(events):
                async for event in events:
                    await sink.piece(feed(event, self._clock.now()))
            await sink.piece(renderer.close())
        except Fault as error:
            fault = _known(error)
            if not sink.begun:
                raise
            self._note(fault, visit)
            await sink.piece(renderer.fail(fault))
        except Exception as error:
            fault = self._unknown(error, visit)
            if not sink.begun:
                raise fault from error
            await sink.piece(renderer.fail(fault))
        finally:
            pulse.cancel()
        await sink.end()

    async def _pulse(self, renderer: Ending, sink: Sink) -> None:
        """Send a sign of life whenever nothing was sent for a while."""
        while True:
            sink.quiet = True
            await self._clock.sleep(self._heartbeat)
            if sink.quiet:
                await sink.piece(renderer.beat())

    def _note(self, fault: AnyFault, visit: Visit) -> None:
        """Write a fault down. Its message can hold a client's words, so above debug only its kind is logged."""
        visit.outcome = kind_of(fault)
        detail = getattr(fault, "detail", "")
        level = logging.WARNING if detail else logging.DEBUG  # The journal has a line for each request.
        if not isinstance(fault, EngineFailed) or not fault.id:
            log.log(level, "%s: %s", self._where, type(fault).__name__)
        log.debug("%s %s", fault.message, detail)

    def _unknown(self, error: Exception, visit: Visit) -> EngineFailed:
        visit.outcome = "engine_failed"
        name = self._ids.new()
        log.error("error %s in %s", name, self._where, exc_info=error)
        return EngineFailed(f"internal error {name}, see the server's log", id=name)

    def tell(self, notes: tuple[str, ...]) -> None:
        """Log what was left out of a request."""
        for note in notes:
            log.info("%s: %s", self._where, note)


def _known(error: Fault) -> AnyFault:
    """Return the fault as one of the closed set; `Fault` itself is never raised."""
    assert isinstance(error, AnyFault)  # noqa: S101
    return error
