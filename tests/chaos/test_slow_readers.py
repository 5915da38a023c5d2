"""Clients that read slowly, or nothing at all: the first are served to the end, the others let go, and nobody else waits."""

import resource
import selectors
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.chaos.talking import ALL, DOORS, OPENAI, Door, RawCall, heard, nothing_left, say, socket_to, whole
from tests.serving import PATIENCE, serving_script, until

pytestmark = pytest.mark.timeout(240)  # A thousand of them, on whatever machine this is.

CLIENTS, PIECES, PIECE = 1000, 60, "x" * 4096
MOST_MEMORY = 400 * 1024**2
SCRIPT = {
    "slots": CLIENTS + 8,
    "window": 10_000_000,
    "replies": [
        {"when": "much", "say": [PIECE] * PIECES},
        {"when": "endless", "say": [PIECE] * 20_000},
        {"echo": True},
    ],
}


@pytest.fixture(autouse=True)
def enough_files() -> Iterator[None]:
    """Let this process, and the server that it starts, have a thousand connections."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Reader:
    """A client that has little room for what it has not read, and keeps nothing but the end."""

    def __init__(self, call: RawCall, mark: bytes) -> None:
        self.call = call
        self.heard = 0
        self._mark = mark
        self._end = b""

    @property
    def is_complete(self) -> bool:
        """Whether the stream has come to its own end."""
        return self._mark in self._end

    def fileno(self) -> int:
        """Return the number of the socket, so that it can be selected."""
        return self.call.fileno()

    def sip(self, size: int = 16_384) -> bool:
        """Take a little, and return whether more may come."""
        data = self.call.socket.recv(size)
        self.heard += len(data)
        self._end = (self._end + data)[-500:]
        return bool(data)


def test_a_thousand_slow_readers_are_served_to_the_end_and_nobody_waits_for_them(tmp_path: Path) -> None:
    """Half of them speak one dialect, half the other."""
    with serving_script(tmp_path, SCRIPT, "--max-connections", str(CLIENTS + 100)) as served:
        for door in DOORS:
            assert whole(served, door).status_code == 200
        with nothing_left(served), ExitStack() as stack:
            readers = []
            for door in DOORS * (CLIENTS // 2):
                call = stack.enter_context(RawCall(served, door, "much", stream=True, room=4096))
                readers.append(Reader(call, door.end.encode()))
            for reader in readers:
                assert reader.sip(64)
            assert not any(reader.is_complete for reader in readers)
            for door in DOORS:
                assert whole(served, door).status_code == 200
            with served.http() as client:
                assert client.get("/health").status_code == 200
                assert client.get("/api/ps").status_code == 200
            assert psutil.Process(served.process.pid).memory_info().rss < MOST_MEMORY
            left = stack.enter_context(selectors.DefaultSelector())  # `select` knows no numbers above 1023.
            for reader in readers:
                left.register(reader, selectors.EVENT_READ, reader)
            while left.get_map():
                ready = left.select(PATIENCE)
                assert ready
                for key, _ in ready:
                    if not key.data.sip():
                        left.unregister(key.fileobj)
            assert all(reader.heard > PIECES * len(PIECE) for reader in readers)
            assert all(reader.is_complete for reader in readers)


@pytest.mark.parametrize("door", ALL, ids=lambda door: door.path)
def test_a_client_that_never_reads_is_let_go_and_its_slot_is_free(tmp_path: Path, door: Door) -> None:
    with serving_script(tmp_path, SCRIPT | {"slots": 1}, "--queue", "0", "--stall-timeout", "0.5") as served:
        assert whole(served, door).status_code == 200
        with nothing_left(served), RawCall(served, door, "endless", stream=True, room=4096) as call:
            call.read_until("xxx")
            until(lambda: whole(served, door).status_code == 200)


def test_a_client_that_never_reads_its_websocket_is_let_go_and_its_slot_is_free(tmp_path: Path) -> None:
    with serving_script(tmp_path, SCRIPT | {"slots": 1}, "--queue", "0", "--stall-timeout", "0.5") as served:
        assert whole(served, OPENAI).status_code == 200
        with nothing_left(served), socket_to(served) as connection:
            say(connection, "endless", store=False)
            heard(connection, "response.created")
            until(lambda: whole(served, OPENAI).status_code == 200)


def test_a_slow_reader_of_a_websocket_is_served_to_the_end(tmp_path: Path) -> None:
    with serving_script(tmp_path, SCRIPT | {"slots": 1}, "--queue", "0") as served:
        assert whole(served, OPENAI).status_code == 200
        with nothing_left(served), socket_to(served) as connection:
            say(connection, "much", store=False)
            text = ""
            while len(text) < PIECES * len(PIECE):
                text += heard(connection, "response.output_text.delta")["delta"]
            assert heard(connection, "response.completed")["response"]["status"] == "completed"


def test_a_client_that_leaves_before_its_head_or_its_body_has_come_leaves_nothing(tmp_path: Path) -> None:
    with serving_script(tmp_path, SCRIPT | {"slots": 1}, "--queue", "0") as served:
        assert whole(served, OPENAI).status_code == 200
        address = ("127.0.0.1", int(served.url.rpartition(":")[2]))
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n"
        upgrade = b"GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        upgrade += b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        with nothing_left(served):
            for said in (b"", b"POST /v1", head[:-2], head, head + b'{"messages"', upgrade, upgrade + b"\r\n"):
                for _ in range(20):
                    with socket.create_connection(address, timeout=PATIENCE) as connection:
                        connection.sendall(said)
        assert whole(served, OPENAI).status_code == 200
