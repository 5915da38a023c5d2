"""The port: whether it can be listened on, and who answers there if not.

Diglot answers `/` as Ollama does, because clients ask for that; what tells them apart is the API document.
Neighbours: `serve` and `doctor`.
"""

from __future__ import annotations

import socket
import sys
from contextlib import closing
from enum import StrEnum
from typing import Any, Final

from diglot.cli.failure import Failure, NoServer, Refused
from diglot.cli.server import Server, base_url
from diglot.cli.wire import VersionReply
from diglot.settings import Settings

PATIENCE: Final = 3.0


class Answers(StrEnum):
    """Who answers at an address."""

    DIGLOT = "diglot"
    OLLAMA = "ollama"
    OTHER = "another program"
    NOBODY = "nobody"


def bind_error(host: str, port: int) -> str | None:
    """Return why an address cannot be listened on, None if it can."""
    try:
        with closing(_bound(host, port)):
            return None
    except OSError as error:
        return error.strerror or str(error)


def free_port(host: str) -> int:
    """Return a port that nobody listens on. Raises OSError where `host` is no address of this machine."""
    with closing(_bound(host, 0)) as found:
        return int(found.getsockname()[1])


def _bound(host: str, port: int) -> socket.socket:
    family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, number)
    if sys.platform != "win32":  # As the server does it; on Windows this would let two listen.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def who_answers(settings: Settings, *, patience: float = PATIENCE) -> Answers:
    """Ask the address of these settings who is there. Who takes longer than `patience` seconds is another program."""
    with Server(base_url(settings), key=settings.key, patience=patience) as server:
        try:
            document = server.get("/openapi.json", dict[str, Any])
            if (document.get("info") or {}).get("title") == "Diglot":
                return Answers.DIGLOT
        except NoServer:
            return Answers.NOBODY
        except Refused as refused:
            if refused.status == 401:  # noqa: PLR2004  unauthorised: it has a key that we do not
                return Answers.OTHER
        except Failure:
            return Answers.OTHER
        try:
            server.get("/api/version", VersionReply)
        except Failure:
            return Answers.OTHER
        return Answers.OLLAMA
