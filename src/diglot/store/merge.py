"""Merging: a model whose weights are in several files, put together into one.

The parts are GGUF files of their own. The whole has the fields of the first without those that tell of the
parts, the tensors of all in order, and their data copied as it is. Neighbour: `gguf` reads and checks
headers; here only the places of things are followed, in files that it has passed.

Invariant: the same parts always give the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, Protocol

import msgspec

from diglot.store.gguf import Header, read_header
from diglot.store.gguf_types import ARRAY, SCALARS, STRING
from diglot.store.manifest import Broken

_OF_PARTS: Final = ("split.no", "split.count", "split.tensors.count")
_CHUNK: Final = 1 << 22
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class Target(Protocol):
    """Whatever takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Take more."""


class Field(msgspec.Struct, frozen=True):
    """A field as it is written: its name, and its bytes with the name."""

    name: bytes
    data: bytes


class Placed(msgspec.Struct, frozen=True):
    """A tensor as it is written: what stands before its offset, and where its data begins and ends in the file."""

    head: bytes
    start: int
    end: int


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One file, taken apart."""

    path: Path
    alignment: int
    version: int
    fields: tuple[Field, ...]
    tensors: tuple[Placed, ...]
    number: int
    count: int


def merge(paths: Sequence[Path], target: Target) -> None:
    """Write the whole of these parts, which are in order, to `target`. Raises Broken, BrokenHeader, OSError."""
    parts = [take_apart(path) for path in paths]
    for number, part in enumerate(parts):
        if (part.number, part.count) != (number, len(parts)):
            raise Broken(
                f"{part.path.name} is part {part.number + 1} of {part.count}, not {number + 1} of {len(parts)}"
            )
    first = parts[0]
    fields = [field for field in first.fields if field.name.decode() not in _OF_PARTS]
    tensors = [(part, tensor) for part in parts for tensor in part.tensors]
    head = b"GGUF" + _U32.pack(first.version) + _U64.pack(len(tensors)) + _U64.pack(len(fields))
    head += b"".join(field.data for field in fields)
    offset, names = 0, []
    for _, tensor in tensors:
        names.append(tensor.head + _U64.pack(offset))
        offset = _padded(offset + tensor.end - tensor.start, first.alignment)
    head += b"".join(names)
    target.write(head + bytes(_padded(len(head), first.alignment) - len(head)))
    for part in parts:
        with part.path.open("rb") as source:
            for tensor in part.tensors:
                _copy(source, tensor, target, alignment=first.alignment)


def take_apart(path: Path) -> Part:
    """Find where everything is in a file. Raises BrokenHeader when it is no sound GGUF, Broken when it is no part."""
    header = read_header(path)
    number, count = header.fields.get("split.no"), header.fields.get("split.count")
    if not isinstance(number, int) or not isinstance(count, int):
        raise Broken(f"{path.name} is no part of a model")
    with path.open("rb") as file:
        file.seek(len(b"GGUF") + _U32.size)
        _, field_count = struct.unpack("<QQ", file.read(2 * _U64.size))
        fields = tuple(_fields(file, field_count))
        alignment = int(header.fields.get("general.alignment", 32))
        return Part(
            path=path,
            alignment=alignment,
            version=header.version,
            fields=fields,
            tensors=tuple(_placed(file, header, alignment, size=path.stat().st_size)),
            number=number,
            count=count,
        )


def _fields(file: BinaryIO, count: int) -> Iterator[Field]:
    for _ in range(count):
        start = file.tell()
        name = file.read(_number(file, _U64))
        _pass_value(file, _number(file, _U32))
        end = file.tell()
        file.seek(start)
        yield Field(name, file.read(end - start))


def _pass_value(file: BinaryIO, kind: int) -> None:
    if kind == STRING:
        file.seek(_number(file, _U64), 1)
    elif kind == ARRAY:
        inner, count = _number(file, _U32), _number(file, _U64)
        if inner == STRING:
            for _ in range(count):
                file.seek(_number(file, _U64), 1)
        else:
            file.seek(count * SCALARS[inner].size, 1)
    else:
        file.seek(SCALARS[kind].size, 1)


def _placed(file: BinaryIO, header: Header, alignment: int, *, size: int) -> Iterator[Placed]:
    heads: list[tuple[bytes, int]] = []
    for _ in header.tensors:
        start = file.tell()
        file.seek(_number(file, _U64), 1)
        dimensions = _number(file, _U32)
        file.seek(dimensions * _U64.size + _U32.size, 1)
        end = file.tell()
        file.seek(start)
        heads.append((file.read(end - start), _number(file, _U64)))
    data = _padded(file.tell(), alignment)
    ends = [offset for _, offset in heads[1:]] + [size - data]
    for (head, offset), end in zip(heads, ends, strict=True):
        yield Placed(head, data + offset, data + end)


def _copy(source: BinaryIO, tensor: Placed, target: Target, *, alignment: int) -> None:
    source.seek(tensor.start)
    left = tensor.end - tensor.start
    while left:
        chunk = source.read(min(left, _CHUNK))
        if not chunk:
            raise Broken("a part became shorter while it was read")
        target.write(chunk)
        left -= len(chunk)
    target.write(bytes(-(tensor.end - tensor.start) % alignment))


def _number(file: BinaryIO, form: struct.Struct) -> int:
    value: int = form.unpack(file.read(form.size))[0]
    return value


def _padded(length: int, alignment: int) -> int:
    return -(-length // alignment) * alignment
