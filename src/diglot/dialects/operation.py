"""The form of a dialect: a table of operations, each a handful of pure functions.

An operation turns bytes into a request (`parse`) and what came of the request into bytes again, whole
(`whole`) or piece by piece (`stream`). It deliberately knows no transport: `http` carries the bytes, and
knows none of what is in them. Ids and the time come in as a `Stamp`, so that the same input always gives
the same bytes.

Invariant: for the same events, the pieces of `stream`, folded by a client, say what `whole` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol

import msgspec

from diglot.core.allowance import Allowance
from diglot.core.errors import AnyFault
from diglot.core.events import Event, Step
from diglot.core.request import Request

JSON: Final = "application/json; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
SSE: Final = "text/event-stream; charset=utf-8"
NDJSON: Final = "application/x-ndjson"


class Wire(msgspec.Struct, frozen=True):
    """What came in, and how much it may hold.

    Names of headers are in lower case; `path` holds the parameters of the path by name.
    """

    body: bytes = b""
    path: Mapping[str, str] = msgspec.field(default_factory=dict)
    query: Mapping[str, str] = msgspec.field(default_factory=dict)
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    allowance: Allowance = Allowance()


class Stamp(msgspec.Struct, frozen=True):
    """What an answer needs of the world: a fresh id (24 letters and digits) and the time in seconds since the epoch."""

    id: str
    now: float


class Parsed(msgspec.Struct, frozen=True):
    """A request, with `view`: what only the renderer of this operation needs. `stream` as the client asked.

    `notes` are sentences for the log about what was left out of the request.
    """

    request: Request
    view: Any = None
    stream: bool = False
    notes: tuple[str, ...] = ()


class Ending(Protocol):
    """What every stream has. Each method returns what is to be sent now, often nothing."""

    def beat(self) -> bytes:
        """Render a sign of life for a client that has been waiting; nothing where the protocol has none."""

    def close(self) -> bytes:
        """Render the end of a stream that came to its end."""

    def fail(self, fault: AnyFault) -> bytes:
        """Render the end of a stream that broke."""


class Renderer(Ending, Protocol):
    """Turns the events of an answer into the bytes of a stream."""

    def feed(self, event: Event, now: float) -> bytes:
        """Render one event that happened at `now`, in seconds since the epoch."""


class StepRenderer(Ending, Protocol):
    """Turns the steps of a model on its way into the bytes of a stream."""

    def feed(self, step: Step, now: float) -> bytes:
        """Render one step that was taken at `now`, in seconds since the epoch."""


class Rendered(msgspec.Struct, frozen=True):
    """A whole reply as it goes out."""

    body: bytes
    status: int = 200
    media_type: str = JSON
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint.

    `path` is in the form of Starlette (`/v1/models/{id:path}`). `parse` raises only faults. `whole` takes
    the view, a stamp and a `core.result.Result` (where the request yields events), `None` (where it yields steps)
    or `Answer`. `stream` is for requests that yield events, `steps` for those that yield steps. With `upload` the body
    is not read but handed on as it comes, without a limit: `parse` gets none, and the request is a `Receiving`. `body` and
    `reply` are the wire structs, from which the OpenAPI document is made; `summary` is its sentence.
    `error` is this operation's own wording of faults, where it differs from its dialect's.
    """

    method: Literal["GET", "HEAD", "POST", "DELETE"]
    path: str
    summary: str
    parse: Callable[[Wire], Parsed]
    whole: Callable[[Any, Stamp, Any], Rendered]
    stream: Callable[[Any, Stamp], Renderer] | None = None
    steps: Callable[[Any, Stamp], StepRenderer] | None = None
    upload: bool = False
    stream_type: str = SSE
    body: Any = None
    reply: Any = None
    error: Callable[[AnyFault], Rendered] | None = None


class Socket(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint over a WebSocket: each message is a request, and each line that its renderer gives is a message back.

    What one connection sends is answered one after the other. `error` renders a fault before the first line.
    """

    path: str
    parse: Callable[[Wire], Parsed]
    stream: Callable[[Any, Stamp], Renderer]
    error: Callable[[AnyFault], bytes]


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One protocol. `prefix` is where its paths begin; a fault outside every path is rendered by the longest match."""

    name: str
    prefix: str
    operations: tuple[Operation, ...]
    sockets: tuple[Socket, ...] = ()
    error: Callable[[AnyFault], Rendered]


Support = Literal["honoured", "refused", "ignored"]


class Trait(msgspec.Struct, frozen=True):
    """One field of an operation's body, and what becomes of it: a line of `docs/compat.md`.

    `operation` is `POST /v1/chat/completions`; `field` a dotted path. `ignored` needs a reason in `note`.
    """

    operation: str
    field: str
    support: Support
    note: str = ""
