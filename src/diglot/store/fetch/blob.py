"""One content, fetched in parts over several connections, hashed as it comes.

A part that breaks off is gone on with where it broke, after a pause that doubles; what is there is
remembered, so that another run of the program goes on as well. The whole is hashed from the beginning on,
always a little behind what has come, and brought to the disk on the way, so that little is left to do at the end. Neighbours: `web` sends the
requests, `partial` keeps the bytes.

Invariants: a content is named by a digest only when its bytes have it; no more bytes are taken than were
announced; the loop is never blocked by the disk.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

import httpx2
import msgspec

from diglot.core.digest import Digest
from diglot.core.errors import AccessRefused, UpstreamFailed, WrongDigest
from diglot.core.ports import Clock
from diglot.store.fetch.partial import Partial, Plan
from diglot.store.fetch.web import Broken, Web, pieces, require_success

T = TypeVar("T")
_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_PARTIAL_CONTENT: Final = 206
_SAVED: Final = 32 << 20
_TELL: Final = 60_000_000
"""Nanoseconds between two words on how much there is."""
_LOOK: Final = 0.5
"""Seconds between two looks at whether somebody else has finished a content."""


class _Busy(Enum):
    BUSY = "busy"


_BUSY: Final = _Busy.BUSY  # Somebody else fetches it.


class Ways(msgspec.Struct, frozen=True, kw_only=True):
    """How contents are fetched: connections at once, the least and the most bytes of a part, and tries that bring nothing."""

    connections: int = 8
    least: int = 8 << 20
    most: int = 64 << 20
    tries: int = 6

    def plan(self, size: int, *, version: str = "") -> Plan:
        """Return how a content is cut."""
        return Plan(size, min(max(-(-size // (4 * self.connections)), self.least), self.most), version)


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """A content elsewhere. Without a `digest` whatever comes is right, as long as it is one `version`."""

    url: httpx2.URL
    size: int
    digest: Digest | None = None
    version: str = ""

    @property
    def is_known(self) -> bool:
        """Whether a part of it that came before can be told from a part of something else."""
        return self.digest is not None or bool(self.version)


class Fetch:
    """Fetches `remote` to `target`, or to where `place` puts the digest that it turns out to have."""

    def __init__(
        self,
        web: Web,
        remote: Remote,
        *,
        target: Path,
        place: Callable[[Digest], Path],
        clock: Clock,
        ways: Ways,
    ) -> None:
        self.digest: Digest | None = None
        self._web = web
        self._remote = remote
        self._target = target
        self._place = place
        self._clock = clock
        self._ways = ways
        self._straight = remote.url
        self._news = asyncio.Event()
        self._queue: deque[int] = deque()
        self._saved = 0
        self._hashed: asyncio.Future[None] | None = None
        self._flushed: asyncio.Future[None] | None = None

    async def run(self) -> AsyncGenerator[int]:
        """Fetch, and say now and then how many bytes are there. `digest` is set at the end.

        Raises UpstreamFailed, AccessRefused, NoSpace; WrongDigest, after what came was dropped.
        """
        partial = await self._opened()
        if partial is None:
            self.digest = self._remote.digest
        else:
            threads = _Threads(*(ThreadPoolExecutor(1, name) for name in ("disk", "hash", "flush")))
            try:
                arriving = self._arriving(partial, threads)
                async with aclosing(arriving):
                    async for completed in arriving:
                        yield completed
                if self._flushed is not None:
                    await self._flushed  # What the disk refuses it tells once.
                self.digest = await _in(threads.hash, partial.digest)
                await _in(threads.disk, self._settle, partial, self.digest)
            finally:
                await asyncio.shield(asyncio.to_thread(_close, partial, threads))
        yield self._remote.size

    async def _opened(self) -> Partial | None:
        """Wait until nobody else fetches it. None when it is there."""
        while True:
            opening = asyncio.ensure_future(asyncio.to_thread(self._open))
            try:
                partial = await asyncio.shield(opening)
            except asyncio.CancelledError:  # What is opened all the same must not stay so, or nobody could go on.
                if isinstance(late := await opening, Partial):
                    late.close()
                raise
            if partial is not _BUSY:
                return partial
            await self._clock.sleep(_LOOK)

    def _open(self) -> Partial | Literal[_Busy.BUSY] | None:
        if self._is_there():
            return None
        plan = self._ways.plan(self._remote.size, version=self._remote.version)
        partial = Partial.open(self._target, plan, fresh=not self._remote.is_known)
        if partial is None:
            return _BUSY
        if self._is_there():  # Whoever had it has finished it between the two looks.
            partial.drop()
            partial.close()
            return None
        return partial

    def _is_there(self) -> bool:
        return self._remote.digest is not None and self._target.is_file()

    async def _arriving(self, partial: Partial, threads: _Threads) -> AsyncGenerator[int]:
        """Fetch what is missing over several connections; over one from a host that gives no parts."""
        self._queue.extend(place for place in range(len(partial.done)) if not partial.is_whole(place))
        self._saved = partial.completed
        take = _Take(partial, threads, self._wrote)
        for several in (True, False):
            works = min(self._ways.connections, len(self._queue)) if several else 1
            tasks = [asyncio.create_task(self._work(take, several=several)) for _ in range(works)]
            try:
                async for completed in self._watched(tasks, partial):
                    yield completed
            except _NoParts:
                continue
            finally:
                for task in tasks:
                    task.cancel()
                if tasks:
                    await asyncio.wait(tasks)
            break

    async def _watched(self, tasks: list[asyncio.Task[None]], partial: Partial) -> AsyncGenerator[int]:
        for task in tasks:
            task.add_done_callback(lambda _: self._news.set())
        told, word = -_TELL, -1
        while True:
            self._news.clear()
            for task in tasks:
                if task.done():
                    task.result()
            if all(task.done() for task in tasks):
                break
            left = told + _TELL - self._clock.monotonic_ns()
            if left <= 0 and partial.completed != word:
                told, word = self._clock.monotonic_ns(), partial.completed
                yield word
                continue
            with suppress(TimeoutError):  # What came too soon after a word is told of when nothing follows, too.
                async with asyncio.timeout(left * 1e-9 if partial.completed != word else None):
                    await self._news.wait()

    async def _work(self, take: _Take, *, several: bool) -> None:
        """Fetch one part after the other, or everything from a host that gives no parts."""
        if not several:
            await self._persist(take.partial, functools.partial(self._through, take))
        while self._queue and several:
            await self._persist(take.partial, functools.partial(self._part, take, self._queue.popleft()))

    async def _persist(self, partial: Partial, attempt: Callable[[], Awaitable[None]]) -> None:
        """Try again whenever it breaks off, until several tries in a row have brought nothing."""
        fruitless = 0
        while True:
            before = partial.completed
            try:
                await attempt()
            except Broken as error:
                fruitless = 0 if partial.completed > before else fruitless + 1
                if fruitless >= self._ways.tries:
                    raise UpstreamFailed(self._remote.url.host, reason=f"a download broke off ({error})") from error
                self._straight = self._remote.url  # The way there may have been for a time only.
                await self._clock.sleep(2.0**fruitless)
            else:
                return

    async def _part(self, take: _Take, place: int) -> None:
        start, end = take.partial.missing(place)
        headers = {} if (start, end) == (0, self._remote.size) else {"range": f"bytes={start}-{end - 1}"}
        async with self._answer(headers) as response:
            if headers:
                self._require_range(response, start)
            else:
                self._require_size(response)
            await take.all(response, end - start, place=place)

    async def _through(self, take: _Take) -> None:
        async with self._answer({}) as response:
            self._require_size(response)
            await take.all(response, self._remote.size)

    @asynccontextmanager
    async def _answer(self, headers: Mapping[str, str]) -> AsyncIterator[httpx2.Response]:
        straight = self._straight
        try:
            async with self._web.open("GET", straight, headers={**headers, **self._condition}) as response:
                await require_success(response)
                self._straight = response.url
                yield response
        except (AccessRefused, UpstreamFailed) as fault:
            if straight == self._remote.url:
                raise
            raise Broken(fault.message) from fault  # Ask the registry again before giving up.

    @property
    def _condition(self) -> Mapping[str, str]:
        return {"if-range": self._remote.version} if self._remote.version else {}

    def _require_range(self, response: httpx2.Response, start: int) -> None:
        if response.status_code != _PARTIAL_CONTENT:
            self._require_size(response)
            raise _NoParts
        found = _RANGE.fullmatch(response.headers.get("content-range", ""))
        if found is None or int(found[1]) != start or found[3] not in {"*", str(self._remote.size)}:
            raise UpstreamFailed(response.url.host, reason="it sends another part than was asked for")

    def _require_size(self, response: httpx2.Response) -> None:
        declared = response.headers.get("content-length")
        if declared is not None and declared != str(self._remote.size):
            raise UpstreamFailed(response.url.host, reason=f"it has {declared} bytes instead of {self._remote.size}")

    def _wrote(self, take: _Take, place: int | None) -> None:
        """Let the hash follow what was written, and what is there be remembered and brought to the disk."""
        partial = take.partial
        if partial.is_behind:
            self._hashed = _again(self._hashed, take.threads.hash, partial.hash_all)
        if (place is not None and partial.is_whole(place)) or partial.completed - self._saved >= _SAVED:
            self._saved = partial.completed
            self._flushed = _again(self._flushed, take.threads.flush, partial.flush)
        self._news.set()

    def _settle(self, partial: Partial, found: Digest) -> None:
        expected = self._remote.digest
        if expected is not None and found != expected:
            partial.drop()
            raise WrongDigest(expected=str(expected), found=str(found), where=self._remote.url.host)
        partial.settle(self._place(found))


class _NoParts(Exception):
    """The host sends everything where a part was asked for."""


class _Threads(NamedTuple):
    """One each for what blocks: writing, hashing what was written, and waiting for the disk."""

    disk: ThreadPoolExecutor
    hash: ThreadPoolExecutor
    flush: ThreadPoolExecutor


class _Take:
    """Takes the bodies of answers in."""

    def __init__(self, partial: Partial, threads: _Threads, wrote: Callable[[_Take, int | None], None]) -> None:
        self.partial = partial
        self.threads = threads
        self._wrote = wrote

    async def all(self, response: httpx2.Response, size: int, *, place: int | None = None) -> None:
        """Take `size` bytes and no more, of one part or of everything. Raises Broken where it ends early."""
        taken = 0
        async with aclosing(pieces(response)) as stream:
            async for piece in stream:
                fresh = piece[: size - taken]
                await self._write(fresh, taken, place)
                taken += len(fresh)
                if taken == size:
                    return
        if taken < size:
            raise Broken(f"{response.url.host}: it ended early")

    async def _write(self, data: memoryview | bytes, offset: int, place: int | None) -> None:
        if place is None:
            await _in(self.threads.disk, self.partial.write_through, offset, data)
        else:
            await _in(self.threads.disk, self.partial.write, place, data)
        self._wrote(self, place)


def _in(threads: ThreadPoolExecutor, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
    return asyncio.get_running_loop().run_in_executor(threads, work, *arguments)


def _again(
    before: asyncio.Future[None] | None, threads: ThreadPoolExecutor, work: Callable[[], None]
) -> asyncio.Future[None]:
    """Begin work anew unless it goes on: then it is done for what was there when it began. Raises what it raised before."""
    if before is not None:
        if not before.done():
            return before
        before.result()
    return _in(threads, work)


def _close(partial: Partial, threads: _Threads) -> None:
    """End all that is still written, hashed or flushed before the file is closed, and remember what is there."""
    threads.disk.shutdown()
    threads.hash.shutdown(cancel_futures=True)
    threads.flush.shutdown(cancel_futures=True)
    partial.close()
