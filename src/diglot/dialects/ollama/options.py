"""The `options` of a request: how tokens are drawn, and how the model is loaded.

Both live in one flat object on the wire; here they part. Options that Ollama no longer knows, or that have
no meaning for this engine, are declared so that `compat` can list them, and are read over.
Source: Ollama api/types.go (Options, Runner) and what its client packages still send.

Invariant: an option of a wrong type is a fault that names it; null counts as not given.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from diglot.core.errors import InvalidField
from diglot.core.request import LoadOptions, Sampling

Number = int | float

INTEGERS: Final = frozenset(
    {"seed", "num_predict", "top_k", "repeat_last_n", "num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread"}
)
DEAD: Final = (
    *("numa", "low_vram", "f16_kv", "logits_all", "vocab_only", "use_mlock", "embedding_only", "tfs_z"),
    *("mirostat", "mirostat_tau", "mirostat_eta", "penalize_newline"),
)
"""Options of earlier versions of Ollama, which it ignores as well."""

MAX_STOPS: Final = 64
"""Each is looked for in every token."""
_LARGEST: Final = (1 << 31) - 1
_LARGEST_SEED: Final = (1 << 63) - 1
_RANGES: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "temperature": (0, 100),
        "top_p": (0, 1),
        "min_p": (0, 1),
        "typical_p": (0, 1),
        "repeat_penalty": (0, 100),
        "presence_penalty": (-100, 100),
        "frequency_penalty": (-100, 100),
    }
)
"""Beyond these an engine computes with what is no number, or as if the option were not there."""
_MOST: Final[Mapping[str, int]] = MappingProxyType({"num_thread": 1024, "num_batch": 1 << 16, "main_gpu": 255})


class OptionsBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """All options. A number with a fraction is cut down where a whole one is meant."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: Number | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repeat_penalty: float | None = None
    repeat_last_n: Number | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: Number | None = None
    num_predict: Number | None = None
    stop: list[str] | None = None
    num_ctx: Number | None = None
    num_batch: Number | None = None
    num_gpu: Number | None = None
    main_gpu: Number | None = None
    use_mmap: bool | None = None
    num_thread: Number | None = None
    num_keep: Any = None
    draft_num_predict: Any = None
    numa: Any = None
    low_vram: Any = None
    f16_kv: Any = None
    logits_all: Any = None
    vocab_only: Any = None
    use_mlock: Any = None
    embedding_only: Any = None
    tfs_z: Any = None
    mirostat: Any = None
    mirostat_tau: Any = None
    mirostat_eta: Any = None
    penalize_newline: Any = None


def type_word(option: str) -> str:
    """Return Ollama's word for the type of an option."""
    match option:
        case "stop":
            return "array"
        case "use_mmap":
            return "boolean"
        case _:
            return "integer" if option in INTEGERS else "float32"


def sampling_of(options: OptionsBody | None) -> Sampling:
    """Return how tokens are drawn. `num_predict` of -1 or -2 means until the window is full."""
    if options is None:
        return Sampling()
    if options.stop and "" in options.stop:
        raise InvalidField(f"options.stop[{options.stop.index('')}]", 'option "stop" must not hold an empty string')
    if len(options.stop or ()) > MAX_STOPS:
        raise InvalidField("options.stop", f'option "stop" must not hold more than {MAX_STOPS} strings')
    for name, (low, high) in _RANGES.items():
        value = getattr(options, name)
        if value is not None and not low <= value <= high:
            raise InvalidField(f"options.{name}", f'option "{name}" must be from {low} to {high}')
    return Sampling(
        temperature=options.temperature,
        top_p=options.top_p,
        top_k=_whole("top_k", options.top_k),
        min_p=options.min_p,
        typical_p=options.typical_p,
        repeat_penalty=options.repeat_penalty,
        repeat_last_n=_whole("repeat_last_n", options.repeat_last_n),
        presence_penalty=options.presence_penalty,
        frequency_penalty=options.frequency_penalty,
        seed=_whole("seed", options.seed, largest=_LARGEST_SEED),
        max_tokens=_whole("num_predict", options.num_predict),
        stop=tuple(options.stop) if options.stop is not None else None,
    )


def load_options_of(options: OptionsBody | None) -> LoadOptions:
    """Return how the model is loaded. A size of 0 leaves the choice to the server, as in Ollama."""
    if options is None:
        return LoadOptions()
    return LoadOptions(
        window=_size("num_ctx", options.num_ctx),
        batch=_size("num_batch", options.num_batch),
        threads=_size("num_thread", options.num_thread),
        gpu_layers=_whole("num_gpu", options.num_gpu),
        main_gpu=_size("main_gpu", options.main_gpu, smallest=0),
        use_mmap=options.use_mmap,
    )


def _whole(name: str, value: Number | None, *, largest: int = _LARGEST) -> int | None:
    if value is None:
        return None
    number = int(value)
    if not -largest <= number <= largest:
        raise InvalidField(f"options.{name}", f'option "{name}" is too large')
    return number


def _size(name: str, value: Number | None, *, smallest: int = 1) -> int | None:
    number = _whole(name, value, largest=_MOST.get(name, _LARGEST))
    if number is None or number >= smallest:
        return number
    if number < 0:
        raise InvalidField(f"options.{name}", f'option "{name}" must not be negative')
    return None
