"""Vectors: texts embedded by a server.

Asked for as base64, which costs a tenth of decimal numbers, and read in either form. Cutting and scaling to
length 1 are done here, the same for every server. Neighbours: `client` asks.

Invariant: one vector for each input, in the order of the inputs.
"""

from __future__ import annotations

import array
import base64
import math
import sys
from collections.abc import Sequence

import msgspec

from diglot.core.errors import ContextExceeded, EngineFailed, InvalidField, UpstreamFailed
from diglot.core.request import Embedding, Overflow
from diglot.core.result import Embedded
from diglot.engines.peer.client import Peer
from diglot.engines.peer.counting import tokens

Input = str | Sequence[int]
_AROUND = 8  # More than any model puts around a text; and a token is at least one byte of it.


class _Row(msgspec.Struct):
    embedding: str | list[float]
    index: int = 0


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0


class _Rows(msgspec.Struct):
    data: list[_Row]
    usage: _Usage = msgspec.field(default_factory=_Usage)


async def embed(peer: Peer, request: Embedding, *, window: int) -> Embedded:
    """Embed all inputs. Raises ContextExceeded for one longer than `window`, unless it is to be cut."""
    inputs: list[Input] = list(request.inputs)
    try:
        rows = await _ask(peer, inputs)
    except (ContextExceeded, EngineFailed, UpstreamFailed):
        # llama.cpp says "too long" as a plain failure here, so the lengths themselves decide.
        longest = max([await _length(peer, each, window) for each in inputs], default=0)
        if longest <= window:
            raise
        if request.overflow is Overflow.ERROR:
            raise ContextExceeded(tokens=longest, window=window) from None
        rows = await _ask(peer, [await _cut(peer, each, window) for each in inputs])
    if len(rows.data) != len(inputs):
        raise peer.blame.failed(f"it gave {len(rows.data)} vectors for {len(inputs)} inputs")
    try:
        vectors = [_numbers(row.embedding) for row in sorted(rows.data, key=lambda row: row.index)]
    except ValueError as error:  # No base64, or of no whole number of floats.
        raise peer.blame.failed("its vectors cannot be read", detail=str(error)) from error
    return Embedded(
        vectors=tuple(shape(vector, dimensions=request.dimensions, normalise=request.normalise) for vector in vectors),
        input_tokens=rows.usage.prompt_tokens,
        model=peer.blame.model,
    )


def shape(vector: Sequence[float], *, dimensions: int | None, normalise: bool) -> tuple[float, ...]:
    """Return the first `dimensions` numbers, scaled to length 1 if asked. Raises InvalidField."""
    if dimensions is not None:
        if dimensions > len(vector):
            raise InvalidField("dimensions", f"the model gives {len(vector)} numbers, fewer than {dimensions}")
        vector = vector[:dimensions]
    length = math.sqrt(math.fsum(number * number for number in vector)) if normalise else 1.0
    if not length or length == 1.0:
        return tuple(vector)
    return tuple(number / length for number in vector)


async def _ask(peer: Peer, inputs: list[Input]) -> _Rows:
    body = {"model": peer.target.model, "input": inputs, "encoding_format": "base64", "embd_normalize": -1}
    if not peer.target.host.counts:
        del body["embd_normalize"]
    return await peer.call("/v1/embeddings", body, reply_type=_Rows)


async def _length(peer: Peer, text: Input, window: int) -> int:
    """Return the tokens of an input; of a short text their upper limit, which needs no asking."""
    if not isinstance(text, str):
        return len(text)
    most = len(text.encode()) + _AROUND
    return most if most <= window else len(await tokens(peer, text))


async def _cut(peer: Peer, text: Input, window: int) -> Input:
    """Cut an input at its end so that it fits, and keep what the model puts around a text."""
    if not isinstance(text, str):
        return text[:window]
    whole = await tokens(peer, text)
    if len(whole) <= window:
        return text
    around = await tokens(peer, "")
    inner = await tokens(peer, text, special=False)
    before = whole.index(inner[0]) if inner else 0
    behind = around[before:]
    return [*whole[: window - len(behind)], *behind]


def _numbers(embedding: str | list[float]) -> Sequence[float]:
    if not isinstance(embedding, str):
        return embedding
    numbers = array.array("f")
    numbers.frombytes(base64.b64decode(embedding))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
