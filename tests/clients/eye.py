"""A tiny eye: a projector for images with weights that are drawn at random, in the form of LLaVA's, which llama.cpp loads.

What a model sees through it means nothing. It shows that a picture goes all the way: it is decoded, cut into patches,
turned into as many vectors as the model's own tokens have, and read as a part of the prompt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from gguf import GGUFWriter

IMAGE: Final = 28
PATCH: Final = 14
TOKENS: Final = (IMAGE // PATCH) ** 2
"""What a picture takes of the window."""
_WIDTH, _INNER, _HEADS, _LAYERS = 32, 64, 2, 2


def draw(path: Path, *, width: int) -> None:
    """Write an eye for a model whose vectors have so many numbers."""
    random = np.random.default_rng(7)
    writer = GGUFWriter(path, "clip")
    writer.add_type("mmproj")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "mlp")
    writer.add_bool("clip.use_gelu", True)
    for name, number in (
        ("image_size", IMAGE),
        ("patch_size", PATCH),
        ("embedding_length", _WIDTH),
        ("feed_forward_length", _INNER),
        ("projection_dim", width),
        ("attention.head_count", _HEADS),
        ("block_count", _LAYERS),
    ):
        writer.add_uint32(f"clip.vision.{name}", number)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    for name in ("image_mean", "image_std"):
        writer.add_array(f"clip.vision.{name}", [0.5, 0.5, 0.5])

    def tensor(name: str, *shape: int) -> None:
        writer.add_tensor(
            name, (random.standard_normal(shape) * (1.0 if name.startswith("mm.") else 0.1)).astype(np.float32)
        )

    def linear(name: str, out: int, of: int) -> None:
        tensor(f"{name}.weight", out, of)
        tensor(f"{name}.bias", out)

    tensor("v.class_embd", _WIDTH)
    tensor("v.patch_embd.weight", _WIDTH, 3, PATCH, PATCH)
    tensor("v.position_embd.weight", TOKENS + 1, _WIDTH)
    for norm in ("v.pre_ln", *(f"v.blk.{layer}.ln{one}" for layer in range(_LAYERS) for one in (1, 2))):
        tensor(f"{norm}.weight", _WIDTH)
        tensor(f"{norm}.bias", _WIDTH)
    for layer in range(_LAYERS):
        for part in ("q", "k", "v", "out"):
            linear(f"v.blk.{layer}.attn_{part}", _WIDTH, _WIDTH)
        linear(f"v.blk.{layer}.ffn_up", _INNER, _WIDTH)
        linear(f"v.blk.{layer}.ffn_down", _WIDTH, _INNER)
    linear("mm.0", _WIDTH, _WIDTH)
    linear("mm.2", width, _WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
