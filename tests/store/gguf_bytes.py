"""Makes GGUF files from plain values, sound ones and ones that lie."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from diglot.store.gguf_types import TENSOR_TYPES


class Tensor(msgspec.Struct, frozen=True):
    """A tensor as it is written; `offset` and `data` follow from the rest unless they are given."""

    name: str = "output.weight"
    shape: tuple[int, ...] = (32, 2)
    kind: int = 0
    offset: int | None = None

    @property
    def size(self) -> int:
        """Its bytes, as the format counts them."""
        _, block, size = TENSOR_TYPES.get(self.kind, ("", 1, 4))
        elements = 1
        for dimension in self.shape:
            elements *= dimension
        return elements // block * size


class U8(msgspec.Struct, frozen=True):
    """A value that is written as a list of bytes, which no Python value says by itself."""

    data: bytes


LLAMA: Mapping[str, Any] = {
    "general.architecture": "llama",
    "general.name": "Tiny",
    "general.file_type": 1,
    "llama.context_length": 2048,
    "llama.embedding_length": 64,
    "llama.block_count": 2,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "tokenizer.ggml.tokens": [f"token {number}" for number in range(300)],
    "tokenizer.chat_template": "{% for message in messages %}{{ message.content }}{% endfor %}",
}
"""The fields of a small language model."""

BERT: Mapping[str, Any] = {
    "general.architecture": "bert",
    "general.file_type": 1,
    "bert.context_length": 512,
    "bert.embedding_length": 64,
    "bert.block_count": 2,
    "bert.attention.head_count": 4,
    "bert.attention.causal": False,
    "bert.pooling_type": 1,
}
"""The fields of a small encoder."""


def gguf(
    fields: Mapping[str, Any] = LLAMA,
    tensors: Sequence[Tensor] = (Tensor(),),
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    field_count: int | None = None,
    tensor_count: int | None = None,
    alignment: int = 32,
) -> bytes:
    """Return the bytes of a file. Counts may be given to lie about them."""
    counts = (
        len(tensors) if tensor_count is None else tensor_count,
        len(fields) if field_count is None else field_count,
    )
    head = magic + struct.pack("<IQQ", version, *counts)
    head += b"".join(text(key) + value(content) for key, content in fields.items())
    data = b""
    for tensor in tensors:
        offset = len(data) if tensor.offset is None else tensor.offset
        head += (
            text(tensor.name)
            + struct.pack("<I", len(tensor.shape))
            + struct.pack(f"<{len(tensor.shape)}Q", *tensor.shape)
        )
        head += struct.pack("<IQ", tensor.kind, offset)
        data += bytes(min(tensor.size, 1 << 20))
        data += bytes(-len(data) % alignment)
    return head + bytes(-len(head) % alignment) + data


def text(content: str) -> bytes:
    """Return a text with its length before it."""
    encoded = content.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def value(content: Any) -> bytes:
    """Return a value with its type before it; whole numbers are 32 bits wide where they fit."""
    match content:
        case bool():
            return struct.pack("<I?", 7, content)
        case int():
            return struct.pack("<II", 4, content) if 0 <= content < 1 << 32 else struct.pack("<Iq", 11, content)
        case float():
            return struct.pack("<If", 6, content)
        case str():
            return struct.pack("<I", 8) + text(content)
        case U8():
            return struct.pack("<IIQ", 9, 0, len(content.data)) + content.data
        case list() | tuple():
            return _list(content)
        case _:
            raise TypeError(content)


def _list(content: Sequence[Any]) -> bytes:
    parts = [value(item) for item in content] or [value(0)]
    return (
        struct.pack("<I", 9)
        + parts[0][:4]
        + struct.pack("<Q", len(content))
        + b"".join(p[4:] for p in parts[: len(content)])
    )
