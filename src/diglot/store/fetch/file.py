"""Files by URL: fetched to the contents of the store, whether or not their digest is known before.

Neighbours: `blob` fetches, `hub.pull` and `store.supply` make models of what came.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx2

from diglot.core.digest import Digest
from diglot.core.errors import NotOffered, UpstreamFailed
from diglot.core.events import Step
from diglot.core.ports import Clock
from diglot.store.fetch.blob import Fetch, Remote, Ways
from diglot.store.fetch.partial import bytes_there
from diglot.store.fetch.web import Broken, Web, require_success
from diglot.store.intake import require_space
from diglot.store.local import LocalStore


class FileFetch:
    """Fetches `remote` into `store`. `digest` is what it turned out to be, once it is there."""

    def __init__(self, remote: Remote, *, store: LocalStore, web: Web, clock: Clock, ways: Ways) -> None:
        self._remote = remote
        self._store = store
        # What has no digest yet is kept under that of its address until it has one.
        named = remote.digest or Digest(hashlib.sha256(str(remote.url).encode()).hexdigest())
        self._target = store.blob(named)
        self._fetch = Fetch(web, remote, target=self._target, place=store.blob, clock=clock, ways=ways)

    @property
    def digest(self) -> Digest:
        """The digest, once it is there."""
        assert self._fetch.digest is not None  # noqa: S101  asked too early
        return self._fetch.digest

    async def steps(self, subject: str) -> AsyncGenerator[Step]:
        """Fetch, unless it is here. Raises as `Fetch.run`."""
        known, size = self._remote.digest, self._remote.size
        if known is None or not await asyncio.to_thread(self._store.holds, known):
            await asyncio.to_thread(require_space, self._store.root, max(0, size - bytes_there(self._target)))
        async with aclosing(self._fetch.run()) as arriving:
            async for completed in arriving:
                yield Step("receive", known, total=size, completed=completed, subject="" if known else subject)


async def found(web: Web, url: httpx2.URL) -> Remote:
    """Ask what is at a URL, without taking it. Raises NotOffered, UpstreamFailed, AccessRefused."""
    try:
        async with web.open("GET", url) as response:
            if response.status_code == 404:  # noqa: PLR2004  HTTP's
                raise NotOffered(url.path.rpartition("/")[2], where=url.host)
            await require_success(response)
            declared = response.headers.get("content-length", "")
            if not declared.isdecimal():
                raise UpstreamFailed(url.host, reason="it does not say how large the file is")
            tag = response.headers.get("etag", "")
            version = tag if tag.startswith('"') else response.headers.get("last-modified", "")
            return Remote(url=url, size=int(declared), version=version)
    except Broken as error:
        raise UpstreamFailed(url.host, reason=str(error)) from error
