"""GGUF headers: what a weights file says of itself, read without trusting a number in it.

This reads and checks the header (versions 2 and 3, little endian): the fields and the list of tensors,
with offsets and sizes against the file's own. It deliberately reads no weights and writes nothing, and
it needs no numpy, because the server lists models with it. It checks whatever the engine checks, since
the engine says only that it failed. Neighbours: `gguf_types` (numbers of the format), `anatomy` (what
the fields mean).

Invariant: any bytes give a Header or a BrokenHeader, in memory bounded by the limits below, not by the file's claims.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import msgspec

from diglot.core.model import TensorInfo
from diglot.store.gguf_types import ARRAY, SCALARS, STRING, TENSOR_TYPES

MAX_FIELDS: Final = 1 << 16
MAX_TENSORS: Final = 1 << 17
MAX_TEXT: Final = 1 << 24
MAX_KEY: Final = (1 << 16) - 1
MAX_TENSOR_NAME: Final = 63
MAX_BUILT: Final = 1 << 26
"""Bytes of the file that may become values, all fields and names together."""
MAX_DIMENSIONS: Final = 4
MAX_ALIGNMENT: Final = 1 << 20
DEFAULT_ALIGNMENT: Final = 32
MAX_PASSED: Final = 1 << 24
"""Texts that are passed over, all lists together: some seconds; the largest vocabularies have a million."""
LONGEST_LIST: Final = 256
"""Lists with more elements than this are counted, not built, unless the caller wants them."""

_WINDOW: Final = 1 << 20
_SMALLEST_FIELD: Final = 8 + 1 + 4 + 1
_SMALLEST_TENSOR: Final = 8 + 1 + 4 + 8 + 4 + 8
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class BrokenHeader(Exception):
    """The file is no GGUF that can be loaded. `reason` is one sentence, `offset` the byte where it shows."""

    def __init__(self, reason: str, *, offset: int) -> None:
        super().__init__(f"{reason} (at byte {offset})")
        self.reason = reason
        self.offset = offset


class LongList(msgspec.Struct, frozen=True):
    """A list that was counted and not built."""

    count: int


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a sound file. Values of `fields` are numbers, booleans, text, and tuples of them or LongList."""

    version: int
    fields: Mapping[str, Any]
    tensors: tuple[TensorInfo, ...]
    parameter_count: int


