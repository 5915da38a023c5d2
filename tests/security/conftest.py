"""Real servers to attack, and a trap that notices who connects to it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Final

import httpx2
import pytest

from tests.serving import Served, serving_script

KEY: Final = "a-key-of-the-tests"
SCRIPT: Final = {"replies": [{"echo": True}], "window": 4096}


class Trap:
    """Listens on loopback and counts who comes. Nobody should."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self.port: int = listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.caught = 0
        self._thread = threading.Thread(target=self._count, daemon=True)
        self._thread.start()

    def _count(self) -> None:
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:  # It was closed: the test is over.
                return
            self.caught += 1
            caller.close()

    def sprung(self) -> int:
        """Return how many have come by now: one more connection is made, behind all others, and taken off."""
        before = self.caught
        with socket.create_connection(("127.0.0.1", self.port)) as mine:
            mine.recv(1)
        return max(before, self.caught - 1)


@pytest.fixture
def trap() -> Iterator[Trap]:
    """A trap for one test."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Trap(listening)
        listening.shutdown(socket.SHUT_RDWR)  # Closing alone would leave the thread where it waits.


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server as it is by default, but for its engine, which says what it hears."""
    with serving_script(tmp_path_factory.mktemp("attacked") / "home", SCRIPT, "--log", "info") as running:
        yield running


@pytest.fixture(scope="session")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same with a key, and with every line of log."""
    with serving_script(tmp_path_factory.mktemp("keyed") / "home", SCRIPT, "--key", KEY) as running:
        yield running


@pytest.fixture
def http(served: Served) -> Iterator[httpx2.Client]:
    """A client of the server, which must be well at the end of the test too."""
    with served.http(verify=False) as client:  # There is no TLS, and reading certificates takes longer than most tests.
        yield client
        body = {"model": "scripted", "messages": [{"role": "user", "content": "Still there"}], "stream": False}
        assert client.post("/api/chat", json=body).json()["message"]["content"] == "Still there"
    assert not served.log_has("Traceback"), "".join(served.log)
