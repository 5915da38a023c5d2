"""What the tests of HTTP stand on: a tiny dialect, a driver that speaks ASGI to the application, and a real server.

The dialect says what happened in plain lines, so that a test can read a reply without knowing any protocol. The
services behind it are the real ones, over the engines of `tests.services.world`.
"""

# ruff: noqa: ARG002, D102  the ports say what their methods do, and give them arguments

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import uvicorn
from msgspec.structs import replace
from starlette.types import ASGIApp, Message

from diglot.core.errors import AnyFault, InvalidField, MalformedBody
from diglot.core.events import Event, TextDelta
from diglot.core.request import Conversation, Embedding, Generation, ListModels, Ping, Residence, ShowModel
from diglot.core.result import Result
from diglot.dialects.operation import TEXT, Dialect, Operation, Parsed, Rendered, Stamp, Wire
from diglot.http.application import Access, build_application
from diglot.http.body import Limits
from diglot.http.protocol import BoundedProtocol
from diglot.http.serve import World as HttpWorld
from tests.services import world as services
from tests.services.world import until

STATUS: Final = {
    "UnknownPath": 404,
    "ModelNotFound": 404,
    "WrongMethod": 405,
    "Forbidden": 403,
    "KeyMissing": 401,
    "BodyTooLarge": 413,
    "HeadTooLarge": 431,
    "TooSlow": 408,
    "Busy": 503,
    "EngineFailed": 500,
    "EngineCrashed": 500,
}


class SayBody(msgspec.Struct):
    """What `say` takes. `choices` answers are made."""

    text: str = ""
    stream: bool = False
    choices: int = 1


class Lines:
    """Renders a stream as lines; the text itself as it comes."""

    def __init__(self, broken: str) -> None:
        self._broken = broken

    def feed(self, event: Event, now: float) -> bytes:
        if self._broken == "render" and isinstance(event, TextDelta):
            raise KeyError("a bug of the renderer")
        return event.text.encode() if isinstance(event, TextDelta) else b""

    def beat(self) -> bytes:
        return b"(beat)"

    def close(self) -> bytes:
        return b"" if self._broken == "mute" else b" end\n"

    def fail(self, fault: AnyFault) -> bytes:
        return f" broke: {type(fault).__name__}\n".encode()


def _parse_say(wire: Wire) -> Parsed:
    try:
        body = msgspec.json.decode(wire.body or b"{}", type=SayBody)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedBody("no JSON object") from error
    if body.text == "wrong":
        raise InvalidField("text", "it is wrong")
    if body.text == "bug":
        raise KeyError("a bug of the parser")
    request = Generation(residence=Residence(model="chat"), prompt=Conversation(()), choices=body.choices)
    return Parsed(request, view=body.text, stream=body.stream)


def _whole(view: str, stamp: Stamp, result: Result) -> Rendered:
    if view == "whole":
        raise KeyError("a bug of the renderer")
    return Rendered("|".join(choice.text for choice in result.choices).encode(), media_type=TEXT)


def _error(fault: AnyFault) -> Rendered:
    kind = type(fault).__name__
    return Rendered(f"{kind}: {fault.message}".encode(), STATUS.get(kind, 400), TEXT)


def _told(view: Any, stamp: Stamp, answer: object) -> Rendered:
    return Rendered(repr(answer).encode(), media_type=TEXT)


TINY: Final = Dialect(
    name="tiny",
    prefix="/",
    error=_error,
    operations=(
        Operation(method="GET", path="/", summary="Ping.", parse=lambda _: Parsed(Ping()), whole=_told),
        Operation(
            method="POST",
            path="/say",
            summary="Say.",
            parse=_parse_say,
            whole=_whole,
            stream=lambda view, _: Lines(view),
            stream_type=TEXT,
            body=SayBody,
        ),
        Operation(
            method="POST",
            path="/embed",
            summary="Embed.",
            parse=lambda _: Parsed(Embedding(residence=Residence(), inputs=("a",))),
            whole=_told,
        ),
        Operation(
            method="GET",
            path="/models/{id:path}",
            summary="Show.",
            parse=lambda wire: Parsed(ShowModel(model=wire.path["id"])),
            whole=_told,
        ),
        Operation(
            method="DELETE",
            path="/models/{id:path}",
            summary="Echo what came in.",
            parse=lambda wire: Parsed(ListModels(), view=wire),
            whole=lambda wire, *_: Rendered(msgspec.json.encode(wire)),
        ),
    ),
)
OTHER: Final = replace(
    TINY, name="other", prefix="/other", operations=(), error=lambda fault: replace(_error(fault), body=b"other")
)


class Ids:
    """Names that a test can foresee."""

    def __init__(self) -> None:
        self.given = 0

    def new(self) -> str:
        self.given += 1
        return f"id{self.given:022}"


