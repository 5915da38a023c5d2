"""The writer: an encoder's folder in, a GGUF file out. The only module of the house that needs numpy.

Matrices are stored as the element that was asked for; norms, biases, positions and token types stay in
32-bit floats, because the engine adds them without a conversion. Neighbours: `encoder` and `vocabulary`
say what is written, `__main__` calls this in a process of its own.

Invariant: the file has every tensor the engine asks for, in the shape it asks for, or there is no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import gguf
import msgspec
import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from diglot.store.convert import CannotConvert, Element
from diglot.store.convert.encoder import Encoder, expected_tensors, read_encoder, read_json, tensor_name
from diglot.store.convert.vocabulary import Vocabulary, read_vocabulary

Matrix = npt.NDArray[np.float32]

_MATRIX_DIMENSIONS: Final = 2
_PLAIN: Final = ("position_embd.weight", "token_types.weight")
_ELEMENTS: Final = {
    "f32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    "f16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}


def convert(source: Path, target: Path, *, element: Element = "f16") -> None:
    """Convert the model in the folder `source` to the file `target`. Raises CannotConvert."""
    encoder = read_encoder(source)
    vocabulary = read_vocabulary(source).padded(encoder.vocab_size)
    tensors = dict(_read_tensors(source, encoder))
    if missing := expected_tensors(encoder) - tensors.keys():
        raise CannotConvert(f"the tensor {min(missing)!r} is missing, and {len(missing) - 1} more")
    writer = gguf.GGUFWriter(target, arch="bert")
    try:
        _describe(writer, encoder, element=element)
        _add_vocabulary(writer, vocabulary)
        if encoder.ranks:
            writer.add_bool("tokenizer.ggml.add_sep_token", True)  # Two marks between the texts, as RoBERTa has learnt.
        for name in sorted(tensors, key=_place):
            _add_tensor(writer, name, tensors.pop(name), element=element)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def _describe(writer: gguf.GGUFWriter, encoder: Encoder, *, element: Element) -> None:
    writer.add_type("model")
    if encoder.name:
        writer.add_name(encoder.name.rpartition("/")[2])
    writer.add_file_type(_ELEMENTS[element][1])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_vocab_size(encoder.vocab_size)
    writer.add_context_length(encoder.context_length)
    writer.add_embedding_length(encoder.hidden_size)
    writer.add_block_count(encoder.num_hidden_layers)
    writer.add_feed_forward_length(encoder.intermediate_size)
    writer.add_head_count(encoder.num_attention_heads)
    writer.add_layer_norm_eps(encoder.layer_norm_eps)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType(encoder.pooling))
    writer.add_token_type_count(encoder.type_vocab_size)


def _add_vocabulary(writer: gguf.GGUFWriter, vocabulary: Vocabulary) -> None:
    writer.add_tokenizer_model(vocabulary.model)
    writer.add_tokenizer_pre("default")
    writer.add_token_list([token.text for token in vocabulary.tokens])
    writer.add_token_types([int(token.kind) for token in vocabulary.tokens])
    for role, number in vocabulary.special.items():
        writer.add_uint32(_ROLES[role], number)
    if vocabulary.model == "t5":
        writer.add_token_scores([token.score for token in vocabulary.tokens])
        writer.add_bool("tokenizer.ggml.add_space_prefix", True)
        writer.add_bool("tokenizer.ggml.add_bos_token", True)
        writer.add_bool("tokenizer.ggml.add_eos_token", True)
        writer.add_bool("tokenizer.ggml.remove_extra_whitespaces", vocabulary.collapse_spaces)
        if vocabulary.charsmap:
            writer.add_precompiled_charsmap(vocabulary.charsmap)
    else:
        writer.add_bool("tokenizer.ggml.normalizer.lowercase", vocabulary.lowercase)
        writer.add_bool("tokenizer.ggml.normalizer.strip_accents", vocabulary.strip_accents)


_ROLES: Final = {
    "bos": "tokenizer.ggml.bos_token_id",
    "eos": "tokenizer.ggml.eos_token_id",
    "unk": "tokenizer.ggml.unknown_token_id",
    "sep": "tokenizer.ggml.seperator_token_id",  # Spelled so in the format.
    "pad": "tokenizer.ggml.padding_token_id",
    "cls": "tokenizer.ggml.cls_token_id",
    "mask": "tokenizer.ggml.mask_token_id",
}


def _read_tensors(source: Path, encoder: Encoder) -> Iterator[tuple[str, Matrix]]:
    """Yield each tensor that is needed, by its new name, in 32-bit floats and in the shape the engine wants."""
    for path in _files(source):
        try:
            with safe_open(path, framework="numpy") as opened:
                for old in opened.keys():  # noqa: SIM118 (this is no mapping)
                    if name := tensor_name(old, ranks=encoder.ranks):
                        short = opened.get_slice(old).get_dtype() == "BF16"
                        tensor = _read_short(path, old) if short else opened.get_tensor(old)
                        yield name, _shaped(name, tensor, encoder)
        except FileNotFoundError:
            raise CannotConvert(f"{path.name} is missing") from None
        except (SafetensorError, TypeError) as error:
            raise CannotConvert(f"{path.name}: {error}") from None


def _read_short(path: Path, name: str) -> Matrix:
    """Read a tensor of 16-bit brain floats, which numpy does not know: they are the upper half of 32-bit ones.

    The file's header is sound: safetensors has checked it.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entry = msgspec.json.decode(file.read(length))[name]
    begin, end = entry["data_offsets"]
    raw = np.fromfile(path, dtype="<u2", offset=8 + length + begin, count=(end - begin) // 2)
    return (raw.astype(np.uint32) << 16).view(np.float32).reshape(entry["shape"])


def _files(source: Path) -> list[Path]:
    index = source / "model.safetensors.index.json"
    if not index.exists():
        return [source / "model.safetensors"]
    listed = read_json(index, dict[str, Any]).get("weight_map", {})
    return [source / Path(name).name for name in sorted(set(listed.values()))]


def _shaped(name: str, tensor: npt.NDArray[Any], encoder: Encoder) -> Matrix:
    width, wide = encoder.hidden_size, encoder.intermediate_size
    shapes = {
        "token_embd.weight": (encoder.vocab_size, width),
        "position_embd.weight": (encoder.max_position_embeddings, width),
        "token_types.weight": (encoder.type_vocab_size, width),
        "ffn_up.weight": (wide, width),
        "ffn_up.bias": (wide,),
        "ffn_down.weight": (width, wide),
        "cls.weight": (width, width),
        "cls.output.weight": (1, width),
        "cls.output.bias": (1,),
    }
    square = name.startswith("blk.") and name.endswith(".weight") and "norm" not in name
    short = name.split(".", 2)[2] if name.startswith("blk.") else name
    shape = shapes.get(short, (width, width) if square else (width,))
    if tensor.shape != shape:
        raise CannotConvert(f"the tensor {name!r} has the shape {tensor.shape} instead of {shape}")
    if name == "position_embd.weight":
        tensor = tensor[encoder.skipped_positions :]
    return np.ascontiguousarray(tensor, dtype=np.float32)


def _add_tensor(writer: gguf.GGUFWriter, name: str, tensor: Matrix, *, element: Element) -> None:
    if tensor.ndim < _MATRIX_DIMENSIONS or name in _PLAIN:
        writer.add_tensor(name, tensor)
        return
    kind = _ELEMENTS[element][0]
    if kind is gguf.GGMLQuantizationType.Q8_0 and tensor.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0]:
        kind = gguf.GGMLQuantizationType.F16  # Rows that blocks do not divide.
    writer.add_tensor(name, gguf.quantize(tensor, kind), raw_dtype=kind)


def _place(name: str) -> tuple[int, str]:
    """Sort tensors as the engine reads them: embeddings first, then layer by layer."""
    return (int(name.split(".")[1]), name) if name.startswith("blk.") else (-1, name)
