"""From a manifest to a model: what its layers are, whether they are there, and what they say.

A model comes out only if everything it needs is there; otherwise `Broken` says what is missing. Nothing
is written here but facts. Neighbours: `layout`, `manifest`, `facts` below; `local` above.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from diglot.core.model import Defaults, Model, ModelCard, ModelDetails, ModelRef
from diglot.store.anatomy import Facts, Purpose, text_of
from diglot.store.facts import KeptFacts
from diglot.store.files import TooLarge, read_bounded
from diglot.store.gguf import BrokenHeader, Header, LongList, read_header
from diglot.store.layout import Layout
from diglot.store.manifest import (
    Broken,
    Config,
    Layer,
    Manifest,
    read_config,
    read_manifest,
    read_messages,
    read_parameters,
)

MAX_MANIFEST: Final = 1 << 20
MAX_DOCUMENT: Final = 1 << 22

_FULL_LISTS: Final = 1 << 21
_SHORT_LISTS: Final = 5  # As many as Ollama's tools show.
_HIDDEN: Final = ("general.name", "tokenizer.chat_template")

_REFUSED: Final[dict[Purpose, str]] = {
    "projector": "it holds a projector for images, not a model",
    "adapter": "it holds an adapter, not a model",
    "vocabulary": "it holds no tensors",
    "shard": "it is one part of a model that is split over several files",
}


def model_of(ref: ModelRef, path: Path, *, layout: Layout, facts: KeptFacts) -> Model:
    """Return the model whose manifest lies at `path`. Raises Broken, and FileNotFoundError without a manifest."""
    data, modified_at = _read_manifest(path)
    return _model(ref, data, modified_at=modified_at, layout=layout, facts=facts)


def require_model_of(data: bytes, *, layout: Layout, facts: KeptFacts) -> None:
    """Raise Broken unless a manifest tells of a model that can be run."""
    _model(ModelRef(model="it"), data, modified_at=0, layout=layout, facts=facts)


def _model(ref: ModelRef, data: bytes, *, modified_at: int, layout: Layout, facts: KeptFacts) -> Model:
    manifest = read_manifest(data)
    config = read_config(_document(layout, manifest.config))
    if config.remote_host:
        raise Broken(f"it runs at {config.remote_host}, not here")
    if config.model_format not in {"", "gguf"}:
        raise Broken(f"its format is {config.model_format}, only gguf can be run")
    weights = _last(manifest, "model")
    if weights is None:
        raise Broken("it has no weights")
    known = facts.of(_present(layout, weights), weights.content)
    require_model(known)
    projector = _last(manifest, "projector")
    capabilities = known.capabilities
    if projector is not None:
        capabilities = msgspec.structs.replace(capabilities, vision=True)
    return Model(
        ref=ref,
        digest=hashlib.sha256(data).hexdigest(),
        size=manifest.size,
        modified_at=modified_at,
        weights=layout.blob(weights.content),
        projector=_present(layout, projector) if projector else None,
        adapters=tuple(_present(layout, layer) for layer in _all(manifest, "adapter")),
        details=_details(config, known, parent=weights.from_),
        capabilities=capabilities,
        anatomy=known.anatomy,
        defaults=_defaults(manifest, layout, marks=config.marks),
    )


def require_model(facts: Facts) -> None:
    """Raise Broken unless the file is one that can be run by itself."""
    if facts.purpose != "model":
        raise Broken(_REFUSED[facts.purpose])
    if not facts.anatomy.architecture:
        raise Broken("its header names no architecture")


def require_projector(facts: Facts) -> None:
    """Raise Broken unless the file is a projector for images."""
    if facts.purpose != "projector":
        raise Broken("it is named as a projector for images, and is none")


def card_of(model: Model, path: Path, *, layout: Layout, verbose: bool) -> ModelCard:
    """Return all there is to know of `model`, whose manifest lies at `path`. Raises Broken."""
    manifest = read_manifest(_read_manifest(path)[0])
    licences = tuple(_text(layout, layer) for layer in _all(manifest, "license"))
    return card_of_files(model, licences=licences, verbose=verbose)


def card_of_files(model: Model, *, licences: tuple[str, ...] = (), verbose: bool) -> ModelCard:
    """Return what the headers of a model's files say, beside what is known. Raises Broken."""
    header, *others = (_header(path, verbose=verbose) for path in (model.weights, *model.parts))
    count = header.parameter_count + sum(each.parameter_count for each in others)
    return ModelCard(
        model=model,
        info={**_shown(header), "general.parameter_count": count},
        tensors=header.tensors + tuple(tensor for each in others for tensor in each.tensors),
        projector_info=_shown(_header(model.projector, verbose=verbose)) if model.projector else None,
        chat_template=text_of(header.fields, "tokenizer.chat_template"),
        licences=licences,
    )


