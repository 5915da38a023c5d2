"""Cuts a GGUF file into parts, as llama.cpp's own tool does: all fields in the first, tensors one after the other."""

import struct
from collections.abc import Iterator
from pathlib import Path

from gguf import GGUFReader, ReaderField
from gguf.gguf_reader import ReaderTensor

from tests.store.gguf_bytes import text

_UINT16, _INT32 = 2, 5


def cut(weights: Path, folder: Path, stem: str, *, count: int) -> list[Path]:
    """Write `count` parts of a file to a folder, and return them in order."""
    reader = GGUFReader(weights)
    fields = [_written(field) for name, field in reader.fields.items() if not name.startswith("GGUF.")]
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, tensors in enumerate(_shared(reader.tensors, count)):
        mine = fields if number == 0 else []
        mine = [*mine, *_of_part(number, count, len(reader.tensors))]
        path = folder / f"{stem}-{number + 1:05}-of-{count:05}.gguf"
        path.write_bytes(_file(mine, tensors))
        paths.append(path)
    return paths


def _shared(tensors: list[ReaderTensor], count: int) -> Iterator[list[ReaderTensor]]:
    for number in range(count):
        yield tensors[len(tensors) * number // count : len(tensors) * (number + 1) // count]


def _written(field: ReaderField) -> bytes:
    return b"".join(part.tobytes() for part in field.parts)


def _of_part(number: int, count: int, tensors: int) -> list[bytes]:
    return [
        text("split.no") + struct.pack("<IH", _UINT16, number),
        text("split.count") + struct.pack("<IH", _UINT16, count),
        text("split.tensors.count") + struct.pack("<Ii", _INT32, tensors),
    ]


def _file(fields: list[bytes], tensors: list[ReaderTensor]) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields)) + b"".join(fields)
    data = b""
    for tensor in tensors:
        shape = [int(each) for each in tensor.shape]
        head += text(tensor.name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        head += struct.pack("<IQ", tensor.tensor_type.value, len(data))
        data += tensor.data.tobytes()
        data += bytes(-len(data) % 32)
    return head + bytes(-len(head) % 32) + data
