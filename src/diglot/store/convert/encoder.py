"""Encoders as their makers describe them: settings, pooling, and what each tensor is called in GGUF.

Read from `config.json`, `modules.json` and the pooling module beside them. Pure but for reading these
files. The names on the right are those by which llama.cpp's `bert` architecture asks for its tensors.
Neighbours: `vocabulary` and `writer`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from diglot.store.convert import CannotConvert

T = TypeVar("T")

_FAMILIES: Final = ("bert", "camembert", "xlm-roberta")
_ROBERTA: Final = ("camembert", "xlm-roberta")
_RANKING: Final = "ForSequenceClassification"
_LARGEST: Final = 1 << 26

MEAN: Final = 1
CLS: Final = 2
LAST: Final = 3
RANK: Final = 4

_OUTER: Final[Mapping[str, str]] = MappingProxyType(
    {
        "embeddings.word_embeddings": "token_embd",
        "embeddings.position_embeddings": "position_embd",
        "embeddings.token_type_embeddings": "token_types",
        "embeddings.LayerNorm": "token_embd_norm",
    }
)
_LAYER: Final[Mapping[str, str]] = MappingProxyType(
    {
        "attention.self.query": "attn_q",
        "attention.self.key": "attn_k",
        "attention.self.value": "attn_v",
        "attention.output.dense": "attn_output",
        "attention.output.LayerNorm": "attn_output_norm",
        "intermediate.dense": "ffn_up",
        "output.dense": "ffn_down",
        "output.LayerNorm": "layer_output_norm",
    }
)
_HEAD: Final[Mapping[str, str]] = MappingProxyType({"classifier.dense": "cls", "classifier.out_proj": "cls.output"})
"""What makes one score of the first token: of RoBERTa's kind, which two texts in one input are told apart by marks alone."""
_NAME = re.compile(
    r"(?:bert\.|roberta\.)?(?:(?P<outer>embeddings\.\w+)|encoder\.layer\.(?P<layer>\d+)\.(?P<inner>[\w.]+))\.(?P<part>\w+)"
)
_UNUSED = re.compile(
    r"(?:bert\.|roberta\.)?(?:embeddings\.position_ids|pooler\..*|lm_head\..*|cls\.(?:predictions|seq_relationship)\..*)"
)
_PARTS: Final[Mapping[str, str]] = MappingProxyType(
    {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}  # The latter in old checkpoints.
)


class Encoder(msgspec.Struct, frozen=True, kw_only=True):
    """What `config.json` says, under its own names, and the pooling. Lengths in tokens."""

    model_type: str
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    vocab_size: int
    layer_norm_eps: float
    type_vocab_size: int = 1
    pad_token_id: int = 0
    hidden_act: str = "gelu"
    position_embedding_type: str = "absolute"
    is_decoder: bool = False
    architectures: tuple[str, ...] = ()
    id2label: Mapping[str, str] = msgspec.field(default_factory=dict)
    name: str = msgspec.field(default="", name="_name_or_path")
    pooling: int = MEAN

    @property
    def skipped_positions(self) -> int:
        """Rows at the head of the position embeddings that no token uses: RoBERTa counts from behind the padding."""
        return self.pad_token_id + 1 if self.model_type in _ROBERTA else 0

    @property
    def ranks(self) -> bool:
        """Whether it has a head that makes one score of two texts."""
        return self.model_type in _ROBERTA and any(name.endswith(_RANKING) for name in self.architectures)

    @property
    def context_length(self) -> int:
        """The longest input."""
        return self.max_position_embeddings - self.skipped_positions


