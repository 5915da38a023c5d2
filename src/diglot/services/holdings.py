"""Holdings: models copied and removed, and contents kept, in the store that is ours.

A model that is removed or replaced while it is in use stays on disk until its last user has left: answers
under way end as they would have, and who asks for it from then on meets what there is now. Neighbours:
`core.ports.ModelKeep` holds the files, `services.residency` knows which of them are in use.

Invariant: what a name stood for is dropped once nobody needs it, and not before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from diglot.core.digest import Digest
from diglot.core.errors import InvalidField, ModelBroken, ModelForeign, ModelNotFound
from diglot.core.model import InvalidName, ModelRef
from diglot.core.ports import ModelKeep
from diglot.core.request import CopyModel, DeleteModel, StoreBlob
from diglot.services.catalog import Catalog, read_name
from diglot.services.residency import Residency

_PIECE = 1 << 20
"""Bytes that are written at once: a thread for each of the network's small pieces would cost more than the writing."""


class Holdings:
    """Changes what is on disk."""

    def __init__(self, keep: ModelKeep, catalog: Catalog, residency: Residency) -> None:
        self._keep = keep
        self._catalog = catalog
        self._residency = residency
        self._changed: set[ModelRef] = set()
        self._looking = asyncio.Lock()
        self._tidying: asyncio.Task[None] | None = None

    async def copy(self, request: CopyModel) -> None:
        """Give a model a second name."""
        source, target = read_name(request.source), _read_target(request.target)
        try:
            await asyncio.to_thread(self._keep.copy, source, target)
        except ModelNotFound:
            raise await self._missing(request.source) from None
        await self.changed(target)

    async def delete(self, request: DeleteModel) -> None:
        """Remove a name."""
        ref = read_name(request.model)
        try:
            await asyncio.to_thread(self._keep.remove, ref)
        except ModelNotFound:
            raise await self._missing(request.model) from None
        await self.changed(ref)

    async def has(self, digest: Digest) -> bool:
        """Say whether a content is there."""
        return await asyncio.to_thread(self._keep.holds, digest)

    async def receive(self, request: StoreBlob, chunks: AsyncIterator[bytes]) -> bool:
        """Keep a content; returns whether it is new here. `WrongDigest`, `NoSpace`.

        One that is there is not read at all.
        """
        if await self.has(request.digest):
            return False
        intake = await asyncio.to_thread(self._keep.intake, request.digest, size=request.size)
        try:
            async for piece in _joined(chunks):
                await asyncio.to_thread(intake.write, piece)
            await asyncio.to_thread(intake.settle)
        finally:
            await asyncio.shield(asyncio.to_thread(intake.close))
        return True

    async def changed(self, ref: ModelRef) -> None:
        """See to it that what a name stood for until now goes, once nobody uses it."""
        self._changed.add(ref)
        in_use = await self._tidied()
        if in_use is not None and self._tidying is None:
            self._tidying = asyncio.create_task(self._tidy(in_use), name="remove what is in use no more")

    async def close(self) -> None:
        """Stop waiting for users to leave."""
        if self._tidying is not None:
            self._tidying.cancel()
            await asyncio.wait({self._tidying})

    async def _tidy(self, in_use: asyncio.Event | None) -> None:
        try:
            while in_use is not None:
                await in_use.wait()
                in_use = await self._tidied()
        finally:
            self._tidying = None

    async def _tidied(self) -> asyncio.Event | None:
        """Remove what can be; returns None, or what is set when more can be.

        Who waited for a model when its name was changed may have loaded it since, so each time is looked anew.
        """
        async with self._looking:
            let_go = self._residency.let_go  # Before the look: what is let go during it must not be missed.
            refs = tuple(self._changed)
            for ref in refs:
                self._residency.retire(ref, current=await asyncio.to_thread(self._digest, ref))
            if not await asyncio.to_thread(self._keep.tidy):
                return let_go
            self._changed.difference_update(refs)
            return None

    def _digest(self, ref: ModelRef) -> str | None:
        try:
            return self._keep.resolve(ref).digest
        except (ModelNotFound, ModelBroken):
            return None

    async def _missing(self, name: str) -> ModelNotFound | ModelForeign:
        """Return why a name is not among ours."""
        try:
            await self._catalog.find(name)
        except ModelNotFound as fault:
            return fault
        return ModelForeign(name)


def _read_target(name: str) -> ModelRef:
    try:
        return ModelRef.parse(name)
    except InvalidName as error:
        raise InvalidField("destination", error.reason) from error


async def _joined(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the same bytes in larger pieces."""
    gathered: list[bytes] = []
    size = 0
    async for chunk in chunks:
        gathered.append(chunk)
        size += len(chunk)
        if size >= _PIECE:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)
