"""The journal: every request gets a name, and at its end a line in the log and a place in the totals.

It stands before everything else, so that whoever is refused is written down too. The name goes to the client in a
header of the reply, whatever the reply is; one that the client sent is kept where it is fit for a log. Of what clients
write nothing else gets in: operations are named as the tables name them, models by their full names once they are found.

Neighbours: `services.visit` is what is known of a request, `obs.log` writes the line, `metrics` shows the counts.

Invariant: one line for each request, however it ends.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diglot.core.errors import AnyFault
from diglot.core.ports import Clock, Ids
from diglot.dialects.operation import Rendered
from diglot.http.reply import Refusal
from diglot.services.totals import Totals
from diglot.services.visit import Visit, kind_of

log = logging.getLogger(__name__)

HEADER: Final = b"x-request-id"
_ENTRY: Final = "diglot.entry"
_FIT: Final = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:+/=-]{0,99}")
_CALLER: Final = (b"authorization", b"x-api-key", b"x-forwarded-for", b"user-agent")
_POLLED: Final = frozenset({"GET /", "GET /health", "GET /metrics"})
_NS: Final = 1e-9


class Entry(msgspec.Struct, kw_only=True):
    """One request in the journal: `operation` as `POST /api/chat`, empty where there is none; `status` of the reply, 0 for none."""

    id: str
    visit: Visit
    dialect: str = ""
    operation: str = ""
    status: int = 0

    def fields(self) -> dict[str, Any]:
        """Return what the line of the log holds, as values of JSON. Times are in seconds; what there was none of is left out."""
        visit = self.visit
        known: dict[str, Any] = {
            "id": self.id,
            "dialect": self.dialect,
            "operation": self.operation,
            "model": visit.model,
            "status": self.status,
            "outcome": visit.outcome,
            "stage": visit.stage if visit.outcome != "ok" else "",
        }
        if visit.kind:
            known["input_tokens"] = visit.usage.input
            known["cached_tokens"] = visit.usage.cached
            known["output_tokens"] = visit.usage.output
            known["compactions"] = len(visit.folded)
        times = {"queue": visit.spent.get("queue"), "load": visit.spent.get("load"), "first_token": visit.first_token}
        known |= {f"{name}_seconds": round(spent * _NS, 4) for name, spent in times.items() if spent is not None}
        known["seconds"] = round(visit.total * _NS, 4)
        return {name: value for name, value in known.items() if value != ""}


class Journal:
    """What is written down of requests. `counts` are those that have ended, by dialect, operation and outcome."""

    def __init__(self, *, clock: Clock, ids: Ids, totals: Totals) -> None:
        self._clock = clock
        self._ids = ids
        self._totals = totals
        self.counts: Counter[tuple[str, str, str]] = Counter()

    @contextmanager
    def entry(self, scope: Scope) -> Iterator[Entry]:
        """Keep an entry while a request is answered."""
        name, caller = _id_of(scope) or self._ids.new(), caller_of(scope)
        with self._kept(Entry(id=name, visit=Visit.at(self._clock.monotonic_ns(), caller=caller))) as entry:
            yield entry

    @contextmanager
    def message(self, connection: Entry, number: int) -> Iterator[Entry]:
        """Keep an entry while one message of a connection is answered."""
        visit = Visit.at(self._clock.monotonic_ns(), caller=connection.visit.caller)
        entry = msgspec.structs.replace(connection, id=f"{connection.id}.{number}", visit=visit, status=0)
        with self._kept(entry):
            yield entry

    @contextmanager
    def _kept(self, entry: Entry) -> Iterator[Entry]:
        visit = entry.visit
        try:
            yield entry
        except asyncio.CancelledError:
            visit.outcome = "left" if visit.outcome == "ok" else visit.outcome
            raise
        finally:
            visit.end(self._clock.monotonic_ns())
            self._write(entry)
            self._totals.add(visit)
            self.counts[(entry.dialect, entry.operation, visit.outcome)] += 1

    def _write(self, entry: Entry) -> None:
        level = logging.DEBUG if entry.operation in _POLLED and entry.visit.outcome == "ok" else logging.INFO
        if log.isEnabledFor(level):
            fields = entry.fields()
            text = " ".join(f"{name}={value}" for name, value in fields.items() if name != "operation")
            log.log(level, "%s %s", entry.operation or "-", text, extra={"fields": fields})


class Journalled:
    """ASGI middleware: keeps the journal, and puts the name of each request into the head of its reply."""

    def __init__(self, app: ASGIApp, journal: Journal) -> None:
        self._app = app
        self._journal = journal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        with self._journal.entry(scope) as entry:
            await self._app({**scope, _ENTRY: entry}, receive, _naming(send, entry, scope))


def naming(refusal: Refusal, ids: Ids) -> Refusal:
    """Return what words refusals of connections, on which no request came so far as to get a name, with a name for each."""

    def named(path: str, fault: AnyFault) -> Rendered:
        reply = refusal(path, fault)
        name = ids.new()
        log.info("refused a connection id=%s outcome=%s", name, kind_of(fault))
        return msgspec.structs.replace(reply, headers={**reply.headers, HEADER.decode(): name})

    return named


def entry_of(scope: Scope) -> Entry:
    """Return the entry of the request that is being answered."""
    entry = scope[_ENTRY]
    assert isinstance(entry, Entry)  # noqa: S101
    return entry


def caller_of(scope: Scope) -> str:
    """Return what all requests of one client have in common, as well as can be told: its key, addresses and program."""
    host, _ = scope.get("client") or ("", 0)
    headers = {name.lower(): value for name, value in scope["headers"]}
    told = b"\n".join((host.encode(), *(headers.get(name, b"") for name in _CALLER)))
    return hashlib.blake2b(told, digest_size=16).hexdigest()  # There are secrets in it, and it is kept for a while.


def _id_of(scope: Scope) -> str:
    """Return the name that the client gave its request, if it gave one that is fit."""
    given = [value for name, value in scope["headers"] if name.lower() == HEADER]
    return given[0].decode("ascii") if len(given) == 1 and _FIT.fullmatch(given[0]) else ""


def _naming(send: Send, entry: Entry, scope: Scope) -> Send:
    """Return `send`, with the name in every head. A WebSocket that is refused gets one too, where the server can do that."""
    header = (HEADER, entry.id.encode("ascii"))
    can_refuse = "websocket.http.response" in scope.get("extensions", {})
    accepted = False

    async def sending(message: Message) -> None:
        nonlocal accepted
        kind = message["type"]
        if kind in ("http.response.body", "websocket.send"):
            await send(message)
        elif kind == "http.response.start":
            entry.status = message["status"]
            await send({**message, "headers": [header, *message.get("headers", ())]})
        elif kind == "websocket.accept":
            accepted, entry.status = True, 101
            await send({**message, "headers": [header, *message.get("headers", ())]})
        elif kind == "websocket.close" and not accepted:
            entry.status = 403
            if can_refuse:
                await send({"type": "websocket.http.response.start", "status": 403, "headers": [header]})
                await send({"type": "websocket.http.response.body", "body": b""})
            else:
                await send(message)
        else:
            await send(message)

    return sending