def _read_manifest(path: Path) -> tuple[bytes, int]:
    try:
        return read_bounded(path, limit=MAX_MANIFEST), path.stat().st_mtime_ns
    except TooLarge as error:
        raise Broken(str(error)) from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Broken(f"its manifest cannot be read: {error.strerror}") from None


def _details(config: Config, facts: Facts, *, parent: str) -> ModelDetails:
    """Join what the maker wrote and what the header says; the maker's word comes first."""
    own = facts.details
    return msgspec.structs.replace(
        own,
        family=config.model_family or own.family,
        families=config.model_families or own.families,
        parameter_size=config.model_type or own.parameter_size,
        quantization_level=config.file_type or own.quantization_level,
        parent_model=parent,
    )


def _defaults(manifest: Manifest, layout: Layout, *, marks: Mapping[str, str]) -> Defaults:
    system, template = _last(manifest, "system"), _last(manifest, "template", "prompt")
    defaults = Defaults(
        system=_text(layout, system) if system else "",
        template=_text(layout, template) if template else "",
        marks=marks,
    )
    if layer := _last(manifest, "params"):
        parameters, sampling, load = read_parameters(_document(layout, layer))
        defaults = msgspec.structs.replace(defaults, parameters=parameters, sampling=sampling, load=load)
    if layer := _last(manifest, "messages"):
        defaults = msgspec.structs.replace(defaults, messages=read_messages(_document(layout, layer)))
    return defaults


def _all(manifest: Manifest, *kinds: str) -> list[Layer]:
    return [layer for layer in manifest.layers if layer.kind in kinds]


def _last(manifest: Manifest, *kinds: str) -> Layer | None:
    return next(reversed(_all(manifest, *kinds)), None)


def _present(layout: Layout, layer: Layer) -> Path:
    """Return the path of a content that is there and whole by its size."""
    path = layout.blob(layer.content)
    try:
        size = path.stat().st_size
    except OSError:
        raise Broken(f"its {layer.kind} is missing ({layer.content})") from None
    if size != layer.size:
        raise Broken(f"its {layer.kind} has {size} bytes instead of {layer.size} ({layer.content})")
    return path


def _document(layout: Layout, layer: Layer) -> bytes:
    try:
        return read_bounded(layout.blob(layer.content), limit=MAX_DOCUMENT)
    except TooLarge as error:
        raise Broken(str(error)) from None
    except OSError:
        raise Broken(f"its {layer.kind} is missing ({layer.content})") from None


def _text(layout: Layout, layer: Layer) -> str:
    return _document(layout, layer).decode("utf-8", errors="replace")


def _header(path: Path, *, verbose: bool) -> Header:
    try:
        return read_header(path, longest=_FULL_LISTS if verbose else _SHORT_LISTS)
    except BrokenHeader as error:
        raise Broken(str(error)) from None
    except OSError as error:
        raise Broken(f"{path.name} cannot be read: {error.strerror}") from None


def _shown(header: Header) -> dict[str, Any]:
    shown: dict[str, Any] = {
        name: () if isinstance(value, LongList) else value
        for name, value in header.fields.items()
        if name not in _HIDDEN
    }
    return {**shown, "general.parameter_count": header.parameter_count}