class World(services.World):
    """The services, and the application over them."""

    def __init__(
        self, *, queue: int = 2, access: Access | None = None, max_body: int = 1000, patience: float = 60.0
    ) -> None:
        super().__init__(queue=queue)
        limits = Limits(
            max_body=max_body,
            max_unpacked=max_body,
            max_depth=20,
            max_values=10_000,
            body_timeout=patience,
            heartbeat=10.0,
        )
        self.http = HttpWorld(desk=self.desk, clock=self.clock, ids=Ids(), limits=limits)
        self.application = build_application((TINY, OTHER), self.http, access=access or Access())

    @property
    def busy(self) -> int:
        """How many answers are being made."""
        return sum(engine.busy for engine in self.loader.engines)

    def is_at_rest(self) -> bool:
        """Whether nobody holds a slot or an engine."""
        residents = self.residency._residents.values()  # noqa: SLF001  nothing else shows a leak
        return not self.busy and not self.residency._turnstiles and all(not each.users for each in residents)  # noqa: SLF001

    def ask(self, method: str, path: str, body: bytes = b"", **how: Any) -> "Exchange":
        """Begin a request."""
        return Exchange(self.application, method, path, [body], **how)

    async def get(self, method: str, path: str, body: bytes = b"", **how: Any) -> "Exchange":
        """Make a request and wait for its end."""
        exchange = self.ask(method, path, body, **how)
        await exchange.task
        return exchange

    async def warm(self) -> None:
        """Load the model, so that `engine` can be set up."""
        async for _ in self.generate(services.generation()):
            pass


class Exchange:
    """One request over ASGI, in a task; the client stays until `leave`."""

    def __init__(
        self,
        app: ASGIApp,
        method: str,
        path: str,
        body: Iterable[bytes],
        *,
        headers: dict[str, str] | None = None,
        query: str = "",
        unfinished: bool = False,
    ) -> None:
        parts = list(body)
        more = [True] * (len(parts) - 1) + [unfinished]
        self._parts: list[Message] = [
            {"type": "http.request", "body": part, "more_body": left} for part, left in zip(parts, more, strict=True)
        ]
        self._gone = asyncio.Event()
        self.sent: list[Message] = []
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [
                (name.lower().encode(), value.encode("latin-1"))
                for name, value in {"host": "localhost:11435", **(headers or {})}.items()
            ],
        }
        self.task: asyncio.Task[None] = asyncio.ensure_future(app(scope, self._receive, self._send))

    def leave(self) -> None:
        """Hang up."""
        self._gone.set()

    async def _receive(self) -> Message:
        if self._parts:
            return self._parts.pop(0)
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int | None:
        """The status, once the headers have come."""
        return self.sent[0]["status"] if self.sent else None

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode("latin-1") for name, value in self.sent[0]["headers"]}

    @property
    def text(self) -> str:
        """What has come of the body."""
        return b"".join(message["body"] for message in self.sent[1:]).decode()

    @property
    def ended(self) -> bool:
        """Whether the reply is whole."""
        return bool(self.sent) and self.sent[-1].get("more_body") is False


class Line:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def rest(self) -> bytes:
        """Read until the server hangs up, by whichever way."""
        heard = b""
        try:
            while data := await self.reader.read(65536):
                heard += data
        except ConnectionError:
            pass
        return heard

    async def until(self, mark: bytes) -> bytes:
        return await self.reader.readuntil(mark)

    def close(self) -> None:
        self.writer.close()

    def abort(self) -> None:
        """Hang up at once, with no goodbye."""
        self.writer.transport.abort()


class Serving:
    """A server on loopback."""

    def __init__(self, server: uvicorn.Server, port: int) -> None:
        self.server = server
        self.port = port
        self._lines: list[Line] = []

    async def line(self) -> Line:
        """Connect."""
        line = Line(*await asyncio.open_connection("127.0.0.1", self.port))
        self._lines.append(line)
        return line

    async def talk(self, data: bytes) -> bytes:
        """Send, and hear all until the server hangs up."""
        line = await self.line()
        await line.send(data)
        return await line.rest()

    async def close(self) -> None:
        for line in self._lines:
            line.abort()
        await until(lambda: not self.server.server_state.connections)


class Plain(BoundedProtocol):
    """Refuses as the tiny dialect does."""

    @staticmethod
    def refusal(path: str, fault: AnyFault) -> Rendered:  # noqa: ARG004  it has one form for all paths
        return _error(fault)


@asynccontextmanager
async def serving(app: ASGIApp, protocol: type[BoundedProtocol] = Plain) -> AsyncIterator[Serving]:
    """Serve with the protocol that Diglot uses."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(app, http=protocol, ws="none", log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve([listener]))
    await until(lambda: server.started)
    served = Serving(server, listener.getsockname()[1])
    try:
        yield served
    finally:
        await served.close()
        server.should_exit = True
        await task
        listener.close()


def post(body: bytes, path: str = "/say", *, headers: str = "") -> bytes:
    """Return a request as it goes over the wire."""
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body
