"""The port: listened on where it can be, and who answers there if not.

Diglot answers `/` as Ollama does, because clients ask for that; what tells them apart is the API document.
Neighbours: `serve` and `doctor`.
"""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from typing import Any, Final

from diglot.cli.failure import Failure, NoServer, Refused
from diglot.cli.server import Server, base_url
from diglot.cli.wire import VersionReply
from diglot.settings import Settings

PATIENCE: Final = 3.0
_BACKLOG: Final = 2048  # As uvicorn has it.
_NOT_HERE: Final = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
_Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]


class Answers(StrEnum):
    """Who answers at an address."""

    DIGLOT = "diglot"
    OLLAMA = "ollama"
    OTHER = "another program"
    NOBODY = "nobody"


@contextmanager
def listening(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Give sockets that listen, one for each address that the host's name stands for. Port 0 takes a free one.

    From here on nobody else gets the port (bound alone it could be bound again), and who connects waits until
    somebody accepts. An address that this machine does not have is left out where it has another one: `localhost` may
    stand for IPv6 too where that is switched off. Raises OSError.
    """
    with ExitStack() as stack:
        sockets: list[socket.socket] = []
        lacking: OSError | None = None
        for address in dict.fromkeys(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)):
            try:
                sockets.append(stack.enter_context(_bound(address, sockets[0].getsockname()[1] if sockets else port)))
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                lacking = error
            else:
                sockets[-1].listen(_BACKLOG)
        if lacking is not None and not sockets:
            raise lacking
        yield sockets


def bind_error(host: str, port: int) -> str | None:
    """Return why an address cannot be listened on, None if it can."""
    try:
        with listening(host, port):
            return None
    except OSError as error:
        return error.strerror or str(error)


def _bound(address: _Address, port: int) -> socket.socket:
    family, kind, number, _, where = address
    made = socket.socket(family, kind, number)
    try:
        if sys.platform != "win32":  # There it would let two listen.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:  # Else it would take IPv4's port as well, which has a socket of its own.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((where[0], port, *where[2:]))
    except OSError:
        made.close()
        raise
    return made


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
