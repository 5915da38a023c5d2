"""The process that decodes: `python -m diglot.pictures PIXELS BYTES`.

It reads pictures from its standard input and writes a word on each to its standard output (`wire`). It exists for
`studio` only and is no command for people. What a decoder says of a broken picture goes nowhere: it may hold addresses.

Invariant: it takes no more memory than `BYTES`, where the system can hold it to that.
"""

from __future__ import annotations

import io
import sys
import warnings
from contextlib import suppress
from typing import BinaryIO

from PIL import Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

from diglot.pictures.wire import KINDS, Verdict, read_picture, write_verdict

_PLUGINS = (JpegImagePlugin, PngImagePlugin, WebPImagePlugin)
"""What is loaded of Pillow's forty formats, the three that `core.images` lets pass."""


def main(pixels: int, memory: int) -> None:
    """Look at pictures until there are no more."""
    _hold_to(memory)
    Image.MAX_IMAGE_PIXELS = None  # Judged here, as an error and not as a warning.
    warnings.simplefilter("ignore")
    while (picture := read_picture(sys.stdin.buffer)) is not None:
        _look_at(*picture, pixels=pixels, out=sys.stdout.buffer)


def _hold_to(memory: int) -> None:
    if sys.platform != "win32":
        import resource  # noqa: PLC0415  only there

        with suppress(ValueError, OSError):  # macOS may not; the limit on pixels holds there alone.
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _look_at(kind: str, data: bytes, *, pixels: int, out: BinaryIO) -> None:
    shown = b""
    try:
        with Image.open(io.BytesIO(data), formats=[KINDS[kind]]) as image:
            if image.width * image.height > pixels:
                write_verdict(out, Verdict.TOO_LARGE)
                return
            image.load()
            if kind == "image/webp":
                shown = _as_png(image)
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError):  # Another error ends the process: the same word.
        write_verdict(out, Verdict.DAMAGED)
        return
    write_verdict(out, Verdict.WHOLE, shown)


def _as_png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.convert("RGBA" if image.has_transparency_data else "RGB").save(out, "PNG", compress_level=1)
    return out.getvalue()


main(*map(int, sys.argv[1:]))
