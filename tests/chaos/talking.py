"""One chat endpoint of each dialect: how it is asked, how it tells of a fault, and how it ends."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx2
import msgspec
import psutil
from websockets.sync.client import ClientConnection, connect

from tests.serving import CHAT, PATIENCE, Served, until


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """A chat endpoint, and what it says when the server goes down, an engine dies, the queue is full, a stream ends well.

    `broken` is what a stream says of every fault, where it has only one word for all.
    """

    path: str
    cancelled: str
    crashed: str
    busy: str
    end: str
    broken: str = ""

    def body(self, prompt: str, *, stream: bool, model: str | None = None, most: int | None = None) -> dict[str, Any]:
        """Return a request of one user message for at most so many tokens."""
        asked: dict[str, Any] = {"messages": [{"role": "user", "content": prompt}], "stream": stream}
        named = {"model": model} if model else {}
        if self.path == "/v1/responses":
            return {"input": prompt, "stream": stream, "temperature": 0, "max_output_tokens": most} | named
        limits: dict[str, Any] = {"max_tokens": most, "temperature": 0}
        if self.path.startswith("/api"):
            limits = {"options": {"num_predict": most, "temperature": 0} if most else {"temperature": 0}}
        return asked | named | limits

    def fault(self, text: str) -> str:
        """Return how the fault is told at the end of a text, whole or streamed. Fails where it tells of none."""
        last = text.strip().splitlines()[-1].removeprefix("data: ")
        told = json.loads(last)
        error = told.get("response", told)["error"]
        return str(error if isinstance(error, str) else error["code"])

    def streamed(self, fault: str) -> str:
        """Return how a stream tells of a fault that has this name elsewhere."""
        return self.broken or fault

    def is_complete(self, text: str) -> bool:
        """Whether a stream has come to its own end."""
        return self.end in text


OLLAMA: Final = Door(
    path="/api/chat",
    cancelled="request canceled",
    crashed=f"the engine of model {CHAT!r} ended unexpectedly",
    busy="server busy, please try again.  maximum pending requests exceeded",
    end='"done":true',
)
OPENAI: Final = Door(
    path="/v1/chat/completions",
    cancelled="cancelled",
    crashed="engine_crashed",
    busy="server_busy",
    end="data: [DONE]",
)
RESPONSES: Final = Door(
    path="/v1/responses",
    cancelled="cancelled",
    crashed="engine_crashed",
    busy="server_busy",
    end='"type":"response.completed"',
    broken="server_error",
)
DOORS: Final = (OLLAMA, OPENAI)
ALL: Final = (*DOORS, RESPONSES)


class Stream:
    """An answer on its way."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.text = ""
        self._pieces = response.iter_text()

    def read_until(self, mark: str) -> None:
        """Read until a text has come."""
        while mark not in self.text:
            self.text += next(self._pieces)

    def rest(self) -> str:
        """Read to the end, and return all of it."""
        self.text += "".join(self._pieces)
        return self.text


@contextmanager
def streaming(served: Served, door: Door, prompt: str = "Well?", **asked: Any) -> Iterator[Stream]:
    """Ask for a stream, and leave it at the end of the block, read or not."""
    with served.http() as client, client.stream("POST", door.path, json=door.body(prompt, stream=True, **asked)) as got:
        yield Stream(got)


def whole(served: Served, door: Door, prompt: str = "Well?", **asked: Any) -> httpx2.Response:
    """Ask for a whole answer, and wait for it."""
    return _whole(served, door, prompt, lambda *_: None, **asked)


def waiting(
    pool: ThreadPoolExecutor, served: Served, door: Door, prompt: str = "Well?", **asked: Any
) -> Future[httpx2.Response]:
    """Ask for a whole answer, and return when the server has the request."""
    sent = threading.Event()

    def trace(event: str, _: Any) -> None:
        if event.endswith("send_request_body.complete"):
            sent.set()

    answer = pool.submit(_whole, served, door, prompt, trace, **asked)
    assert sent.wait(PATIENCE)
    with served.http() as client:
        client.get("/api/version")  # What was sent before is read before.
    return answer


def _whole(served: Served, door: Door, prompt: str, trace: Callable[[str, Any], None], **asked: Any) -> httpx2.Response:
    with served.http() as client:
        return client.post(door.path, json=door.body(prompt, stream=False, **asked), extensions={"trace": trace})


class RawCall:
    """A request on a socket of its own, sent when it is made. At the end of its block the socket is closed.

    `room` is how many bytes it may hold that are not read yet, where that is not left to the system.
    """

    def __init__(
        self, served: Served, door: Door, prompt: str, *, stream: bool, model: str | None = None, room: int = 0
    ) -> None:
        body = json.dumps(door.body(prompt, stream=stream, model=model)).encode()
        head = (
            f"POST {door.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        parts = urlsplit(served.url)
        self.socket = socket.socket()
        if room:  # Said before it connects, for the system announces it then.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.socket.settimeout(PATIENCE)
        self.socket.connect((parts.hostname, parts.port))
        self.socket.sendall(head.encode() + body)
        self.text = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def read_until(self, mark: str) -> str:
        """Read until a text has come, or everything has where it does not come; return what has come."""
        while mark not in self.text and (data := self.socket.recv(65536)):
            self.text += data.decode()
        return self.text

    def fileno(self) -> int:
        """Return the number of the socket, so that it can be selected."""
        return self.socket.fileno()


class Census(msgspec.Struct, frozen=True):
    """Whoever a server could leave behind that can be seen from outside."""

    children: int
    descriptors: int


def census(served: Served) -> Census:
    """Count."""
    return Census(len(served.children()), psutil.Process(served.process.pid).num_fds())


def grown(before: Census, now: Census) -> bool:
    """Whether there are more. Fewer may be: a server that looks after its engine has a file open for an instant."""
    return now.children > before.children or now.descriptors > before.descriptors


@contextmanager
def nothing_left(served: Served) -> Iterator[None]:
    """See that whoever was not there before is not there afterwards. Nobody may be connected but in the block."""
    until(lambda: is_alone(served))
    before = census(served)
    yield
    until(lambda: is_alone(served))
    until(lambda: not grown(before, census(served)))
    assert not served.log_has("Traceback"), "".join(served.log[-60:])


def is_alone(served: Served) -> bool:
    """Whether nobody is connected to a server, nor that to anybody."""
    connections = psutil.Process(served.process.pid).net_connections("tcp")
    return all(each.status == psutil.CONN_LISTEN for each in connections)


@contextmanager
def socket_to(served: Served) -> Iterator[ClientConnection]:
    """Open a WebSocket."""
    address = served.url.replace("http", "ws") + RESPONSES.path
    with connect(address, open_timeout=PATIENCE, compression=None, max_size=None) as connection:
        yield connection


def say(connection: ClientConnection, prompt: str, **asked: Any) -> None:
    """Ask over a WebSocket."""
    connection.send(json.dumps({"type": "response.create", "input": prompt} | asked))


def heard(connection: ClientConnection, kind: str) -> dict[str, Any]:
    """Return the next event of a kind that comes over a WebSocket. Fails where an error does."""
    while True:
        event: dict[str, Any] = json.loads(connection.recv(PATIENCE))
        if event["type"] == kind:
            return event
        assert event["type"] != "error", event


def settle(served: Served) -> None:
    """Return when the server has taken up what was sent before: it finds a model for us, as it did for them."""
    with served.http() as client:
        for _ in range(3):
            assert client.post("/api/show", json={"model": "scripted"}).status_code == 200