def read_header(path: Path, *, longest: int = LONGEST_LIST) -> Header:
    """Read and check the header of `path`; build lists of up to `longest` elements.

    Raises BrokenHeader, and OSError when the file cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        return _Reader(file, size=size, longest=longest).header()


class _Reader:
    """A position in a file, over a window of it that is read as needed."""

    def __init__(self, file: BinaryIO, *, size: int, longest: int) -> None:
        self._file = file
        self._size = size
        self._longest = longest
        self._built = 0
        self._passed = 0
        self._window = b""
        self._start = 0  # Of the window, in the file.
        self._at = 0  # In the window.

    def header(self) -> Header:
        version, tensor_count, field_count = self._preamble()
        fields: dict[str, Any] = {}
        for number in range(field_count):
            key = self._text(MAX_KEY, f"the name of field {number}")
            if not key or key in fields:
                self._fail(f"field {number} ({key!r}) {'is there twice' if key else 'has no name'}")
            fields[key] = self._value(self._u32(), key)
        tensors, total = self._tensors(tensor_count, _alignment(fields, self._offset))
        return Header(version=version, fields=fields, tensors=tensors, parameter_count=total)

    def _preamble(self) -> tuple[int, int, int]:
        if self._size == 0:
            self._fail("the file is empty")
        magic = self._bytes(4, "the file type")
        if magic != b"GGUF":
            self._back(4)
            self._fail(f"the file is no GGUF, it begins with {magic!r}")
        version = self._u32()
        if version not in {2, 3}:
            self._back(4)
            if version & 0xFFFF == 0:
                self._fail("the file is big endian, only little endian can be read")
            self._fail(f"GGUF version {version} is not known, only 2 and 3")
        tensor_count = self._count(MAX_TENSORS, _SMALLEST_TENSOR, "tensors")
        return version, tensor_count, self._count(MAX_FIELDS, _SMALLEST_FIELD, "fields")

    def _tensors(self, count: int, alignment: int) -> tuple[tuple[TensorInfo, ...], int]:
        """Read the list of tensors. They follow each other without gaps, as the engine wants it."""
        tensors: list[TensorInfo] = []
        names: set[str] = set()
        end = last = total = 0
        for number in range(count):
            name = self._text(MAX_TENSOR_NAME, f"the name of tensor {number}")
            if name in names:
                self._fail(f"tensor {name!r} is there twice")
            names.add(name)
            shape = self._shape(name)
            elements = 1
            for dimension in shape:
                elements *= dimension
            kind, length = self._extent(name, shape[0], elements)
            offset = self._u64()
            if offset != end:
                self._back(8)
                self._fail(f"tensor {name!r} begins at {offset} of the data instead of {end}")
            last = offset + length
            end = _padded(last, alignment)
            total += elements
            tensors.append(TensorInfo(name, kind, shape))
        needed = _padded(self._offset, alignment) + last
        if tensors and needed > self._size:
            self._fail(f"the file is cut off: its tensors need {needed} bytes and it has {self._size}")
        return tuple(tensors), total

    def _shape(self, name: str) -> tuple[int, ...]:
        count = self._u32()
        if not 1 <= count <= MAX_DIMENSIONS:
            self._back(4)
            self._fail(f"tensor {name!r} has {count} dimensions")
        shape = tuple(self._u64() for _ in range(count))
        for dimension in shape:
            if not 0 < dimension < 1 << 63:
                self._fail(f"tensor {name!r} has a dimension of {dimension}")
        return shape

    def _extent(self, name: str, row: int, elements: int) -> tuple[str, int]:
        """Return the name of the element type, and how many bytes the elements take."""
        number = self._u32()
        if number not in TENSOR_TYPES:
            self._back(4)
            self._fail(f"tensor {name!r} is of the unknown type {number}")
        kind, block, block_bytes = TENSOR_TYPES[number]
        if row % block:
            self._fail(f"tensor {name!r} has rows of {row} elements, which {kind} cannot divide into blocks of {block}")
        length = elements // block * block_bytes
        if length > self._size:
            self._fail(f"tensor {name!r} needs {length} bytes, the file has {self._size}")
        return kind, length

    def _value(self, kind: int, key: str) -> Any:
        if kind == STRING:
            return self._text(MAX_TEXT, f"field {key!r}")
        if kind == ARRAY:
            return self._list(key)
        if kind not in SCALARS:
            self._back(4)
            self._fail(f"field {key!r} is of the unknown type {kind}")
        scalar = SCALARS[kind]
        return scalar.unpack(self._bytes(scalar.size, f"field {key!r}"))[0]

    def _list(self, key: str) -> tuple[Any, ...] | LongList:
        kind = self._u32()
        if kind == ARRAY or (kind != STRING and kind not in SCALARS):
            self._back(4)
            self._fail(f"field {key!r} is a list of {'lists' if kind == ARRAY else f'the unknown type {kind}'}")
        scalar = SCALARS.get(kind)
        width = scalar.size if scalar else _U64.size
        count = self._u64()
        if count > self._left // width:
            self._back(8)
            self._fail(f"field {key!r} claims {count} elements, more than the file holds")
        if count > self._longest:
            if scalar:
                self._skip(count * width)
            else:
                self._skip_texts(count, key)
            return LongList(count)
        if scalar:
            self._build(count * width)
            data = self._bytes(count * width, f"field {key!r}")
            return tuple(value for (value,) in scalar.iter_unpack(data))
        return tuple(self._text(MAX_TEXT, f"field {key!r}") for _ in range(count))

    def _skip_texts(self, count: int, key: str) -> None:
        """Pass over `count` texts. This loop is what reading a vocabulary costs, hence its bareness."""
        self._passed += count
        if self._passed > MAX_PASSED:
            self._fail(f"the header holds lists of more than {MAX_PASSED} texts")
        unpack = _U64.unpack_from
        while count:
            if len(self._window) - self._at < _U64.size:
                self._fill(_U64.size, f"field {key!r}")
            window, at = self._window, self._at
            last = len(window) - _U64.size
            while count and at <= last:
                (length,) = unpack(window, at)
                at += _U64.size + length
                count -= 1
            self._at = len(window)
            self._skip(at - len(window))

    def _text(self, limit: int, what: str) -> str:
        length = self._u64()
        if length > limit or length > self._left:
            self._back(8)
            self._fail(f"{what} claims {length} bytes of text")
        self._build(length)
        # The engine takes text as bytes; a broken letter in a licence must not cost the model.
        return self._bytes(length, what).decode("utf-8", errors="replace")

    def _build(self, count: int) -> None:
        self._built += count
        if self._built > MAX_BUILT:
            self._fail(f"the header holds more than {MAX_BUILT} bytes of names and values")

    def _count(self, limit: int, smallest: int, what: str) -> int:
        count = self._u64()
        if count > min(limit, self._left // smallest + 1):
            self._back(8)
            self._fail(f"the file claims {count} {what}")
        return count

    def _u32(self) -> int:
        value: int = _U32.unpack(self._bytes(4, "a number"))[0]
        return value

    def _u64(self) -> int:
        value: int = _U64.unpack(self._bytes(8, "a number"))[0]
        return value

    @property
    def _offset(self) -> int:
        return self._start + self._at

    @property
    def _left(self) -> int:
        return self._size - self._offset

    def _back(self, count: int) -> None:
        """Step back, so that a fault names where the bad number stands; only `_fail` may follow."""
        self._at -= count

    def _skip(self, count: int) -> None:
        """Go on by `count` bytes; a negative count goes back within the window."""
        if count > self._left:
            self._fail("the file is cut off in its header")
        self._at += count

    def _bytes(self, count: int, what: str) -> bytes:
        if len(self._window) - self._at < count:
            self._fill(count, what)
        data = self._window[self._at : self._at + count]
        self._at += count
        return data

    def _fill(self, count: int, what: str) -> None:
        """Move the window to here, with at least `count` bytes."""
        offset = self._offset
        if count <= self._size - offset:
            self._file.seek(offset)
            self._window = self._file.read(max(count, _WINDOW))
            self._start, self._at = offset, 0
            if len(self._window) >= count:
                return
        self._fail(f"the file is cut off in {what}")

    def _fail(self, reason: str) -> NoReturn:
        raise BrokenHeader(reason, offset=self._offset)


def _padded(length: int, alignment: int) -> int:
    return -(-length // alignment) * alignment


def _alignment(fields: Mapping[str, Any], offset: int) -> int:
    alignment = fields.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or not 0 < alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise BrokenHeader(f"an alignment of {alignment!r} is no power of two", offset=offset)
    return alignment
