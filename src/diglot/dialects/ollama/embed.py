"""`POST /api/embed`, and its older form `POST /api/embeddings`: vectors for texts.

They differ in more than names: the new one takes many texts, scales each vector to length 1 and cuts what is
too long unless told not to; the old one takes one text and does neither. An empty input loads the model
and has no vector.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from diglot.core.errors import InvalidField
from diglot.core.request import Embedding, Overflow
from diglot.core.result import Embedded
from diglot.dialects.ollama.errors import Wording
from diglot.dialects.ollama.fields import residence_of
from diglot.dialects.ollama.options import OptionsBody
from diglot.dialects.ollama.wire import read
from diglot.dialects.operation import Operation, Parsed, Rendered, Stamp, Wire


class EmbedBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of `/api/embed`."""

    model: str | None = None
    input: str | list[str] | None = None
    truncate: bool | None = None
    dimensions: int | None = None
    options: OptionsBody | None = None
    keep_alive: float | str | None = None


class EmbeddingsBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of `/api/embeddings`."""

    model: str | None = None
    prompt: str | None = None
    options: OptionsBody | None = None
    keep_alive: float | str | None = None


class EmbedReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """Vectors in the order of the inputs. Durations are in nanoseconds."""

    model: str
    embeddings: tuple[tuple[float, ...], ...]
    total_duration: int = 0
    load_duration: int = 0
    prompt_eval_count: int = 0


class EmbeddingsReply(msgspec.Struct, frozen=True):
    """One vector."""

    embedding: tuple[float, ...]


EMBED_DECODER: Final = msgspec.json.Decoder(EmbedBody)
EMBEDDINGS_DECODER: Final = msgspec.json.Decoder(EmbeddingsBody)
WORDING: Final = Wording(
    not_found='model "{name}" not found, try pulling it first',
    too_long="the input length exceeds the context length",
    advice='shorten it, or send "truncate": true',
)
OLD_WORDING: Final = msgspec.structs.replace(WORDING, advice="shorten it, or use /api/embed, which can truncate")


class EmbedView(msgspec.Struct, frozen=True):
    """What rendering needs: the model's name as the client wrote it, and how many numbers a vector keeps at most.

    Other protocols refuse more numbers than the model gives. Here that is no error, so the engine is not asked.
    """

    model: str | None
    dimensions: int | None

    def cut(self, vector: tuple[float, ...]) -> tuple[float, ...]:
        """Return the vector's first numbers, scaled to length 1 again."""
        if self.dimensions is None or self.dimensions >= len(vector):
            return vector
        short = vector[: self.dimensions]
        length = math.hypot(*short)
        return tuple(number / length for number in short) if length else short


def parse(wire: Wire) -> Parsed:
    """Read a request of `/api/embed`."""
    body = read(EMBED_DECODER, wire)
    texts = body.input if isinstance(body.input, list) else [body.input] if body.input else []
    if body.dimensions is not None and body.dimensions < 0:
        raise InvalidField("dimensions", "dimensions must not be negative")
    request = Embedding(
        residence=residence_of(body.model, body.options, body.keep_alive),
        inputs=tuple(texts),
        overflow=Overflow.ERROR if body.truncate is False else Overflow.TRUNCATE,
    )
    return Parsed(request, EmbedView(request.residence.model, body.dimensions or None))


def parse_old(wire: Wire) -> Parsed:
    """Read a request of `/api/embeddings`."""
    body = read(EMBEDDINGS_DECODER, wire)
    residence = residence_of(body.model, body.options, body.keep_alive)
    return Parsed(Embedding(residence=residence, inputs=(body.prompt,) if body.prompt else (), normalise=False))


def whole(view: EmbedView, _stamp: Stamp, embedded: Embedded) -> Rendered:
    """Write all vectors."""
    reply = EmbedReply(
        model=view.model or embedded.model,
        embeddings=tuple(map(view.cut, embedded.vectors)),
        total_duration=embedded.total_ns,
        load_duration=embedded.load_ns,
        prompt_eval_count=embedded.input_tokens,
    )
    return Rendered(msgspec.json.encode(reply))


def whole_old(_view: None, _stamp: Stamp, embedded: Embedded) -> Rendered:
    """Write the one vector; an empty one where there was no input."""
    return Rendered(msgspec.json.encode(EmbeddingsReply(embedded.vectors[0] if embedded.vectors else ())))


EMBED: Final = Operation(
    method="POST",
    path="/api/embed",
    summary="Turn texts into vectors of length 1",
    parse=parse,
    whole=whole,
    body=EmbedBody,
    reply=EmbedReply,
    error=WORDING.render,
)
EMBEDDINGS: Final = Operation(
    method="POST",
    path="/api/embeddings",
    summary="Turn one text into a vector, in the older form",
    parse=parse_old,
    whole=whole_old,
    body=EmbeddingsBody,
    reply=EmbeddingsReply,
    error=OLD_WORDING.render,
)
