"""Pulling: a model of a registry, content by content, and its manifest last and word for word.

A content that is here is trusted by its presence, as it was checked when it came. Neighbours: `fetch.blob`
brings the contents, `local` gives the name.

Invariant: a name is written only when everything that its manifest tells of is here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from diglot.core.errors import NotOffered, UpstreamFailed
from diglot.core.events import Step
from diglot.core.ports import Clock
from diglot.store.fetch.blob import Fetch, Remote, Ways
from diglot.store.fetch.partial import bytes_there
from diglot.store.fetch.web import Broken, Web, read, require_success
from diglot.store.intake import require_space
from diglot.store.local import LocalStore
from diglot.store.manifest import MANIFEST_TYPE, Layer, Manifest, read_manifest
from diglot.store.manifest import Broken as BrokenDocument
from diglot.store.reading import MAX_MANIFEST
from diglot.store.registry.address import Address

_NOT_FOUND: Final = 404
_TRIES: Final = 3


async def fetch_manifest(web: Web, address: Address, *, clock: Clock) -> bytes:
    """Return the manifest of a model, byte for byte. Raises NotOffered, AccessRefused, UpstreamFailed."""
    host = address.ref.host
    for attempt in range(_TRIES):
        try:
            async with web.open("GET", address.manifest, headers={"accept": MANIFEST_TYPE}) as response:
                if response.status_code == _NOT_FOUND:
                    raise NotOffered(str(address.ref), where=host)
                await require_success(response)
                return await read(response, limit=MAX_MANIFEST)
        except Broken as error:
            if attempt + 1 == _TRIES:
                raise UpstreamFailed(host, reason=str(error)) from error
            await clock.sleep(2.0**attempt)
    raise AssertionError("the last attempt returns or raises")


def contents_of(data: bytes, address: Address) -> tuple[Layer, ...]:
    """Return what a manifest tells of, each content once, the config last. Raises NotOffered where it cannot be run here."""
    manifest = _readable(data, address)
    kinds = [layer.kind for layer in manifest.layers]
    if "model" not in kinds:
        tensors = "its format is safetensors, only GGUF can be run here"
        raise _useless(address, tensors if "tensor" in kinds else "it has no weights and runs elsewhere")
    try:
        return tuple(manifest.contents.values())
    except BrokenDocument as error:
        raise UpstreamFailed(address.ref.host, reason=str(error)) from None


async def pull(store: LocalStore, web: Web, address: Address, *, clock: Clock, ways: Ways) -> AsyncGenerator[Step]:
    """Get a model. Raises NotOffered, AccessRefused, UpstreamFailed, NoSpace, WrongDigest, ModelBroken."""
    yield Step("find")
    data = await fetch_manifest(web, address, clock=clock)
    layers = contents_of(data, address)
    for _ in range(_TRIES):
        await asyncio.to_thread(_require_space, store, layers)
        for layer in layers:
            async with aclosing(
                _fetched(layer, store=store, web=web, address=address, clock=clock, ways=ways)
            ) as steps:
                async for step in steps:
                    yield step
        yield Step("verify")
        yield Step("write")
        if not await asyncio.to_thread(store.install, address.ref, data):
            yield Step("done")
            return
    raise UpstreamFailed(address.ref.host, reason="contents were removed here as quickly as they came")


async def _fetched(
    layer: Layer, *, store: LocalStore, web: Web, address: Address, clock: Clock, ways: Ways
) -> AsyncGenerator[Step]:
    """Fetch one content, unless it is here."""
    digest = layer.content
    if await asyncio.to_thread(store.holds, digest):
        yield Step("receive", digest, total=layer.size, completed=layer.size)
        return
    remote = Remote(url=address.blob(digest), size=layer.size, digest=digest)
    fetch = Fetch(web, remote, target=store.blob(digest), place=store.blob, clock=clock, ways=ways)
    async with aclosing(fetch.run()) as arriving:
        async for completed in arriving:
            yield Step("receive", digest, total=layer.size, completed=completed)


def _require_space(store: LocalStore, layers: tuple[Layer, ...]) -> None:
    paths = [(store.blob(layer.content), layer.size) for layer in layers]
    needed = sum(max(0, size - bytes_there(path)) for path, size in paths if not path.is_file())
    require_space(store.root, needed)


def _readable(data: bytes, address: Address) -> Manifest:
    try:
        return read_manifest(data)
    except BrokenDocument as error:
        raise UpstreamFailed(address.ref.host, reason=str(error)) from None


def _useless(address: Address, reason: str) -> NotOffered:
    return NotOffered(str(address.ref), where=address.ref.host, reason=reason)