def read_encoder(folder: Path) -> Encoder:
    """Read and check the description of the model in `folder`. Raises CannotConvert."""
    encoder = read_json(folder / "config.json", Encoder)
    if encoder.model_type not in _FAMILIES:
        raise CannotConvert(f"model type {encoder.model_type!r} is none of {', '.join(_FAMILIES)}")
    heads = [name for name in encoder.architectures if "Classification" in name or "QuestionAnswering" in name]
    if encoder.ranks and len(encoder.id2label) != 1:
        raise CannotConvert("it sorts texts into classes, and only a head with one output ranks them (id2label)")
    if encoder.ranks and encoder.type_vocab_size > 1:
        raise CannotConvert("it tells two texts apart by their types, which the engine does not")
    if (heads and not encoder.ranks) or encoder.is_decoder:
        raise CannotConvert(f"it is no plain encoder: {', '.join(heads) or 'is_decoder is set'}")
    if encoder.hidden_act != "gelu":
        raise CannotConvert(f"hidden_act {encoder.hidden_act!r} is not what the engine computes, only 'gelu'")
    if encoder.position_embedding_type != "absolute":
        raise CannotConvert(f"position_embedding_type {encoder.position_embedding_type!r} is not 'absolute'")
    if encoder.hidden_size % encoder.num_attention_heads:
        raise CannotConvert(f"{encoder.num_attention_heads} heads do not divide a hidden size of {encoder.hidden_size}")
    if encoder.context_length < 1:
        raise CannotConvert("it has no position embeddings")
    return msgspec.structs.replace(encoder, pooling=RANK if encoder.ranks else _read_pooling(folder))


def tensor_name(name: str, *, ranks: bool = False) -> str | None:
    """Return what a tensor is called in GGUF, None for one that is not needed. Raises CannotConvert."""
    if _UNUSED.fullmatch(name):
        return None
    whole, _, last = name.rpartition(".")
    if ranks and whole in _HEAD:
        return f"{_HEAD[whole]}.{last}"
    match = _NAME.fullmatch(name)
    part = _PARTS.get(match["part"]) if match else None
    if match and part:
        if stem := _OUTER.get(match["outer"] or ""):
            return f"{stem}.{part}"
        if stem := _LAYER.get(match["inner"] or ""):
            return f"blk.{match['layer']}.{stem}.{part}"
    raise CannotConvert(f"the tensor {name!r} is none that a BERT or XLM-RoBERTa encoder has")


def expected_tensors(encoder: Encoder) -> frozenset[str]:
    """Return the names of all tensors that a whole encoder has."""
    stems = [*_OUTER.values(), *(f"blk.{n}.{s}" for n in range(encoder.num_hidden_layers) for s in _LAYER.values())]
    if encoder.ranks:
        stems += _HEAD.values()
    embeddings = {"token_embd", "position_embd", "token_types"}
    return frozenset(
        f"{stem}.{part}" for stem in stems for part in ("weight", "bias") if part == "weight" or stem not in embeddings
    )


def read_json(path: Path, kind: type[T]) -> T:
    """Read a JSON file of the model's folder. Raises CannotConvert."""
    try:
        if path.stat().st_size > _LARGEST:
            raise CannotConvert(f"{path.name} is larger than {_LARGEST} bytes")
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise CannotConvert(f"{path.name} is missing") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CannotConvert(f"{path.name}: {error}") from None


class _Module(msgspec.Struct, frozen=True):
    type: str
    path: str = ""


def _read_pooling(folder: Path) -> int:
    """Return how sentence-transformers was told to pool; without a word of it, the mean, as it does itself."""
    modules = read_json(folder / "modules.json", list[_Module]) if (folder / "modules.json").exists() else []
    kinds = [module.type.rpartition(".")[2] for module in modules]
    if others := set(kinds) - {"Transformer", "Pooling", "Normalize"}:
        raise CannotConvert(f"it has modules that the engine does not compute: {', '.join(sorted(others))}")
    config = folder / "1_Pooling" / "config.json"
    if "Pooling" in kinds:
        config = folder / Path(modules[kinds.index("Pooling")].path).name / "config.json"
    if not config.exists():
        return MEAN
    return _pooling(read_json(config, dict[str, Any]))


def _pooling(config: Mapping[str, Any]) -> int:
    modes = {name for name, value in config.items() if name.startswith("pooling_mode_") and value is True}
    if isinstance(mode := config.get("pooling_mode"), str):
        modes = {f"pooling_mode_{mode.removesuffix('_tokens').removesuffix('_token')}"}
    match sorted(modes):
        case ["pooling_mode_mean_tokens" | "pooling_mode_mean"]:
            return MEAN
        case ["pooling_mode_cls_token" | "pooling_mode_cls"]:
            return CLS
        case ["pooling_mode_lasttoken"]:
            return LAST
        case others:
            raise CannotConvert(f"the engine cannot pool by {', '.join(others) or 'nothing'}")
