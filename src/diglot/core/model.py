"""Models: how one is named, what it can do, and what is known of it.

`ModelRef` is the name grammar. `Model` is what listing, choosing and loading need, and is cheap to make;
`ModelCard` adds what only a person who asks for everything wants to see, and costs the reading of a file's
header. Neither knows how a store lays its files out, nor how a dialect writes them. Neighbours: `store`
makes these, `services` choose by them, `engines` load them, dialects show them.

Invariant: two names that differ only in the case of letters, or in parts that have a default, are equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal, Self

import msgspec

from diglot.core.recipe import Example
from diglot.core.request import LoadOptions, Sampling

DEFAULT_HOST: Final = "registry.ollama.ai"
DEFAULT_NAMESPACE: Final = "library"
DEFAULT_TAG: Final = "latest"
_LOCAL: Final = ":local"
_CLOUD: Final = (":cloud", "-cloud")

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,349}")
_NAMESPACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")


class InvalidName(ValueError):
    """`text` is no model name; `reason` says which part is wrong."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"{text!r} is no model name: {reason}")
        self.text = text
        self.reason = reason


class ModelRef(msgspec.Struct, frozen=True, eq=False):
    """The name of a model: `[host/][namespace/]model[:tag]`.

    Every part begins with a letter, a digit or `_`, so no part can be a path of its own. Letters keep
    their case and are compared without it. `str()` gives the shortest form, always with its tag.
    """

    model: str
    tag: str = DEFAULT_TAG
    namespace: str = DEFAULT_NAMESPACE
    host: str = DEFAULT_HOST

    def __post_init__(self) -> None:
        """Refuse a part that is outside the grammar, whoever made this."""
        for kind, pattern, part in (
            ("model", _NAME, self.model),
            ("tag", _NAME, self.tag),
            ("namespace", _NAMESPACE, self.namespace),
            ("host", _HOST, self.host),
        ):
            if not pattern.fullmatch(part):
                raise InvalidName(part, f"not a valid {kind}" if part else f"the {kind} is missing")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name as a person writes it. A scheme (`https://`) is allowed and dropped, and so is `:local` at the end.

        Raises InvalidName.
        """
        rest = _placed(text.partition("://")[2] if "://" in text else text)
        path, colon, tag = rest.rpartition(":")
        if not colon or "/" in tag:  # A colon before the last slash belongs to the host's port.
            path, tag = rest, DEFAULT_TAG
        match path.split("/"):
            case [model]:
                namespace, host = DEFAULT_NAMESPACE, DEFAULT_HOST
            case [namespace, model]:
                host = DEFAULT_HOST
            case [host, namespace, model]:
                pass
            case _:
                raise InvalidName(text, "it has more than three parts between slashes")
        try:
            return cls(model=model, tag=tag, namespace=namespace, host=host)
        except InvalidName as error:
            raise InvalidName(text, error.reason) from None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What names are compared by."""
        return self.host.lower(), self.namespace.lower(), self.model.lower(), self.tag.lower()

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, ModelRef) else NotImplemented

    def __ne__(self, other: object) -> bool:  # msgspec has one of its own, which would tell all apart.
        return self.key != other.key if isinstance(other, ModelRef) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        host, namespace, _, _ = self.key
        name = f"{self.model}:{self.tag}"
        if host != DEFAULT_HOST:
            return f"{self.host}/{self.namespace}/{name}"
        return name if namespace == DEFAULT_NAMESPACE else f"{self.namespace}/{name}"


def _placed(text: str) -> str:
    """Return a name without `:local`, which says that it is meant to be here, as all are; `:cloud` becomes a part of the tag.

    Ollama's tools write both where a model of one name is here and in their cloud. Raises InvalidName.
    """
    if text[-6:].lower() == _LOCAL:
        if text[:-6].lower().endswith((_LOCAL, *_CLOUD)):
            raise InvalidName(text, "use either :local or :cloud, not both")
        return text[:-6]
    before, colon, tag = text[:-6].rpartition(":")
    if text[-6:].lower() not in _CLOUD or not colon or "/" in tag:
        return text
    if f":{tag}".lower() == _LOCAL:
        raise InvalidName(text, "use either :local or :cloud, not both")
    return f"{before}:{tag}-cloud"


