"""Weights that are made up: sound GGUF files of any size, for what is measured without a model.

They hold a model's header with a vocabulary, and one tensor of no worth.
"""

from __future__ import annotations

import struct

_BYTES = 24  # The number of the element type that is a byte.
_TEXT, _ARRAY, _UINT32 = 8, 9, 4


def weights(size: int, *, name: str = "made up", vocabulary: int = 0) -> bytes:
    """Return a file up to its tensor of `size` bytes, which follow."""
    fields = {
        "general.architecture": struct.pack("<I", _TEXT) + _text("llama"),
        "general.name": struct.pack("<I", _TEXT) + _text(name),
        "llama.context_length": struct.pack("<II", _UINT32, 8192),
    }
    if vocabulary:
        tokens = b"".join(_text(f"token{number}") for number in range(vocabulary))
        fields["tokenizer.ggml.tokens"] = struct.pack("<IIQ", _ARRAY, _TEXT, vocabulary) + tokens
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(fields))
    head += b"".join(_text(field) + value for field, value in fields.items())
    head += _text("output.weight") + struct.pack("<IQIQ", 1, size, _BYTES, 0)
    return head + bytes(-len(head) % 32)


def _text(content: str) -> bytes:
    return struct.pack("<Q", len(content)) + content.encode()
