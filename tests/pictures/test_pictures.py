"""Pictures, decoded for real in a process of their own: what is whole passes, what is not is refused, nothing stays."""

import asyncio
import io
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil
import pytest
from PIL import Image as Pil

from diglot.core.errors import InvalidField
from diglot.core.images import NotAnImage, image_of
from diglot.core.items import Image
from diglot.pictures import studio
from diglot.pictures.gallery import Gallery
from diglot.pictures.studio import Studio
from diglot.pictures.wire import picture_bytes
from tests.core.test_images import chunk, extended, jpeg, lossless, lossy, png
from tests.services.world import until

PIXELS: Final = 100_000
PATIENCE: Final = 50.0


def gallery(*, pixels: int = PIXELS, patience: float = PATIENCE) -> Gallery:
    return Gallery(Studio(pixels=pixels, patience=patience), pixels=pixels)


def drawn(kind: str, size: tuple[int, int] = (40, 30), *, mode: str = "RGB", **how: object) -> bytes:
    """Draw a picture: one of many colours, so that a decoder has something to do."""
    out = io.BytesIO()
    Pil.effect_noise(size, 80).convert(mode).save(out, kind, **how)
    return out.getvalue()


def animated(kind: str) -> bytes:
    out = io.BytesIO()
    frames = [Pil.effect_noise((20, 20), 90).convert("RGB") for _ in range(3)]
    frames[0].save(out, kind, save_all=True, append_images=frames[1:])
    return out.getvalue()


WHOLE: Final[dict[str, Callable[[], bytes]]] = {
    "png": lambda: drawn("PNG"),
    "png of a palette": lambda: drawn("PNG", mode="P"),
    "png of grey": lambda: drawn("PNG", mode="L"),
    "png that can be looked through": lambda: drawn("PNG", mode="RGBA"),
    "png of one pixel": lambda: png(1, 1),
    "png that moves": lambda: animated("PNG"),
    "jpeg": lambda: drawn("JPEG"),
    "jpeg for printers": lambda: drawn("JPEG", mode="CMYK"),
    "jpeg in steps": lambda: drawn("JPEG", progressive=True),
    "webp": lambda: drawn("WEBP"),
    "webp without loss": lambda: drawn("WEBP", lossless=True),
    "webp that can be looked through": lambda: drawn("WEBP", mode="RGBA"),
    "webp that moves": lambda: animated("WEBP"),
}


