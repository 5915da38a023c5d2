"""Pushing: the contents of a model, those that the registry lacks, and its manifest last.

A content goes in pieces, each to where the registry sends us after the one before it. Where it sends a piece to
another host, that host is told the piece and nothing of who we are. Neighbours: `pull` for the other way,
`fetch.web` for the rule of who is told what.

Invariant: the registry is given the manifest only when it has everything that the manifest tells of.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Final

import httpx2
import msgspec

from diglot.core.errors import AccessRefused, ModelBroken, UpstreamFailed
from diglot.core.events import Step
from diglot.core.ports import Clock
from diglot.store.fetch.web import Broken, Method, Web, require_success
from diglot.store.local import LocalStore
from diglot.store.manifest import MANIFEST_TYPE, Layer, read_manifest
from diglot.store.manifest import Broken as BrokenDocument
from diglot.store.registry.address import Address

_TRIES: Final = 6
_NOT_FOUND: Final = 404
_CREATED: Final = 201
_REDIRECT: Final = 307


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """What is used to reach the registry. `piece` is how many bytes go at once, which are held in memory."""

    web: Web
    address: Address
    clock: Clock
    piece: int = 16 << 20


async def push(store: LocalStore, sending: Sending) -> AsyncGenerator[Step]:
    """Bring a model to its registry. Raises ModelNotFound, ModelBroken, AccessRefused, UpstreamFailed."""
    yield Step("find")
    ref = sending.address.ref
    data = await asyncio.to_thread(store.manifest, ref)
    try:
        layers = read_manifest(data).contents.values()
    except BrokenDocument as error:
        raise ModelBroken(str(ref), reason=str(error)) from None
    for layer in layers:
        async with aclosing(_sent(store.blob(layer.content), layer, sending)) as steps:
            async for step in steps:
                yield step
    yield Step("write")
    await _answer(sending, "PUT", sending.address.manifest, content=data, kind=MANIFEST_TYPE)
    yield Step("done")


async def _sent(path: Path, layer: Layer, sending: Sending) -> AsyncGenerator[Step]:
    """Send one content, unless the registry has it."""
    digest = layer.content
    whole = Step("send", digest, total=layer.size, completed=layer.size)
    if await _has(sending, layer):
        yield whole
        return
    status, where = await _begun(sending, layer)
    if status == _CREATED:  # Taken over from another of its models.
        yield whole
        return
    marks = hashlib.md5(usedforsecurity=False)
    count = 0
    for start in range(0, layer.size, sending.piece):
        yield Step("send", digest, total=layer.size, completed=start)
        piece = await asyncio.to_thread(_read, path, start, sending.piece)
        if len(piece) != min(sending.piece, layer.size - start):
            raise ModelBroken(str(sending.address.ref), reason=f"{path.name} is shorter than it should be")
        marks.update(hashlib.md5(piece, usedforsecurity=False).digest())
        count += 1
        where = await _piece(sending, where, piece, start=start)
    where = where.copy_merge_params({"digest": str(digest), "etag": f"{marks.hexdigest()}-{count}"})
    await _answer(sending, "PUT", where)
    yield whole


async def _has(sending: Sending, layer: Layer) -> bool:
    status, _ = await _answer(sending, "HEAD", sending.address.blob(layer.content), missing=True)
    return status != _NOT_FOUND


async def _begun(sending: Sending, layer: Layer) -> tuple[int, httpx2.URL]:
    """Say that a content is coming. Returns the status, and where it is to go."""
    url = sending.address.uploads
    if layer.from_:
        url = url.copy_merge_params({"mount": layer.digest, "from": layer.from_})
    return await _answer(sending, "POST", url)


async def _piece(sending: Sending, where: httpx2.URL, piece: bytes, *, start: int) -> httpx2.URL:
    """Send a piece, and return where the next one is to go."""
    headers = {"content-range": f"{start}-{start + len(piece) - 1}", "x-redirect-uploads": "1"}
    _, following = await _answer(sending, "PATCH", where, content=piece, headers=headers)
    return following


async def _answer(
    sending: Sending,
    method: Method,
    url: httpx2.URL,
    *,
    content: bytes = b"",
    kind: str = "application/octet-stream",
    headers: dict[str, str] | None = None,
    missing: bool = False,
) -> tuple[int, httpx2.URL]:
    """Send, again and again while it may help. Returns the status, and where the registry sends us from here.

    `missing`: a 404 is an answer like any other.
    """
    for attempt in range(_TRIES):
        try:
            sent = {"content-type": kind, **(headers or {})}
            return await _once(sending, method, url, content=content, headers=sent, missing=missing)
        except Broken as error:
            if attempt + 1 == _TRIES:
                raise UpstreamFailed(url.host, reason=f"an upload broke off ({error})") from error
            await sending.clock.sleep(2.0**attempt)
    raise AssertionError("the last attempt returns or raises")


async def _once(
    sending: Sending, method: Method, url: httpx2.URL, *, content: bytes, headers: dict[str, str], missing: bool
) -> tuple[int, httpx2.URL]:
    follow = method != "PATCH"  # A piece that is sent elsewhere is put there, which is another request.
    async with sending.web.open(method, url, headers=headers, content=content, follow=follow) as response:
        status, said = response.status_code, response.headers
        if status == _REDIRECT:
            elsewhere = response.url.join(said.get("location", ""))
        elif status == _NOT_FOUND and missing:
            return status, url
        else:
            elsewhere = None
            await _require_taken(response)
        following = response.url.join(said.get("docker-upload-location") or said.get("location") or "")
    if elsewhere is not None:
        async with sending.web.open("PUT", elsewhere, content=content) as response:
            await _require_taken(response)
    return status, following


async def _require_taken(response: httpx2.Response) -> None:
    try:
        await require_success(response)
    except AccessRefused as fault:
        host = response.url.host
        raise AccessRefused(host, reason=f"{fault.reason}; the key of this machine may not write there") from None


def _read(path: Path, start: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(size)
