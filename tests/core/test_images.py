"""Images are known by their bytes, and refused when they are damaged or too large."""

import struct
import zlib
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.images import NotAnImage, image_of


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *, more: bytes = b"") -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(b"\0\0"))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + more + data + chunk(b"IEND")


def jpeg(width: int, height: int) -> bytes:
    jfif = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0\x01\x02\0\0\x01\0\x01\0\0"
    frame = b"\xff\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\0"
    scan = b"\xff\xda" + struct.pack(">HB", 8, 1) + b"\x01\0\0\x3f\0" + b"\x55" * 9
    return b"\xff\xd8" + jfif + frame + scan + b"\xff\xd9"


def webp(kind: bytes, frame: bytes) -> bytes:
    chunk = kind + struct.pack("<I", len(frame)) + frame
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


def lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height) + bytes(8))


def lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(8))


def extended(width: int, height: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp(b"VP8X", bytes(4) + sides)


Maker = Callable[[int, int], bytes]
MAKERS: Final[dict[Maker, str]] = {
    png: "image/png",
    jpeg: "image/jpeg",
    lossy: "image/webp",
    lossless: "image/webp",
    extended: "image/webp",
}


@pytest.mark.parametrize("make", MAKERS)
def test_an_image_is_known_by_its_bytes(make: Maker) -> None:
    data = make(300, 200)
    image = image_of(data)
    assert (image.data, image.media_type) == (data, MAKERS[make])


@pytest.mark.parametrize("make", MAKERS)
def test_an_image_of_too_many_pixels_is_refused_with_its_size(make: Maker) -> None:
    with pytest.raises(NotAnImage, match="16000 by 15000"):
        image_of(make(16000, 15000))


@pytest.mark.parametrize("make", [png, jpeg, lossy])
def test_an_image_without_pixels_is_refused(make: Maker) -> None:
    with pytest.raises(NotAnImage, match="no pixels"):
        image_of(make(0, 5))


@pytest.mark.parametrize("make", MAKERS)
def test_an_image_that_is_cut_off_anywhere_is_refused(make: Maker) -> None:
    data = make(300, 200)
    for end in range(len(data)):
        with pytest.raises(NotAnImage):
            image_of(data[:end])


def test_a_png_of_which_one_bit_changed_is_refused() -> None:
    data = png(3, 2)
    for at in range(len(data)):
        with pytest.raises(NotAnImage):
            image_of(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"BM", b"<svg/>", b"RIFF\0\0\0\0WAVE", b"%PDF-1.7"])
def test_what_is_no_image_of_a_known_kind_is_refused(data: bytes) -> None:
    with pytest.raises(NotAnImage):
        image_of(data)


STARTS = [make(3, 2)[:length] for make in MAKERS for length in (3, 12, 16, 30)]


@given(start=st.sampled_from(STARTS), rest=st.binary(max_size=80))
def test_any_bytes_are_an_image_or_none(start: bytes, rest: bytes) -> None:
    try:
        image = image_of(start + rest)
    except NotAnImage:
        return
    assert image.data == start + rest


@pytest.mark.parametrize(
    "data",
    [
        png(1, 1, more=chunk(b"tEXt") * 70_000),
        b"\xff\xd8" + b"\xff" * 70_000 + jpeg(1, 1)[2:],
        b"\xff\xd8" + b"\xff\xfe\0\x02" * 70_000 + jpeg(1, 1)[2:],
    ],
    ids=["png", "fill", "segments"],
)
def test_an_image_of_countless_parts_is_refused_before_they_are_counted(data: bytes) -> None:
    with pytest.raises(NotAnImage, match="too many parts"):
        image_of(data)
