"""The `context` of `/api/generate`: a conversation as a list of numbers.

Ollama's is the token ids of everything so far, which only the same model can read. Ours is the conversation
itself, as opaque to a client as token ids are: a mark, the length in bytes, then the bytes of its JSON, six to
a number, so that each number is exact in every client's floats. Images are left out, as they are from token ids.

Invariant: `unpack(pack(items))` gives the texts of the items back.
"""

from __future__ import annotations

from typing import Final

import msgspec

from diglot.core.errors import InvalidField
from diglot.core.items import Message, Role, said

_MARK: Final = int.from_bytes(b"Diglot", "big")
_STEP: Final = 6
_DECODER: Final = msgspec.json.Decoder(tuple[tuple[Role, str], ...])


def pack(items: tuple[Message, ...]) -> list[int]:
    """Write a conversation as numbers below 2**48."""
    data = msgspec.json.encode([(item.role, item.text) for item in items])
    padded = data + bytes(-len(data) % _STEP)
    return [_MARK, len(data), *(int.from_bytes(padded[at : at + _STEP], "big") for at in range(0, len(padded), _STEP))]


def unpack(context: list[int]) -> tuple[Message, ...]:
    """Read what `pack` wrote. A list from anywhere else is a fault."""
    if not context:
        return ()
    if context[0] != _MARK:
        raise InvalidField("context", "this context is from another server: send the one of an answer of this server")
    try:
        data = b"".join(number.to_bytes(_STEP, "big") for number in context[2:])
        if not 0 <= len(data) - context[1] < _STEP:
            raise ValueError
        return tuple(said(role, text) for role, text in _DECODER.decode(data[: context[1]]))
    except (IndexError, OverflowError, ValueError, RecursionError) as error:
        raise InvalidField("context", "this context is damaged") from error
