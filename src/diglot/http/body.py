"""Reading a request: its body within bounds of size and time, and the watch for a client that leaves.

Framework-free: it works on ASGI's `scope` and `receive`. Of what it reads it sees the shape and not the meaning.
Neighbours: `decoding` unpacks, `shape` judges; `serve` and `websocket` call it.

Invariant: never more bytes are held than the limits say, or one piece of what is handed on, and never longer waited for.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope

from diglot.core.allowance import Allowance
from diglot.core.errors import BodyTooLarge, Cancelled, Fault, TooSlow, UnknownCoding
from diglot.dialects.operation import Wire
from diglot.http.decoding import codings_of, decoded
from diglot.http.shape import check_shape

T = TypeVar("T")

_AT_ONCE = 64 * 1024  # A longer body is read beside the loop, which it would hold up.
_MOST_DIGITS = 18  # Longer numbers are larger than any limit, and not worth reading.


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one request may take.

    `max_body` are bytes as they come and `max_unpacked` bytes once unpacked; JSON may be nested `max_depth` deep and hold
    `max_values`, and the allowance says of what. A body may take `body_timeout` seconds to arrive; after `heartbeat`
    seconds of silence a stream gives a sign of life.
    """

    max_body: int
    max_unpacked: int
    max_depth: int
    max_values: int
    body_timeout: float
    heartbeat: float
    allowance: Allowance = Allowance()


async def read_wire(scope: Scope, receive: Receive, limits: Limits) -> Wire:
    """Read the whole request, unpacked and measured.

    Raises BodyTooLarge, UnknownCoding, MalformedBody, TooMany and TooSlow.
    """
    head = read_head(scope)
    codings = codings_of(head.headers.get("content-encoding", ""))
    declared = head.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > _MOST_DIGITS or int(declared) > limits.max_body):
        raise BodyTooLarge(limits.max_body)
    try:
        async with asyncio.timeout(limits.body_timeout):
            body = await _read_body(receive, limits.max_body)
    except TimeoutError:
        raise TooSlow("body", seconds=limits.body_timeout) from None
    if codings:  # A small one may unpack to a large one.
        body = await asyncio.to_thread(decoded, body, codings, limit=limits.max_unpacked)
    return await measured(head, body, limits)


async def measured(head: Wire, body: bytes, limits: Limits) -> Wire:
    """Return the request, its JSON without a byte order mark and within its limits. Raises MalformedBody and TooMany."""
    wire = msgspec.structs.replace(head, body=body.removeprefix(codecs.BOM_UTF8), allowance=limits.allowance)
    await aside(lambda wire: check_shape(wire.body, depth=limits.max_depth, values=limits.max_values), wire)
    return wire


async def aside(work: Callable[[Wire], T], wire: Wire) -> T:
    """Do `work`, beside the loop where the body is long."""
    return work(wire) if len(wire.body) <= _AT_ONCE else await asyncio.to_thread(work, wire)


def read_head(scope: Scope) -> Wire:
    """Read all but the body."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    return Wire(path=scope.get("path_params", {}), query=query, headers=headers)


def uncoded(head: Wire) -> Wire:
    """Return the head of a body that is handed on as it comes. Raises UnknownCoding where it would have to be unpacked."""
    if coding := codings_of(head.headers.get("content-encoding", "")):
        raise UnknownCoding(coding[0], known="identity")
    return head


async def chunks_of(receive: Receive, *, patience: float) -> AsyncIterator[bytes]:
    """Yield the body as it comes. `TooSlow` where nothing comes for `patience` seconds, `Cancelled` when the client leaves."""
    more = True
    while more:
        try:
            async with asyncio.timeout(patience):
                message = await receive()
        except TimeoutError:
            raise TooSlow("rest of the body", seconds=patience) from None
        if message["type"] == "http.disconnect":
            raise Cancelled("the client left", left=True)
        more = message.get("more_body", False)
        yield message.get("body", b"")


async def _read_body(receive: Receive, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Cancelled("the client left", left=True)
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise BodyTooLarge(limit)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def until_gone(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_listening(work: Coroutine[Any, Any, T], receive: Receive) -> T:
    """Run `work`, and cancel it when the client leaves; then `Cancelled` is raised.

    No server does this for answers that do not stream, so that a client that has given up would still
    keep a slot busy.
    """
    task = asyncio.create_task(work)
    gone = asyncio.create_task(until_gone(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task})
        if task.cancelled() or isinstance(task.exception(), Fault):
            raise Cancelled("the client left", left=True)
        return task.result()  # It was done just now, or has a bug that nobody else would hear of.
    finally:
        gone.cancel()
        if not task.done():  # We are being cancelled ourselves.
            task.cancel()
            await asyncio.wait({task})
