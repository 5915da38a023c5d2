"""The log: standard logging, one line a record, to standard error, for people or as JSON.

    2026-11-30 12:00:01 info    services.residency: unloading smollm2:135m: its time is up
    {"time":"2026-11-30T12:00:01.250Z","level":"info","logger":"services.residency","message":"unloading ..."}

A record that brings `fields` (`http.journal`) has them in its object instead of a message.

Whoever logs keeps to this: what a client wrote or was answered stands in no line above debug. Secrets are
taken out here, whoever let them in. Neighbours: the command line sets it up, everybody else only calls
`logging.getLogger(__name__)`.

Invariant: a record that carries no exception is one line, whatever its text holds.
"""

from __future__ import annotations

import datetime as dt
import logging
import sys
from collections.abc import Iterable
from typing import Final, TextIO

import msgspec

HIDDEN: Final = "***"
_OURS: Final = "diglot."
_CHATTY: Final = ("httpcore2", "httpx2", "uvicorn")  # A line for each request, or for what goes without saying.
_UNPRINTABLE: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {10: "\\n", 9: "\t"}


class LineFormatter(logging.Formatter):
    """Writes records as lines, without `secrets`. A traceback follows on lines of its own, indented."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__(datefmt="%Y-%m-%d %H:%M:%S")
        # The longest first: a secret may be a part of another.
        self._secrets = sorted(filter(None, secrets), key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """Write one record."""
        text = record.getMessage().translate(_UNPRINTABLE)
        name = record.name.removeprefix(_OURS)
        line = f"{self.formatTime(record, self.datefmt)} {record.levelname.lower():<7} {name}: {text}"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line = "\n  ".join((line, *trace.splitlines()))
        return self._veiled(line)

    def _veiled(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


class JsonFormatter(LineFormatter):
    """Writes each record as a JSON object, without `secrets`. A traceback is one of its members."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record."""
        time = dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")
        known = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name.removeprefix(_OURS),
        }
        fields = getattr(record, "fields", None) or {"message": record.getMessage()}
        known |= {name: self._written(value) if isinstance(value, str) else value for name, value in fields.items()}
        if record.exc_info:
            known["trace"] = self._written(self.formatException(record.exc_info))
        return msgspec.json.encode(known).decode()

    def _written(self, text: str) -> str:
        """Return a text without secrets that can be encoded, whatever it holds."""
        return self._veiled(text).encode(errors="backslashreplace").decode()


def set_up_log(level: str, *, secrets: Iterable[str] = (), as_json: bool = False, stream: TextIO | None = None) -> None:
    """Write records of `level` (`debug`, `info`, `warning`, `error`) and above to `stream`, standard error by default.

    What was set up before is replaced. What other packages say for information is left out unless at debug.
    """
    writer = logging.StreamHandler(stream or sys.stderr)
    writer.setFormatter(JsonFormatter(secrets) if as_json else LineFormatter(secrets))
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=number, handlers=[writer], force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(number if number <= logging.DEBUG else max(number, logging.WARNING))