def spoiled(data: bytes) -> bytes:
    """Return a PNG whose sums are right and whose pixels are not."""
    at = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[at - 4 : at])
    inner = bytearray(data[at + 4 : at + 4 + length])
    inner[len(inner) // 2] ^= 0xFF
    return data[: at - 4] + chunk(b"IDAT", bytes(inner)) + data[at + 8 + length :]


def lying(data: bytes) -> bytes:
    """Return a JPEG that says to be larger than what it holds."""
    at = data.index(b"\xff\xc0")
    return data[: at + 5] + struct.pack(">HH", 300, 300) + data[at + 9 :]


BROKEN: Final[dict[str, Callable[[], bytes]]] = {
    "png with pixels of another picture": lambda: png(30, 30),
    "png with a flipped bit": lambda: spoiled(drawn("PNG")),
    "png of no depth that there is": lambda: png(1, 1).replace(*_depth(17)),
    "jpeg that is a head and noise": lambda: jpeg(30, 30),
    "webp of nothing": lambda: lossy(30, 30),
    "webp without loss, of nothing": lambda: lossless(30, 30),
    "webp that only says its size": lambda: extended(30, 30),
    "webp that is cut short inside": lambda: _shortened(drawn("WEBP")),
}


def _depth(bits: int) -> tuple[bytes, bytes]:
    right = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return chunk(b"IHDR", right), chunk(b"IHDR", right[:8] + bytes([bits]) + right[9:])


def _shortened(data: bytes) -> bytes:
    cut = data[: len(data) // 2 & ~1]
    return cut[:4] + struct.pack("<I", len(cut) - 8) + cut[8:16] + struct.pack("<I", len(cut) - 20) + cut[20:]


@pytest.mark.parametrize("name", WHOLE)
async def test_a_whole_picture_is_let_through(name: str) -> None:
    image = image_of(WHOLE[name]())
    (shown,) = await gallery().readable([image])
    if image.media_type == "image/webp":
        assert shown.media_type == "image/png"
        with Pil.open(io.BytesIO(image.data)) as was, Pil.open(io.BytesIO(shown.data)) as now:
            assert (now.format, now.size) == ("PNG", was.size)
            assert now.convert("RGBA").tobytes() == was.convert("RGBA").tobytes()
    else:
        assert shown is image


@pytest.mark.parametrize("name", BROKEN)
async def test_a_picture_whose_frame_is_right_and_whose_pixels_are_not_is_refused(name: str) -> None:
    data = BROKEN[name]()
    try:
        image = image_of(data)
    except NotAnImage:
        return  # Not even its frame was.
    with pytest.raises(InvalidField) as refused:
        await gallery().check([image_of(drawn("PNG")), image])
    assert refused.value.field == "images[1]"
    assert refused.value.reason == "the image is damaged"


async def test_a_picture_of_more_pixels_than_the_limit_is_refused_before_it_is_unpacked() -> None:
    small, large = image_of(drawn("PNG", (10, 10))), image_of(drawn("PNG", (101, 10)))
    look = gallery(pixels=1000)
    await look.check([small])
    with pytest.raises(InvalidField, match=r"images\[1\]: the image has more than the limit of 1000 pixels"):
        await look.check([small, large])


async def test_a_bomb_takes_no_memory_here_and_is_refused() -> None:
    rows = zlib.compress(b"\0" * (8001 * 8000), 9)  # 64 million pixels in 62 kilobytes.
    header = struct.pack(">IIBBBBB", 8000, 8000, 8, 0, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND")
    with pytest.raises(InvalidField, match="more than the limit of 100000 pixels"):
        await gallery().check([image_of(bomb)])


async def test_a_kind_that_is_not_what_the_bytes_are_is_refused() -> None:
    with pytest.raises(InvalidField, match=r"images\[0\]: the image is damaged"):
        await gallery().check([Image(drawn("JPEG"), "image/png")])


async def test_what_was_looked_at_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    look, image = gallery(), image_of(drawn("PNG"))
    await look.check([image, image])
    monkeypatch.setattr(Studio, "look", None)
    await look.check([image])


async def test_what_was_refused_is_refused_again() -> None:
    look, image = gallery(), image_of(png(30, 30))
    for _ in range(2):
        with pytest.raises(InvalidField):
            await look.check([image])


async def test_a_decoder_that_takes_too_long_is_ended_and_told_of() -> None:
    with pytest.raises(InvalidField, match="images: they take too long to decode"):
        await gallery(patience=0.001).check([image_of(drawn("PNG"))])
    assert not decoders()


async def test_a_request_that_is_called_off_leaves_no_decoder_behind() -> None:
    images = [image_of(drawn("PNG", (200, 200))) for _ in range(30)]
    task = asyncio.create_task(gallery().check(images))
    await until(decoders)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert not decoders()


async def test_a_decoder_gets_none_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIGLOT_KEY", "s3cret")
    bare = Studio(pixels=PIXELS, patience=PATIENCE, environment={"PATH": "/nowhere"})
    async with bare._process() as process:  # noqa: SLF001  nothing else shows it
        assert psutil.Process(process.pid).environ() == {"PATH": "/nowhere"}


async def test_a_decoder_that_still_has_much_to_say_when_it_is_ended_holds_nobody_up() -> None:
    noise = image_of(drawn("WEBP", (400, 400), mode="RGBA", lossless=True))
    async with asyncio.timeout(PATIENCE):
        async with Studio(pixels=400 * 400, patience=PATIENCE)._process() as process:  # noqa: SLF001  as above
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(picture_bytes(noise.media_type, noise.data))
            await until(lambda: process.stdout._paused)  # type: ignore[union-attr]  # noqa: SLF001  nobody reads
    assert process.returncode is not None


async def test_a_decoder_takes_no_code_from_the_folder_where_the_server_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "PIL").mkdir()
    (tmp_path / "PIL" / "__init__.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    await gallery().check([image_of(drawn("PNG"))])


def decoders() -> list[psutil.Process]:
    """Return our own decoders that run, and not those of a server that another test has started."""
    return [each for each in psutil.Process().children() if "diglot.pictures" in command_of(each)]


def command_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # It has ended while we looked.
        return ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to it")
async def test_a_decoder_that_would_take_too_much_memory_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studio, "_BYTES_PER_PIXEL", 0)  # As if a decoder took far more than it should.
    monkeypatch.setattr(studio, "_BASE_BYTES", 300 * 1024**2)
    look, size = gallery(pixels=9000 * 9000), (9000, 9000)
    flat = io.BytesIO()
    Pil.new("RGB", size).save(flat, "PNG", compress_level=1)
    await look.check([image_of(drawn("PNG"))])
    with pytest.raises(InvalidField, match=r"images\[0\]: the image is damaged"):
        await look.check([Image(flat.getvalue(), "image/png")])
