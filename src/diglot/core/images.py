"""Images as clients send them: which kind it is, how large it would be, and whether the file is whole.

The kind is read from the bytes, never from what a client says it is. Pixels are deliberately not decoded: this reads
the frame of a file (its header, its chunks and their checksums), so that a file that is cut off, damaged or made to fill
memory is refused at once. Neighbours: dialects make images through `image_of`, the room `pictures` decodes them.

Invariant: an `Image` made here has a kind that is known and a size that is bounded, or is a link.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Final

from diglot.core.items import Image

MAX_PIXELS: Final = 1 << 26
"""Of one image: 8192 by 8192. Decoded it takes four bytes a pixel."""

_MOST_SECTIONS: Final = 1 << 16
"""Chunks of a PNG or markers of a JPEG: eight times what the usual writers need for 64 MB. Empty ones cost only time."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8\xff"
_JPEG_END: Final = b"\xff\xd9"
_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""Markers of a JPEG frame header; the three left out are tables (ITU T.81, table B.1)."""
_BARE: Final = frozenset({0x01, *range(0xD0, 0xD9)})
"""JPEG markers without a length."""
_SCAN: Final = 0xDA


LINK: Final = "text/uri-list"
"""The kind of an `Image` that is not there yet, whose data is the link to it (RFC 2483, section 5)."""


class NotAnImage(ValueError):
    """The data is no image of a known kind, or a damaged one; the text says which."""


def image_of(data: bytes) -> Image:
    """Return the data as an image. Raises NotAnImage."""
    if data.startswith(_PNG):
        kind, read = "image/png", _png_size
    elif data.startswith(_JPEG):
        kind, read = "image/jpeg", _jpeg_size
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind, read = "image/webp", _webp_size
    else:
        raise NotAnImage("this is no PNG, JPEG or WebP image" if data else "the image is empty")
    try:
        width, height = read(data)
    except (IndexError, struct.error):
        raise NotAnImage("the image is cut off") from None
    if not width or not height:
        raise NotAnImage("the image has no pixels")
    if width * height > MAX_PIXELS:
        raise NotAnImage(f"the image is {width} by {height}, more than {MAX_PIXELS} pixels")
    return Image(data=data, media_type=kind)


def linked(url: str) -> Image:
    """Return an image that has yet to be fetched."""
    return Image(data=url.encode(), media_type=LINK)


def url_of(image: Image) -> str:
    """Return an image as a URL: the link to it, or one that holds it."""
    if image.media_type == LINK:
        return image.data.decode()
    return f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"


def _png_size(data: bytes) -> tuple[int, int]:
    """Walk the chunks and check each one's sum (RFC 2083, section 3)."""
    at, seen = len(_PNG), b""
    width = height = 0
    for _ in range(_MOST_SECTIONS):
        length, kind = struct.unpack_from(">I4s", data, at)
        end = at + 8 + length
        (check,) = struct.unpack_from(">I", data, end)
        if zlib.crc32(data[at + 4 : end]) != check or (not seen and kind != b"IHDR"):
            raise NotAnImage("the image is damaged")
        if kind == b"IHDR":
            width, height = struct.unpack_from(">II", data, at + 8)
        if kind == b"IEND":
            return width, height
        at, seen = end + 4, kind
    raise NotAnImage("the image has too many parts")


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Walk the segments to the frame header, then see that a scan and the end follow (ITU T.81, annex B)."""
    at, size = 2, None
    for _ in range(_MOST_SECTIONS):
        if data[at] != 0xFF:  # noqa: PLR2004  a marker begins with it
            raise NotAnImage("the image is damaged")
        marker = data[at + 1]
        at += 1 if marker == 0xFF else 2  # noqa: PLR2004  fill bytes
        if marker in _BARE or marker == 0xFF:  # noqa: PLR2004
            continue
        (length,) = struct.unpack_from(">H", data, at)
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 3)
            size = width, height
        elif marker == _SCAN:
            break
        at += length
    else:
        raise NotAnImage("the image has too many parts")
    if size is None or data.rfind(_JPEG_END) < at:
        raise NotAnImage("the image is cut off")
    return size


def _webp_size(data: bytes) -> tuple[int, int]:
    """Read the first chunk, which is one of three kinds (RFC 9649, section 2)."""
    (length,) = struct.unpack_from("<I", data, 4)
    if len(data) < length + 8:
        raise NotAnImage("the image is cut off")
    match data[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            sides = data[24:30]
            struct.unpack_from("6s", data, 24)
            return int.from_bytes(sides[:3], "little") + 1, int.from_bytes(sides[3:], "little") + 1
        case _:
            raise NotAnImage("the image is damaged")
