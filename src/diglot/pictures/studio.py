"""The studio: starts a process that decodes pictures, and reads what it says of them.

Decoders are the part of a program that hostile bytes break first, and what they unpack is large. So they run in a
process that ends with the request and has a bound on its memory and its time; the server never holds a pixel.
Neighbours: `wire` for what is said, `__main__` for the process, `gallery` for what is asked.

Invariant: when `look` returns or raises, also because it was cancelled, its process has ended.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from diglot.core.items import Image
from diglot.pictures.wire import HEAD, Verdict, picture_bytes

_AT_ONCE: Final = 2
_BASE_BYTES: Final = 512 * 1024**2
"""What the process maps before it decodes anything: Python, Pillow and the libraries behind it."""
_BYTES_PER_PIXEL: Final = 12
"""Twice four for a picture and its copy in other colours, and room for what a decoder keeps beside it."""
_MOST_SHOWN: Final = 5
"""How many times as many bytes as pixels a verdict may bring: a PNG of noise has four, and a little around it."""


class Looked:
    """What was said of one picture, and the picture as every engine reads it."""

    def __init__(self, verdict: Verdict, image: Image) -> None:
        self.verdict = verdict
        self.image = image


class Studio:
    """Decodes pictures of at most `pixels` pixels, all of one request within `patience` seconds."""

    def __init__(self, *, pixels: int, patience: float, environment: Mapping[str, str] | None = None) -> None:
        self._pixels = pixels
        self._patience = patience
        self._environment = environment
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def look(self, images: Sequence[Image]) -> list[Looked]:
        """Return a word on each picture, in order; they end with the first that is not whole. Raises TimeoutError."""
        looked: list[Looked] = []
        async with self._turns, asyncio.timeout(self._patience), self._process() as process:
            assert process.stdin is not None  # noqa: S101  it is a pipe
            assert process.stdout is not None  # noqa: S101  so is that
            writing = asyncio.create_task(_write(process.stdin, images))
            try:
                for image in images:
                    looked.append(await _read(process.stdout, image, most=self._pixels * _MOST_SHOWN + 65536))
                    if looked[-1].verdict is not Verdict.WHOLE:
                        break
            finally:
                writing.cancel()
                await asyncio.wait({writing})
        return looked

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[asyncio.subprocess.Process]:
        memory = _BASE_BYTES + _BYTES_PER_PIXEL * self._pixels
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "diglot.pictures", str(self._pixels), str(memory)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=self._environment,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.communicate())  # What it said last is read: before, Python 3.11 sees no end.


async def _write(target: asyncio.StreamWriter, images: Sequence[Image]) -> None:
    with suppress(ConnectionError):  # It has ended, which its silence tells.
        for image in images:
            target.write(picture_bytes(image.media_type, image.data))
            await target.drain()
        target.close()


async def _read(source: asyncio.StreamReader, image: Image, *, most: int) -> Looked:
    """Return the word on a picture; a process that ended over it has said that it is damaged."""
    try:
        verdict, length = HEAD.unpack(await source.readexactly(HEAD.size))
        if length > most:
            return Looked(Verdict.DAMAGED, image)
        shown = await source.readexactly(length)
    except asyncio.IncompleteReadError:
        return Looked(Verdict.DAMAGED, image)
    return Looked(Verdict(verdict), Image(data=shown, media_type="image/png") if shown else image)
