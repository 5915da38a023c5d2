"""What a GGUF header means: a model's anatomy, its abilities, and the words that describe it.

Everything is derived from fields of the header, never from a model's name. A field of the wrong type
counts as absent: the engine refuses the file where it matters. Neighbours: `gguf` reads the header,
`facts` keeps what is derived here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from diglot.core.model import Anatomy, Capabilities, ModelDetails, Pooling
from diglot.store.gguf import Header, LongList
from diglot.store.gguf_types import FILE_TYPES

Purpose = Literal["model", "projector", "adapter", "vocabulary", "shard"]

_CACHE_BYTES: Final = 2
"""Of one number in the cache: 16-bit floats."""

_POOLINGS: Final[tuple[Pooling, ...]] = ("none", "mean", "cls", "last", "rank")
_FILL: Final = ("pre", "suf", "mid")
_TOOLS = re.compile(r"\btools\b|\btool_calls?\b")
_THINKING = re.compile(r"</?think(ing)?>|\breasoning_content\b|\benable_thinking\b|<\|channel\|>")
_LARGEST: Final = 1 << 48
"""Of a number that is believed; keeps products of hostile numbers harmless."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is derived from one file's header."""

    anatomy: Anatomy
    capabilities: Capabilities
    details: ModelDetails
    purpose: Purpose = "model"


def facts_of(header: Header) -> Facts:
    """Derive everything from a sound header."""
    fields = header.fields
    architecture = text_of(fields, "general.architecture")
    anatomy = _anatomy(header, architecture)
    return Facts(
        anatomy=anatomy,
        capabilities=_capabilities(fields, anatomy),
        purpose=_purpose(header, architecture),
        details=ModelDetails(
            family=architecture,
            families=(architecture,) if architecture else (),
            parameter_size=counted(header.parameter_count),
            quantization_level=FILE_TYPES.get(number_of(fields, "general.file_type", default=-1), "unknown"),
            context_length=anatomy.context_length,
            embedding_length=anatomy.embedding_length,
        ),
    )


def whole(parts: Sequence[Facts]) -> Facts:
    """Return what is derived of the files that a model is split over, in order; of one file what that has.

    The first part has the fields, each has tensors of its own. Where one is no part, the result is none either.
    """
    first, *others = parts
    purposes = {each.purpose for each in parts}
    if not others or purposes != {"shard"}:
        return first
    count = sum(each.anatomy.parameter_count for each in parts)
    return msgspec.structs.replace(
        first,
        purpose="model",
        anatomy=msgspec.structs.replace(first.anatomy, parameter_count=count),
        details=msgspec.structs.replace(first.details, parameter_size=counted(count)),
    )


def text_of(fields: Mapping[str, Any], key: str) -> str:
    """Return a text field, empty when there is none."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def number_of(fields: Mapping[str, Any], key: str, *, default: int = 0) -> int:
    """Return a whole number that is not negative, `default` when there is none."""
    value = fields.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST else default


def counted(number: int) -> str:
    """Write a count as `7.6B`, `134.52M` or `38K`, as Ollama's tools do."""
    for unit, letter, digits in ((10**9, "B", 1), (10**6, "M", 2), (10**3, "K", 0)):
        if number >= unit:
            return f"{number / unit:.{0 if number % unit == 0 else digits}f}{letter}"
    return str(number)


def _anatomy(header: Header, architecture: str) -> Anatomy:
    fields = header.fields
    pooling = number_of(fields, f"{architecture}.pooling_type", default=len(_POOLINGS))
    vocabulary = fields.get("tokenizer.ggml.tokens")
    return Anatomy(
        architecture=architecture,
        parameter_count=header.parameter_count,
        context_length=number_of(fields, f"{architecture}.context_length"),
        embedding_length=number_of(fields, f"{architecture}.embedding_length"),
        block_count=number_of(fields, f"{architecture}.block_count"),
        kv_bytes_per_token=_cache_bytes(fields, architecture),
        vocabulary=_length(vocabulary) or number_of(fields, f"{architecture}.vocab_size"),
        pooling=_POOLINGS[pooling] if pooling < len(_POOLINGS) else None,
        template=len(text_of(fields, "tokenizer.chat_template")),
        fill=_fill(fields),
    )


def _fill(fields: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """Return the marks for filling the middle: before the text, before what follows the gap, before the filling."""
    before, after, middle = (number_of(fields, f"tokenizer.ggml.fim_{part}_token_id", default=-1) for part in _FILL)
    return (before, after, middle) if min(before, after, middle) >= 0 else None


def _cache_bytes(fields: Mapping[str, Any], architecture: str) -> int:
    """Return the bytes of keys and values for one token over all layers; an upper bound for sliding windows."""
    if fields.get(f"{architecture}.attention.causal") is False:
        return 0
    heads = _per_layer(fields, f"{architecture}.attention.head_count")
    key_heads = _per_layer(fields, f"{architecture}.attention.head_count_kv") or heads
    if not key_heads:
        return 0
    width = number_of(fields, f"{architecture}.embedding_length") // max(1, *heads) if heads else 0
    key = number_of(fields, f"{architecture}.attention.key_length", default=width)
    value = number_of(fields, f"{architecture}.attention.value_length", default=width)
    layers = number_of(fields, f"{architecture}.block_count")
    total = sum(key_heads) if len(key_heads) > 1 else key_heads[0] * layers
    return total * (key + value) * _CACHE_BYTES


def _per_layer(fields: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """Return a number for all layers as one, or a list of one number for each."""
    value = fields.get(key)
    if isinstance(value, tuple) and all(isinstance(item, int) and 0 <= item < _LARGEST for item in value):
        return value
    number = number_of(fields, key)
    return (number,) if number else ()


def _capabilities(fields: Mapping[str, Any], anatomy: Anatomy) -> Capabilities:
    template = text_of(fields, "tokenizer.chat_template")
    ranks = anatomy.pooling == "rank"
    embeds = anatomy.pooling is not None and not ranks
    completes = not embeds and not ranks
    thinks = completes and bool(_THINKING.search(template))
    return Capabilities(
        completion=completes,
        tools=completes and bool(template),
        insert=completes and anatomy.fill is not None,
        vision=number_of(fields, f"{anatomy.architecture}.vision.block_count") > 0,
        embedding=embeds,
        thinking=thinks,
        rerank=ranks,
        template_tools=completes and bool(_TOOLS.search(template)),
        template_thinks=thinks,
    )


def _purpose(header: Header, architecture: str) -> Purpose:
    kind = text_of(header.fields, "general.type")
    if number_of(header.fields, "split.count") > 1:
        return "shard"
    if kind in {"mmproj", "projector"} or architecture == "clip":
        return "projector"
    if kind == "adapter":
        return "adapter"
    return "model" if header.tensors else "vocabulary"


def _length(value: Sequence[Any] | LongList | None) -> int:
    match value:
        case LongList():
            return value.count
        case tuple():
            return len(value)
        case _:
            return 0
