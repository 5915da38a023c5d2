"""Stored responses: one row each, in SQLite. Implements `core.ports.ResponseStore`.

Rows hold core items, so that any dialect could read them. They go when they are older than `age` seconds, and
the least recently used ones when all together are larger than `size` bytes. A response that is taken up keeps
what it rests on young. `Scratch` is the same in memory, for what must not be stored.

Invariant: what was put is on disk when `put` returns, or nothing of it is.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from contextlib import closing
from pathlib import Path

import msgspec

from diglot.core.errors import UnknownResponse
from diglot.core.ports import Clock
from diglot.core.result import Stored

_SCHEMA = """
create table if not exists responses (
    id text primary key, previous text, used_at real not null, size integer not null, body blob not null
) without rowid;
create index if not exists responses_by_use on responses (used_at);
"""
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
        self._path = path
        self._clock = clock
        self._age = age
        self._size = size
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def put(self, response: Stored) -> None:
        """Write a row, replacing an earlier one of this id, and let go what is too old or too much."""
        body = msgspec.json.encode(response)
        now = self._clock.now()
        row = (response.id, response.previous, now, len(body), body)
        with self._lock, self._open() as connection:
            connection.execute("insert or replace into responses values (?, ?, ?, ?, ?)", row)
            connection.execute(_TOUCH, {"id": response.id, "now": now})
            connection.execute(_OLD, (now - self._age,))
            while self._taken(connection) > self._size:
                if not connection.execute(_LEAST_USED, (response.id,)).rowcount:
                    break  # This one alone is larger than all may be: the newest stays.

    def get(self, response: str) -> Stored:
        """Read a row. Raises UnknownResponse."""
        oldest = self._clock.now() - self._age
        with self._lock, self._open() as connection:
            query = "select body from responses where id = ? and used_at >= ?"
            row = connection.execute(query, (response, oldest)).fetchone()
        if row is None:
            raise UnknownResponse(response)
        return msgspec.json.decode(row[0], type=Stored)

    def forget(self, response: str) -> None:
        """Delete a row. Raises UnknownResponse."""
        with self._lock, self._open() as connection:
            if not connection.execute("delete from responses where id = ?", (response,)).rowcount:
                raise UnknownResponse(response)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        """Return the connection, which as a context manager is one transaction. Made when it is first needed."""
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, check_same_thread=False)
            connection.executescript("pragma journal_mode = wal; pragma synchronous = normal;" + _SCHEMA)
            self._path.chmod(0o600)
            self._connection = connection
        return self._connection

    @staticmethod
    def _taken(connection: sqlite3.Connection) -> int:
        with closing(connection.execute("select coalesce(sum(size), 0) from responses")) as cursor:
            return int(cursor.fetchone()[0])


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
