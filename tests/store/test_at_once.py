"""A pull, a copy, a removal and an upload at the same time leave a whole store."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress

import pytest

from diglot.core.digest import Digest, digests_in
from diglot.core.errors import ModelNotFound
from diglot.core.model import ModelRef
from diglot.core.source import read_source
from diglot.store.local import LocalStore
from diglot.store.supply import StoreSupply
from tests.store.arriving import WEIGHTS
from tests.store.gguf_bytes import LLAMA, gguf
from tests.store.registry import Registry, digest_of

OTHER = gguf({**LLAMA, "general.name": "Other"})


@pytest.mark.timeout(120)
async def test_everything_at_once(supply: StoreSupply, store: LocalStore, there: Registry) -> None:
    there.put("me/a:1", ("model", WEIGHTS), ("system", b"a"))
    there.put("me/b:1", ("model", WEIGHTS), ("system", b"b"))
    there.put("me/c:1", ("model", OTHER), ("system", b"b"))
    names = [f"{there.host}/me/{name}:1" for name in "abc"]
    refs = [ModelRef.parse(name) for name in names]

    async def pull(name: str) -> None:
        async for _ in supply.pull(read_source(name), insecure=True):
            pass

    async def change(round_: int) -> None:
        source, target = refs[round_ % 3], refs[(round_ + 1) % 3]
        for work in (
            lambda: store.copy(source, ModelRef.parse(f"copy:{round_}")),
            lambda: store.remove(target),
            lambda: _upload(store, b"%d" % round_),
            lambda: store.remove(ModelRef.parse(f"copy:{round_}")),
        ):
            with suppress(ModelNotFound):
                await asyncio.to_thread(work)

    for round_ in range(6):
        await asyncio.gather(*(pull(name) for name in names), *(change(round_ * 3 + number) for number in range(3)))
        _require_whole(store)
    await asyncio.gather(*(pull(name) for name in names))
    assert [store.resolve(ref).weights.read_bytes() for ref in refs] == [WEIGHTS, WEIGHTS, OTHER]
    _require_whole(store)


async def test_two_who_pull_the_same_content_fetch_it_once(
    supply: StoreSupply, store: LocalStore, there: Registry
) -> None:
    there.put("me/a:1", ("model", WEIGHTS), ("system", b"a"))
    there.put("me/b:1", ("model", WEIGHTS), ("system", b"b"))

    async def pull(name: str) -> None:
        async for _ in supply.pull(read_source(f"{there.host}/me/{name}:1"), insecure=True):
            pass

    await asyncio.gather(pull("a"), pull("b"), pull("a"))
    assert len(there.asked(digest_of(WEIGHTS))) == 8  # Its parts, each once.
    assert len(store.list()) == 2


def _upload(store: LocalStore, data: bytes) -> None:
    intake = store.intake(Digest(hashlib.sha256(data).hexdigest()), size=len(data))
    try:
        intake.write(data)
        intake.settle()
    finally:
        intake.close()


def _require_whole(store: LocalStore) -> None:
    """Every name stands for a model, and what a manifest names is here with the digest it is named by."""
    listing = LocalStore(store.root).listing()
    assert listing.problems == ()
    for model in listing.models:
        for digest in digests_in(store.manifest(model.ref)):
            assert hashlib.sha256(store.blob(digest).read_bytes()).hexdigest() == digest.hex
