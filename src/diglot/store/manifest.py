"""Manifests: which contents make a model, and the small documents among them.

These are the wire structs of Ollama's on-disk format, with its field names; unknown fields are passed
over, since newer versions add some. Neighbours: `layout` (where they lie), `local` (what they become).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from diglot.core.digest import Digest
from diglot.core.foreign import UNREADABLE
from diglot.core.model import Capabilities, ModelDetails
from diglot.core.recipe import Example
from diglot.core.request import LoadOptions, Sampling

MANIFEST_TYPE: Final = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG_TYPE: Final = "application/vnd.docker.container.image.v1+json"
_LAYER_PREFIX: Final = "application/vnd.ollama.image."

T = TypeVar("T")
Size = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class Broken(Exception):
    """A model on disk cannot be used; the text says why, for `doctor` and for the person who asked for it."""


class Layer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """One content of a model: what kind it is, and where it lies."""

    media_type: str
    digest: str
    size: Size
    from_: str = msgspec.field(default="", name="from")

    @property
    def kind(self) -> str:
        """The last word of the media type: `model`, `projector`, `params`, `system` and so on."""
        return self.media_type.removeprefix(_LAYER_PREFIX)

    @property
    def content(self) -> Digest:
        """The digest, checked. Raises Broken."""
        try:
            return Digest.parse(self.digest)
        except ValueError as error:
            raise Broken(f"its manifest is damaged: {error}") from None


class Manifest(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The document a name stands for."""

    schema_version: int = 2
    media_type: str = MANIFEST_TYPE
    config: Layer
    layers: tuple[Layer, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all contents."""
        return self.config.size + sum(layer.size for layer in self.layers)

    @property
    def contents(self) -> Mapping[Digest, Layer]:
        """Everything it tells of, once each, the config last. Raises Broken."""
        return {layer.content: layer for layer in (*self.layers, self.config)}


class RootFs(msgspec.Struct, frozen=True):
    """A part of the config that other tools of container images expect."""

    type: str = "layers"
    diff_ids: tuple[str, ...] = ()


class Config(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The config content. Everything in it is optional when read; `null` lists are written by some tools."""

    model_format: str = ""
    model_family: str = ""
    model_families: tuple[str, ...] | None = None
    model_type: str = ""
    file_type: str = ""
    remote_host: str = ""
    renderer: str = ""
    parser: str = ""
    requires: str = ""
    context_length: int = 0
    embedding_length: int = 0
    capabilities: tuple[str, ...] | None = None
    architecture: str = ""
    os: str = ""
    rootfs: RootFs | None = None

    @property
    def marks(self) -> Mapping[str, str]:
        """What is there for other servers."""
        named = {"renderer": self.renderer, "parser": self.parser, "requires": self.requires}
        return {name: value for name, value in named.items() if value}


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters that are understood; others are shown and have no effect."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    num_predict: int | None = None
    stop: tuple[str, ...] | str | None = None
    num_ctx: int | None = None
    num_batch: int | None = None
    num_thread: int | None = None
    num_gpu: int | None = None
    main_gpu: int | None = None
    use_mmap: bool | None = None


def config_of(
    details: ModelDetails,
    capabilities: Capabilities,
    layers: Iterable[Layer],
    *,
    marks: Mapping[str, str] | None = None,
) -> Config:
    """Return the config of a model that is made here. `marks` are fields of it that are there for other servers."""
    return Config(
        model_format=details.format,
        model_family=details.family,
        model_families=details.families,
        model_type=details.parameter_size,
        file_type=details.quantization_level,
        context_length=details.context_length,
        embedding_length=details.embedding_length,
        capabilities=capabilities.names,
        architecture="amd64",
        os="linux",
        rootfs=RootFs(diff_ids=tuple(layer.digest for layer in layers)),
        **(marks or {}),
    )


def layer_type(kind: str) -> str:
    """Return the media type of a kind of layer."""
    return f"{_LAYER_PREFIX}{kind}"


def read_manifest(data: bytes) -> Manifest:
    """Decode a manifest. Raises Broken."""
    return _decoded(data, Manifest, "manifest")


def read_config(data: bytes) -> Config:
    """Decode a config. Raises Broken."""
    return _decoded(data, Config, "config")


def read_messages(data: bytes) -> tuple[Example, ...]:
    """Decode a `messages` layer. Raises Broken."""
    return _decoded(data, tuple[Example, ...], "list of messages")


def read_parameters(data: bytes) -> tuple[Mapping[str, Any], Sampling, LoadOptions]:
    """Decode a `params` layer: as it was written, and what is understood of it. Raises Broken."""
    written = _decoded(data, dict[str, Any], "list of parameters")
    try:
        options = msgspec.convert(written, _Options, strict=False)
    except msgspec.ValidationError as error:
        raise Broken(f"its list of parameters is damaged: {error}") from None
    sampling = Sampling(
        temperature=options.temperature,
        top_p=options.top_p,
        top_k=options.top_k,
        min_p=options.min_p,
        typical_p=options.typical_p,
        repeat_penalty=options.repeat_penalty,
        repeat_last_n=options.repeat_last_n,
        presence_penalty=options.presence_penalty,
        frequency_penalty=options.frequency_penalty,
        seed=options.seed,
        max_tokens=options.num_predict,
        stop=(options.stop,) if isinstance(options.stop, str) else options.stop,
    )
    load = LoadOptions(
        window=options.num_ctx,
        batch=options.num_batch,
        threads=options.num_thread,
        gpu_layers=options.num_gpu,
        main_gpu=options.main_gpu,
        use_mmap=options.use_mmap,
    )
    return written, sampling, load


def _decoded(data: bytes, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except UNREADABLE as error:
        raise Broken(f"its {what} is damaged: {error}") from None
