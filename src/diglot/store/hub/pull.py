"""Pulling from Hugging Face: the files of the choice, each checked, and a name for them.

A model whose weights are in several files is put together into one, since the store knows one file of weights a
model, as other tools that read it do. Neighbours: `choice`, `listing`, `store.merge`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from urllib.parse import quote

import httpx2
import msgspec

from diglot.core.digest import Digest
from diglot.core.errors import NotOffered
from diglot.core.events import Step
from diglot.core.ports import Clock
from diglot.core.source import FromHub
from diglot.store.fetch.blob import Remote, Ways
from diglot.store.fetch.file import FileFetch
from diglot.store.fetch.web import Web
from diglot.store.hub.choice import Chosen, NoChoice, Offered, choose
from diglot.store.local import LocalStore


class Hub(msgspec.Struct, frozen=True, kw_only=True):
    """Hugging Face, or what stands in for it: where it is, the token for it, and how it is reached."""

    endpoint: str
    token: str
    web: Web
    clock: Clock
    ways: Ways


async def pull(store: LocalStore, source: FromHub, hub: Hub) -> AsyncGenerator[Step]:
    """Get a model. Raises NotOffered, AccessRefused, UpstreamFailed, NoSpace, WrongDigest, ModelBroken."""
    yield Step("find")
    commit, files = await asyncio.to_thread(_listed, source, hub)
    chosen = _chosen(source, files, hub)
    root = f"{hub.endpoint.rstrip('/')}/{source.repository}/resolve/{commit}/"
    digests: list[Digest] = []
    for file in (*chosen.weights, *((chosen.projector,) if chosen.projector else ())):
        fetch = _fetch(file, root, store=store, hub=hub)
        async with aclosing(fetch.steps(file.path)) as steps:
            async for step in steps:
                yield step
        digests.append(fetch.digest)
    yield Step("verify")
    parts, projector = digests[: len(chosen.weights)], digests[len(chosen.weights) :]
    if len(parts) > 1:
        yield Step("convert")
        weights = await asyncio.to_thread(store.merge, source.ref, parts)
    else:
        (weights,) = parts
    yield Step("write")
    await asyncio.to_thread(store.assemble, source.ref, weights, projector=next(iter(projector), None))
    yield Step("done")


def _listed(source: FromHub, hub: Hub) -> tuple[str, tuple[Offered, ...]]:
    from diglot.store.hub.listing import files_of  # noqa: PLC0415  Slow to import, so in this thread.

    return files_of(source, endpoint=hub.endpoint, token=hub.token)


def _chosen(source: FromHub, files: tuple[Offered, ...], hub: Hub) -> Chosen:
    try:
        return choose(files, source.ref.tag)
    except NoChoice as error:
        raise NotOffered(str(source.ref), where=httpx2.URL(hub.endpoint).host, reason=str(error)) from None


def _fetch(file: Offered, root: str, *, store: LocalStore, hub: Hub) -> FileFetch:
    remote = Remote(url=httpx2.URL(root + quote(file.path)), size=file.size, digest=file.digest)
    return FileFetch(remote, store=store, web=hub.web, clock=hub.clock, ways=hub.ways)
