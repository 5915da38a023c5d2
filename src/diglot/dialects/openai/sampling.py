"""What chat and completions ask for in the same words: the model, how tokens are drawn, how it streams.

Beside OpenAI's fields stand those that clients of local servers send (`top_k`, `min_p`, `num_ctx`, `options`,
`keep_alive` and their like); where both are given, the field of the body wins over the one in `options`.
Neighbours: `chat`, `completions`, `embeddings`.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from diglot.core.durations import InvalidDuration, seconds_of
from diglot.core.errors import InvalidField
from diglot.core.request import LoadOptions, Residence, Sampling

MAX_CHOICES: Final = 128
MAX_STOPS: Final = 64
MAX_BIASES: Final = 1024

Temperature = Annotated[float, msgspec.Meta(ge=0, le=2)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Penalty = Annotated[float, msgspec.Meta(ge=-2, le=2)]
Factor = Annotated[float, msgspec.Meta(gt=0, le=100)]
Bounded = Annotated[float, msgspec.Meta(ge=-100, le=100)]
Whole = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
Choices = Annotated[int, msgspec.Meta(ge=1, le=MAX_CHOICES)]
Stops = str | Annotated[list[str], msgspec.Meta(max_length=MAX_STOPS)]


class StreamOptionsBody(msgspec.Struct):
    """How a stream is sent."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class OptionsBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Ollama's options, which clients of local servers send along. One that is not here is refused by name."""

    num_ctx: Count | None = None
    num_predict: Whole | None = None
    num_batch: Annotated[int, msgspec.Meta(ge=1, le=2**16)] | None = None
    num_thread: Annotated[int, msgspec.Meta(ge=1, le=1024)] | None = None
    num_gpu: Whole | None = None
    main_gpu: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = None
    use_mmap: bool | None = None
    seed: Long | None = None
    stop: Stops | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    top_k: Whole | None = None
    top_p: Share | None = None
    min_p: Share | None = None
    typical_p: Share | None = None
    repeat_last_n: Whole | None = None
    repeat_penalty: Factor | None = None
    presence_penalty: Bounded | None = None
    frequency_penalty: Bounded | None = None


class ResidenceBody(msgspec.Struct, kw_only=True):
    """Which model, and how long it stays."""

    model: str | None = None
    keep_alive: float | str | None = None
    user: str | None = None


class SamplingBody(ResidenceBody, kw_only=True):
    """The fields that chat and completions share."""

    stream: bool | None = None
    stream_options: StreamOptionsBody | None = None
    n: Choices | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    seed: Long | None = None
    max_tokens: Whole | None = None
    stop: Stops | None = None
    logit_bias: dict[str, Annotated[float, msgspec.Meta(ge=-100, le=100)]] | None = None
    top_k: Whole | None = None
    min_p: Share | None = None
    typical_p: Share | None = None
    repeat_penalty: Factor | None = None
    repetition_penalty: Factor | None = None
    repeat_last_n: Whole | None = None
    num_ctx: Count | None = None
    options: OptionsBody | None = None


def sampling_of(body: SamplingBody, max_tokens: int | None) -> Sampling:
    """Return how tokens are drawn. `max_tokens` is what the operation makes of its limits."""
    chosen = Sampling(
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        min_p=body.min_p,
        typical_p=body.typical_p,
        repeat_penalty=body.repetition_penalty if body.repeat_penalty is None else body.repeat_penalty,
        repeat_last_n=body.repeat_last_n,
        presence_penalty=body.presence_penalty,
        frequency_penalty=body.frequency_penalty,
        seed=body.seed,
        max_tokens=max_tokens,
        stop=_stops(body.stop),
        logit_bias=_biases(body.logit_bias),
    )
    return chosen.over(_sampling(body.options)) if body.options else chosen


def residence_of(body: ResidenceBody, *, window: int | None = None, options: OptionsBody | None = None) -> Residence:
    """Return which model is meant and how it is loaded; an empty name is no name. Raises InvalidField."""
    load = LoadOptions(window=window)
    keep_alive = None
    if body.keep_alive is not None:
        try:
            keep_alive = seconds_of(body.keep_alive)
        except InvalidDuration as error:
            raise InvalidField("keep_alive", str(error)) from None
    return Residence(
        model=body.model or None,
        load=load.over(_load(options)) if options else load,
        keep_alive=keep_alive,
    )


def includes_usage(body: SamplingBody) -> bool:
    """Return whether a stream ends with the usage."""
    return bool(body.stream_options and body.stream_options.include_usage)


def _stops(stop: Stops | None) -> tuple[str, ...] | None:
    """Return the texts that end an answer; an empty one ends nothing."""
    if stop is None:
        return None
    return tuple(filter(None, [stop] if isinstance(stop, str) else stop))


def _biases(biases: dict[str, float] | None) -> dict[int, float] | None:
    if biases is None:
        return None
    if len(biases) > MAX_BIASES:
        raise InvalidField("logit_bias", f"may name {MAX_BIASES} tokens, not {len(biases)}")
    for token in biases:
        if not (token.isascii() and token.isdecimal() and len(token) < 10):  # noqa: PLR2004  A token id has 31 bits.
            raise InvalidField(f"logit_bias.{token[:80]}", "must be the id of a token")
    return {int(token): bias for token, bias in biases.items()}


def _sampling(options: OptionsBody) -> Sampling:
    return Sampling(
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
        stop=_stops(options.stop),
    )


def _load(options: OptionsBody) -> LoadOptions:
    return LoadOptions(
        window=options.num_ctx,
        batch=options.num_batch,
        threads=options.num_thread,
        gpu_layers=options.num_gpu,
        main_gpu=options.main_gpu,
        use_mmap=options.use_mmap,
    )
