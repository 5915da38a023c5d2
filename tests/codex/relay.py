"""A relay that hears what is said: bytes go on as they come, in both directions, and are kept to be looked at."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

_REQUEST = re.compile(rb"(?:^|\r\n|\})((?:GET|POST|HEAD|DELETE) \S+) HTTP/1\.1\r\n")
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class Relay:
    """What was heard, over all connections. `url` is where to call instead of the server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._sent: list[bytearray] = []
        self._received: list[bytearray] = []

    @property
    def requests(self) -> list[str]:
        """The first lines of all requests, in order within each connection."""
        return [line.decode() for heard in self._sent for line in _REQUEST.findall(heard)]

    @property
    def statuses(self) -> list[int]:
        """The status codes of all answers, in order within each connection."""
        return [int(code) for heard in self._received for code in _STATUS.findall(heard)]

    @property
    def received(self) -> bytes:
        """All that the server said."""
        return b"".join(map(bytes, self._received))

    @property
    def sent(self) -> bytes:
        """All that the client said."""
        return b"".join(map(bytes, self._sent))

    def carry(self, client: socket.socket, server: socket.socket) -> None:
        """Carry one connection until it ends."""
        self._sent.append(bytearray())
        self._received.append(bytearray())
        with client, server:
            back = threading.Thread(target=_pass_on, args=(server, client, self._received[-1]), daemon=True)
            back.start()
            _pass_on(client, server, self._sent[-1])
            back.join()


def _pass_on(source: socket.socket, target: socket.socket, heard: bytearray) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            heard += data
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def relaying(url: str) -> Iterator[Relay]:
    """Stand before a server."""
    place = urlsplit(url)
    assert place.hostname is not None
    assert place.port is not None
    address = (place.hostname, place.port)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        relay = Relay(f"http://127.0.0.1:{listening.getsockname()[1]}")
        thread = threading.Thread(target=_accept, args=(listening, address, relay), daemon=True)
        thread.start()
        try:
            yield relay
        finally:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def _accept(listening: socket.socket, address: tuple[str, int], relay: Relay) -> None:
    carrying: list[threading.Thread] = []
    with suppress(OSError):
        while True:
            ends = (listening.accept()[0], socket.create_connection(address))
            carrying.append(threading.Thread(target=relay.carry, args=ends, daemon=True))
            carrying[-1].start()
    for thread in carrying:
        thread.join(10)
