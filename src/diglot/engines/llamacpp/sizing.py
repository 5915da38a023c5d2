"""Sizing: how large the window and the shared cache of a model become, and what that costs.

Pure arithmetic over what a model's header says. Neighbours: `loader` asks, `ledger` keeps to the result.
"""

from __future__ import annotations

import msgspec

from diglot.core.model import Model
from diglot.core.request import LoadOptions

_UNKNOWN_WINDOW = 4096
_ENCODER_BATCH = 8192
_BATCH = 128
_SAVED = 1024**3  # llama.cpp's own default is eight times that, for each model.
_OVERHEAD = 192 * 1024 * 1024  # Compute buffers and the library itself, measured at 75 to 170 MB.


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator allows: `slots` answers at a time, `cache` bytes for the shared cache, `cores` to compute on."""

    slots: int = 4
    cache: int = 2 * 1024**3
    cores: int = 1


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one window, of the pool that all slots share, and of one batch.

    `saved` is how many bytes of prompts are kept outside the pool, `memory` what everything takes at most, in bytes.
    """

    window: int
    pool: int
    batch: int
    slots: int
    saved: int
    memory: int

    @property
    def fresh(self) -> int:
        """Bytes that are taken once the model is loaded, before prompts are kept."""
        return self.memory - self.saved


def sizes_of(model: Model, options: LoadOptions, limits: Limits) -> Sizes:
    """Choose the sizes.

    The window is what was asked for, at most what the model was trained for; unasked, as much of that as the
    cache allowance holds. The pool is a full window for each slot if the allowance holds it, and never less
    than one window; as much again, up to a limit, keeps prompts that had to leave it. A batch is 128 tokens: on a CPU it reads a prompt as fast as 512, lets a client who
    leaves go four times sooner and keeps the others' answers flowing (measured).
    """
    trained = model.anatomy.context_length or _UNKNOWN_WINDOW
    files = model.size + _OVERHEAD
    if not model.capabilities.completion:
        window = min(trained, options.window or trained, _ENCODER_BATCH)
        return Sizes(window=window, pool=window * limits.slots, batch=window, slots=limits.slots, saved=0, memory=files)
    token = model.anatomy.kv_bytes_per_token
    allowed = limits.cache // token if token else trained * limits.slots
    window = min(trained, options.window or max(allowed, min(trained, _UNKNOWN_WINDOW)))
    pool = min(limits.slots * window, max(window, allowed))
    pool += -pool % 256  # llama.cpp rounds up to this itself.
    saved = min(pool * token, _SAVED)
    return Sizes(
        window=window,
        pool=pool,
        batch=options.batch or _BATCH,
        slots=limits.slots,
        saved=saved,
        memory=files + pool * token + saved,
    )