class Capability(StrEnum):
    """Something that a model can do, in the order in which it is told."""

    COMPLETION = "completion"
    TOOLS = "tools"
    INSERT = "insert"
    VISION = "vision"
    EMBEDDING = "embedding"
    THINKING = "thinking"
    RERANK = "rerank"


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model can do for a client.

    `tools` holds for every model that chats: where its template knows no tools (`template_tools` is
    false) they are put into its prompt in a general form. `template_thinks`: the template writes or
    reads marks around reasoning, which is what `thinking` rests on.
    """

    completion: bool = False
    tools: bool = False
    insert: bool = False
    vision: bool = False
    embedding: bool = False
    thinking: bool = False
    rerank: bool = False
    template_tools: bool = False
    template_thinks: bool = False

    def __contains__(self, ability: Capability) -> bool:
        return bool(getattr(self, ability.value))

    @property
    def names(self) -> tuple[Capability, ...]:
        """All that holds, in order."""
        return tuple(ability for ability in Capability if ability in self)


Pooling = Literal["none", "mean", "cls", "last", "rank"]


class Anatomy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the weights' own header says of a model, as far as loading and choosing need it.

    `context_length` is the window it was trained for, in tokens (0: unknown). `kv_bytes_per_token` is what
    one token takes in the cache, in 16-bit floats (0 for encoders). `template` is the chat template's length in characters, 0 without one.
    `fill` are the tokens that stand before the text, before what follows the gap, and before the filling.
    """

    architecture: str
    parameter_count: int = 0
    context_length: int = 0
    embedding_length: int = 0
    block_count: int = 0
    kv_bytes_per_token: int = 0
    vocabulary: int = 0
    pooling: Pooling | None = None
    template: int = 0
    fill: tuple[int, int, int] | None = None


class ModelDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What a list tells of a model. `parameter_size` and `quantization_level` are words such as `134.52M`, `Q4_1`."""

    format: str = "gguf"
    family: str = ""
    families: tuple[str, ...] = ()
    parameter_size: str = ""
    quantization_level: str = ""
    parent_model: str = ""
    context_length: int = 0
    embedding_length: int = 0


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """What a model's maker set, in force where a request says nothing.

    `parameters` are the settings as they were written, for showing; `sampling` and `load` are what is
    understood of them. `template` is a Go template, which no engine here reads: a model's own chat template is used.
    `marks` are kept for other servers, such as `renderer`, the name of the code that makes prompts there.
    """

    parameters: Mapping[str, Any] = msgspec.field(default_factory=dict)
    sampling: Sampling = Sampling()
    load: LoadOptions = LoadOptions()
    system: str = ""
    messages: tuple[Example, ...] = ()
    template: str = ""
    marks: Mapping[str, str] = msgspec.field(default_factory=dict)


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model on disk.

    `digest` is 64 hex digits and changes with everything that makes the model; `size` is in bytes, all files
    together; `modified_at` is in nanoseconds since the epoch. `weights`, `projector` (for images) and
    `adapters` are GGUF files; `parts` are the others that the weights are split over, in order.
    """

    ref: ModelRef
    digest: str
    size: int
    modified_at: int
    weights: Path
    details: ModelDetails
    capabilities: Capabilities
    anatomy: Anatomy
    parts: tuple[Path, ...] = ()
    projector: Path | None = None
    adapters: tuple[Path, ...] = ()
    defaults: Defaults = Defaults()

    @property
    def raw_only(self) -> bool:
        """Whether only others can make prompts of conversations for it: its weights bring no chat template, its maker names another."""
        named = self.defaults.template or "renderer" in self.defaults.marks
        return bool(named) and not self.anatomy.template

    @property
    def name(self) -> str:
        """The shortest name, with its tag."""
        return str(self.ref)

    @property
    def files(self) -> tuple[Path, ...]:
        """All that an engine opens."""
        return (self.weights, *self.parts, *((self.projector,) if self.projector else ()), *self.adapters)


class TensorInfo(msgspec.Struct, frozen=True):
    """One tensor of a file: its element type such as `F16`, and its shape, the fastest dimension first."""

    name: str
    type: str
    shape: tuple[int, ...]


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """All there is to know of a model.

    `info` and `projector_info` are header fields by name; long lists in them are empty unless the card
    was asked for in full. `chat_template` is the model's own, in Jinja.
    """

    model: Model
    info: Mapping[str, Any]
    tensors: tuple[TensorInfo, ...]
    projector_info: Mapping[str, Any] | None = None
    chat_template: str = ""
    licences: tuple[str, ...] = ()
