"""`GET /api/tags` and `GET /api/ps`: the models on disk, and those that are loaded.

Invariant: every entry has a digest of 64 bare hex digits, which Ollama's CLI cuts without looking.
"""

from __future__ import annotations

from typing import Final

import msgspec

from diglot.core.model import Capability, Model
from diglot.core.request import ListModels, ListRunning
from diglot.core.result import Running
from diglot.dialects.ollama.timestamps import expiry, rfc3339_ns
from diglot.dialects.operation import Operation, Parsed, Rendered, Stamp, Wire

KNOWN: Final = (
    *(Capability.COMPLETION, Capability.TOOLS, Capability.INSERT),
    *(Capability.VISION, Capability.EMBEDDING, Capability.THINKING),
)
"""The capabilities that Ollama's clients have words for."""


class DetailsReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a list tells of a model."""

    parent_model: str
    format: str
    family: str
    families: tuple[str, ...]
    parameter_size: str
    quantization_level: str
    context_length: int
    embedding_length: int


class TagReply(msgspec.Struct, frozen=True, kw_only=True):
    """A model on disk; `size` is in bytes."""

    name: str
    model: str
    modified_at: str
    size: int
    digest: str
    details: DetailsReply
    capabilities: tuple[str, ...]


class TagsReply(msgspec.Struct, frozen=True):
    """All models, the newest first."""

    models: list[TagReply]


class ProcessReply(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is loaded, or loading; `size` is the memory in bytes, `size_vram` the part of it on an accelerator.

    `loaded` is ours: the share of a load that is done, from 0 to 1. Ollama's clients pass over it.
    """

    name: str
    model: str
    size: int
    digest: str
    details: DetailsReply
    expires_at: str
    size_vram: int
    context_length: int
    loaded: float


class ProcessesReply(msgspec.Struct, frozen=True):
    """All loaded models, the one that stays longest first."""

    models: list[ProcessReply]


def details_of(model: Model) -> DetailsReply:
    """Return the details."""
    return DetailsReply(**{name: getattr(model.details, name) for name in DetailsReply.__struct_fields__})


def capabilities_of(model: Model) -> tuple[str, ...]:
    """Return the words for what a model can do."""
    return tuple(ability.value for ability in KNOWN if ability in model.capabilities)


def tags(_view: None, _stamp: Stamp, models: tuple[Model, ...]) -> Rendered:
    """Write the models on disk."""
    entries = [
        TagReply(
            name=model.name,
            model=model.name,
            modified_at=rfc3339_ns(model.modified_at),
            size=model.size,
            digest=model.digest,
            details=details_of(model),
            capabilities=capabilities_of(model),
        )
        for model in sorted(models, key=lambda each: -each.modified_at)
    ]
    return Rendered(msgspec.json.encode(TagsReply(entries)))


def processes(_view: None, _stamp: Stamp, running: tuple[Running, ...]) -> Rendered:
    """Write the models that are loaded."""
    entries = [
        ProcessReply(
            name=each.model.name,
            model=each.model.name,
            size=each.memory,
            digest=each.model.digest,
            details=details_of(each.model),
            expires_at=expiry(each.expires_at),
            size_vram=each.accelerator_memory,
            context_length=each.window,
            loaded=each.loaded,
        )
        for each in sorted(running, key=lambda each: -each.expires_at)
    ]
    return Rendered(msgspec.json.encode(ProcessesReply(entries)))


def _parse_tags(_wire: Wire) -> Parsed:
    return Parsed(ListModels())


def _parse_processes(_wire: Wire) -> Parsed:
    return Parsed(ListRunning())


TAGS: Final = Operation(
    method="GET",
    path="/api/tags",
    summary="List the models on disk",
    parse=_parse_tags,
    whole=tags,
    reply=TagsReply,
)
PROCESSES: Final = Operation(
    method="GET",
    path="/api/ps",
    summary="List the models that are loaded",
    parse=_parse_processes,
    whole=processes,
    reply=ProcessesReply,
)
