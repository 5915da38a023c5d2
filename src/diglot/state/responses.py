"""Stored responses: one row each, in SQLite. Implements `core.ports.ResponseStore`.

Rows hold core items, so that any dialect could read them. They go when they are older than `age` seconds, and
the least recently used ones when all together are larger than `size` bytes. A response that is taken up keeps
what it rests on young. `Scratch` is the same in memory, for what must not be stored. Neighbour: `shelf`, which
sees to the file.

Invariant: what was put when `put` returns is there after the process has died, or nothing of it is.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import OrderedDict
from pathlib import Path
from typing import Final

import msgspec

from diglot.core.errors import Fault, UnknownResponse
from diglot.core.foreign import UNREADABLE
from diglot.core.ports import Clock
from diglot.core.result import Stored
from diglot.state.shelf import Layout, Shelf

log = logging.getLogger(__name__)

_SCHEMA = """
create table if not exists responses (
    id text primary key, previous text, used_at real not null, size integer not null, body blob not null
) without rowid;
create index if not exists responses_by_use on responses (used_at);
"""
_LAYOUT: Final = Layout(version=1, schema=_SCHEMA, columns={"responses": ("id", "previous", "used_at", "size", "body")})
_TOUCH = """
with recursive chain(id) as (
    values (:id) union select responses.previous from responses join chain on responses.id = chain.id
    where responses.previous is not null
)
update responses set used_at = :now where id in (select id from chain)
"""
_OLD = "delete from responses where used_at < ?"
_LEAST_USED = "delete from responses where id in (select id from responses where id != ? order by used_at limit 64)"


class StoredResponses:
    """Responses in the file `path`."""

    def __init__(self, path: Path, *, clock: Clock, age: float, size: int) -> None:
        self._shelf = Shelf(path, _LAYOUT)
        self._clock = clock
        self._age = age
        self._size = size
        self._begun = clock.now(), clock.monotonic_ns()

    def look(self) -> None:
        """Open the file if there is one, so that what is wrong with it is told in the log when the server starts."""
        if self._shelf.exists:
            try:
                self._shelf.run(_newest)
            except Fault as fault:
                log.warning("%s %s", fault.message, getattr(fault, "detail", ""))

    def put(self, response: Stored) -> None:
        """Write a row, replacing an earlier one of this id, and let go what is too old or too much.

        Raises NoSpace, ResponsesUnavailable.
        """
        body = msgspec.json.encode(response)

        def write(connection: sqlite3.Connection) -> None:
            now = self._now(connection)
            row = (response.id, response.previous, now, len(body), body)
            connection.execute("insert or replace into responses values (?, ?, ?, ?, ?)", row)
            connection.execute(_TOUCH, {"id": response.id, "now": now})
            connection.execute(_OLD, (now - self._age,))
            while _taken(connection) > self._size:
                if not connection.execute(_LEAST_USED, (response.id,)).rowcount:
                    break  # This one alone is larger than all may be: the newest stays.

        self._shelf.run(write)

    def get(self, response: str) -> Stored:
        """Read a row. Raises UnknownResponse, ResponsesUnavailable."""

        def read(connection: sqlite3.Connection) -> tuple[bytes] | None:
            query = "select body from responses where id = ? and used_at >= ?"
            found: tuple[bytes] | None = connection.execute(
                query, (response, self._now(connection) - self._age)
            ).fetchone()
            return found

        row = self._shelf.run(read)
        if row is None:
            raise UnknownResponse(response)
        try:
            return msgspec.json.decode(row[0], type=Stored)
        except (TypeError, *UNREADABLE):
            log.warning("a stored response cannot be read: another version wrote it, or it is damaged")
            raise UnknownResponse(response) from None

    def forget(self, response: str) -> None:
        """Delete a row. Raises UnknownResponse, ResponsesUnavailable."""

        def delete(connection: sqlite3.Connection) -> int:
            return connection.execute("delete from responses where id = ?", (response,)).rowcount

        if not self._shelf.run(delete):
            raise UnknownResponse(response)

    def close(self) -> None:
        """Close the file."""
        self._shelf.close()

    def _now(self, connection: sqlite3.Connection) -> float:
        """Return the time by which rows age, in seconds since the epoch.

        The clock on the wall jumps, and must not take rows along: it is read once, and goes on by the one that does
        not jump; it never stands before the newest row, which a machine that has lost its time would do.
        """
        began, tick = self._begun
        return max(began + (self._clock.monotonic_ns() - tick) / 1e9, _newest(connection))


def _newest(connection: sqlite3.Connection) -> float:
    return float(connection.execute("select coalesce(max(used_at), 0) from responses").fetchone()[0])


def _taken(connection: sqlite3.Connection) -> int:
    return int(connection.execute("select coalesce(sum(size), 0) from responses").fetchone()[0])


class Scratch:
    """Responses of one connection, in memory; at most `limit`, the newest."""

    def __init__(self, *, limit: int = 256) -> None:
        self._limit = limit
        self._responses: OrderedDict[str, Stored] = OrderedDict()

    def put(self, response: Stored) -> None:
        """Remember a response."""
        self._responses[response.id] = response
        while len(self._responses) > self._limit:
            self._responses.popitem(last=False)

    def get(self, response: str) -> Stored:
        """Return a response. Raises UnknownResponse."""
        try:
            return self._responses[response]
        except KeyError:
            raise UnknownResponse(response) from None

    def forget(self, response: str) -> None:
        """Forget a response. Raises UnknownResponse."""
        self.get(response)
        del self._responses[response]
