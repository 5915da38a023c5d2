"""POST /v1/embeddings: texts or tokens in, vectors out.

OpenAI's packages ask for base64 unless told otherwise and take a list of numbers for broken data, so the format is
kept to the letter. Neighbours: `inputs`. Source: the types of the `openai` package.
"""

from __future__ import annotations

import base64
import sys
from array import array
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from diglot.core.errors import InvalidField
from diglot.core.request import Embedding
from diglot.core.result import Embedded
from diglot.dialects.openai.body import decode
from diglot.dialects.openai.chunks import encode
from diglot.dialects.openai.inputs import InputBody, inputs_of
from diglot.dialects.openai.sampling import ResidenceBody, residence_of
from diglot.dialects.operation import Operation, Parsed, Rendered, Stamp, Wire


class EmbeddingBody(ResidenceBody, kw_only=True):
    """What to embed."""

    input: InputBody
    encoding_format: str | None = None
    dimensions: Annotated[int, msgspec.Meta(ge=1, lt=2**31)] | None = None


class VectorReply(msgspec.Struct, frozen=True):
    """One vector: numbers, or little-endian 32-bit floats in base64."""

    object: Literal["embedding"]
    index: int
    embedding: Sequence[float] | str


class EmbeddingUsageReply(msgspec.Struct, frozen=True):
    """Tokens of all inputs."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingReply(msgspec.Struct, frozen=True):
    """The vectors, in the order of the inputs."""

    object: Literal["list"]
    data: list[VectorReply]
    model: str
    usage: EmbeddingUsageReply


class EmbeddingView(msgspec.Struct, frozen=True):
    """What the renderer must know."""

    model: str | None = None
    base64: bool = False


_DECODER = msgspec.json.Decoder(EmbeddingBody)


def parse(wire: Wire) -> Parsed:
    """Read what to embed."""
    body = decode(wire.body, _DECODER)
    if body.encoding_format not in (None, "float", "base64"):
        raise InvalidField("encoding_format", "must be 'float' or 'base64'")
    request = Embedding(
        residence=residence_of(body), inputs=inputs_of(body.input, field="input"), dimensions=body.dimensions
    )
    view = EmbeddingView(model=body.model or None, base64=body.encoding_format == "base64")
    return Parsed(request=request, view=view)


def whole(view: EmbeddingView, stamp: Stamp, embedded: Embedded) -> Rendered:  # noqa: ARG001  Vectors have no id.
    """Render the vectors."""
    reply = EmbeddingReply(
        object="list",
        data=[
            VectorReply("embedding", index, _packed(vector) if view.base64 else vector)
            for index, vector in enumerate(embedded.vectors)
        ],
        model=view.model or embedded.model,
        usage=EmbeddingUsageReply(prompt_tokens=embedded.input_tokens, total_tokens=embedded.input_tokens),
    )
    return Rendered(body=encode(reply))


def _packed(vector: Sequence[float]) -> str:
    floats = array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return base64.b64encode(floats).decode("ascii")


OPERATION = Operation(
    method="POST",
    path="/v1/embeddings",
    summary="Turn texts into vectors.",
    parse=parse,
    whole=whole,
    body=EmbeddingBody,
    reply=EmbeddingReply,
)
