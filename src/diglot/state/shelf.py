"""A SQLite file that is sound: one that is not is set aside, and a new one begun.

It knows versions, locks and damage, and not what the tables hold. A file that is torn, is no database, or was written
by another version is renamed and stays, so that somebody can look at it; nothing of it is ever deleted. What the disk
or another process stands in the way of is told as a fault, and is tried again with the next piece of work.
Neighbours: `responses` keeps its rows here.

Invariant: a piece of work is done as a whole or not at all, and is on its way to the disk when `run` returns: the end of
this process takes nothing of it along.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
import stat
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from diglot.core.errors import Fault, NoSpace, ResponsesUnavailable

log = logging.getLogger(__name__)
T = TypeVar("T")

_PATIENCE = 2.0  # Seconds for another process to let go of the file.
_MODE = 0o600
_FILES = ("", "-wal", "-shm")


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be in the file: its version, how it is made, and the columns of each table."""

    version: int
    schema: str
    columns: Mapping[str, tuple[str, ...]]


class _Unsound(Exception):
    """The file cannot be used and must make way."""


class Shelf:
    """The file at `path`, made when it is first needed, for its owner alone."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self._path = path
        self._layout = layout
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return self._path.exists()

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work in one transaction. Raises NoSpace, ResponsesUnavailable, and what the work raises.

        Where the file turns out to be broken the work is done once more, on a new one.
        """
        with self._lock:
            try:
                return self._attempt(work)
            except _Unsound as unsound:
                self._set_aside(str(unsound))
            return self._attempt(work)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._let_go()

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._open()
            with connection:
                return work(connection)
        except sqlite3.DatabaseError as error:
            raise _meaning(error) from error
        except OSError as error:
            raise _refusal(error) from error

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            return self._connection
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._path, timeout=_PATIENCE, check_same_thread=False)
        try:
            self._prepare(connection)
            if stat.S_IMODE(self._path.stat().st_mode) != _MODE:
                self._path.chmod(_MODE)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """See that the file is ours, and make in it what is not there yet."""
        layout = self._layout
        (version,) = connection.execute("pragma user_version").fetchone()
        if version not in (0, layout.version):  # 0 is what files have that are new or older than the number.
            raise _Unsound(f"its version is {version} and not {layout.version}")
        for table, columns in layout.columns.items():
            found = tuple(row[1] for row in connection.execute(f"pragma table_info({table})"))
            if found not in ((), columns):
                raise _Unsound(f"its table {table} has other columns")
        connection.executescript("pragma journal_mode = wal; pragma synchronous = normal;" + layout.schema)
        if version != layout.version:
            connection.execute(f"pragma user_version = {layout.version}")

    def _set_aside(self, why: str) -> None:
        """Rename the file and what belongs to it, to the first name that is free."""
        number = 1
        while (aside := self._path.with_name(f"{self._path.name}.broken-{number}")).exists():
            number += 1
        try:
            for ending in _FILES:
                with suppress(FileNotFoundError):
                    self._path.with_name(self._path.name + ending).rename(aside.with_name(aside.name + ending))
        except OSError as error:
            raise _refusal(error) from error
        finally:
            self._let_go()
        log.warning("%s cannot be used: %s. It is kept as %s, and a new one is begun", self._path, why, aside.name)

    def _let_go(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):  # A broken one may not even close well.
                self._connection.close()
            self._connection = None


def _meaning(error: sqlite3.DatabaseError) -> Exception:
    """Return what an error of SQLite means (sqlite.org/rescode.html); itself where it is a bug of ours."""
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return _Unsound(str(error))
        case sqlite3.SQLITE_FULL:
            return NoSpace(needed=0, free=0)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return ResponsesUnavailable("another process holds their file")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR:
            return ResponsesUnavailable("their file cannot be written or read", detail=str(error))
        case _:
            return error


def _refusal(error: OSError) -> Fault:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return NoSpace(needed=0, free=0)
    return ResponsesUnavailable("their folder cannot be written or read", detail=str(error))
