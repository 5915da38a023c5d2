"""Reading a request: its body within bounds of size and time, and the watch for a client that leaves.

Framework-free: it works on ASGI's `scope` and `receive`. It does not look into what it reads.
Neighbour: `http.serve`.

Invariant: never more than `limit` bytes are held, or one piece of what is handed on, and never longer than `patience`
seconds waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope

from diglot.core.errors import BodyTooLarge, Cancelled, Fault, MalformedBody, UnknownCoding
from diglot.dialects.operation import Wire
from diglot.http.decoding import codings_of, decoded

T = TypeVar("T")

_AT_ONCE = 256 * 1024  # A longer body is unpacked beside the loop, which it would hold up.
_MOST_DIGITS = 18  # Longer numbers are larger than any limit, and not worth reading.


async def read_wire(scope: Scope, receive: Receive, *, limit: int, patience: float) -> Wire:
    """Read the whole request, unpacked. `BodyTooLarge`, `UnknownCoding` and `MalformedBody` (also: too slow) say why not."""
    head = read_head(scope)
    codings = codings_of(head.headers.get("content-encoding", ""))
    declared = head.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > _MOST_DIGITS or int(declared) > limit):
        raise BodyTooLarge(limit)
    try:
        async with asyncio.timeout(patience):
            body = await _read_body(receive, limit)
    except TimeoutError:
        raise MalformedBody(f"the body did not arrive within {patience:g} seconds") from None
    if codings and len(body) > _AT_ONCE:
        body = await asyncio.to_thread(decoded, body, codings, limit=limit)
    elif codings:
        body = decoded(body, codings, limit=limit)
    return msgspec.structs.replace(head, body=body)


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
    """Yield the body as it comes. `MalformedBody` where nothing comes for `patience` seconds, `Cancelled` when the client leaves."""
    more = True
    while more:
        try:
            async with asyncio.timeout(patience):
                message = await receive()
        except TimeoutError:
            raise MalformedBody(f"nothing more of the body arrived within {patience:g} seconds") from None
        if message["type"] == "http.disconnect":
            raise Cancelled("the client left")
        more = message.get("more_body", False)
        yield message.get("body", b"")


async def _read_body(receive: Receive, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Cancelled("the client left")
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
            raise Cancelled("the client left")
        return task.result()  # It was done just now, or has a bug that nobody else would hear of.
    finally:
        gone.cancel()
        if not task.done():  # We are being cancelled ourselves.
            task.cancel()
            await asyncio.wait({task})
