"""Small encoders with random weights, the same at every call, as their makers would lay them in a folder.

The generator is Python's own, whose numbers are the same in every version.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

GOLDEN: Final = Path(__file__).parent / "golden"

ROBERTA: Final[Mapping[str, Any]] = {
    "architectures": ["XLMRobertaModel"],
    "model_type": "xlm-roberta",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": 514,
    "layer_norm_eps": 1e-05,
    "type_vocab_size": 1,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
}
"""The settings of a small XLM-RoBERTa; the vocabulary's size follows from the tokenizer."""

RERANKER: Final[Mapping[str, Any]] = {
    **ROBERTA,
    "architectures": ["XLMRobertaForSequenceClassification"],
    "id2label": {"0": "LABEL_0"},
}
"""The same with a head that makes one score of a query and a document."""

BERT: Final[Mapping[str, Any]] = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 64,
    "layer_norm_eps": 1e-12,
    "type_vocab_size": 2,
    "pad_token_id": 0,
    "hidden_act": "gelu",
}
"""The settings of a small BERT."""

_LAYER: Final = {
    "attention.self.query": ("hidden_size", "hidden_size"),
    "attention.self.key": ("hidden_size", "hidden_size"),
    "attention.self.value": ("hidden_size", "hidden_size"),
    "attention.output.dense": ("hidden_size", "hidden_size"),
    "intermediate.dense": ("intermediate_size", "hidden_size"),
    "output.dense": ("hidden_size", "intermediate_size"),
}


def lay_encoder(
    folder: Path, config: Mapping[str, Any], *, tokenizer: Path, pooling: str = "mean_tokens", prefix: str = ""
) -> Path:
    """Write an encoder with random weights into `folder`, with the tokenizer of a file, and return the folder."""
    rows = 1 + max(token["id"] for token in json.loads(tokenizer.read_bytes())["added_tokens"])
    vocabulary = json.loads(tokenizer.read_bytes())["model"]["vocab"]
    config = {"vocab_size": max(rows, len(vocabulary)), **config}
    (folder / "1_Pooling").mkdir(parents=True)
    shutil.copy(tokenizer, folder / "tokenizer.json")
    write_json(folder / "config.json", config)
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 64, f"pooling_mode_{pooling}": True})
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": n, "path": path, "type": f"sentence_transformers.models.{kind}"} for n, (path, kind) in enumerate(kinds)
    ]
    write_json(folder / "modules.json", modules)
    save_file({prefix + name: tensor for name, tensor in tensors_of(config).items()}, folder / "model.safetensors")
    return folder


def tensors_of(config: Mapping[str, Any]) -> dict[str, npt.NDArray[np.float32]]:
    """Return random weights, lively enough that every part of the model shows in its answers."""
    chance = random.Random(20)

    def uniform(*shape: int, around: float = 0.0) -> npt.NDArray[np.float32]:
        values = [around + 0.6 * chance.random() - 0.3 for _ in range(int(np.prod(shape)))]
        return np.array(values, dtype=np.float32).reshape(shape)

    width = config["hidden_size"]
    tensors = {
        "embeddings.word_embeddings.weight": uniform(config["vocab_size"], width),
        "embeddings.position_embeddings.weight": uniform(config["max_position_embeddings"], width),
        "embeddings.token_type_embeddings.weight": uniform(config["type_vocab_size"], width),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(config["num_hidden_layers"]):
        for name, (rows, columns) in _LAYER.items():
            stem = f"encoder.layer.{layer}.{name}"
            tensors[f"{stem}.weight"] = uniform(config[rows], config[columns])
            tensors[f"{stem}.bias"] = uniform(config[rows])
        norms += [f"encoder.layer.{layer}.attention.output.LayerNorm", f"encoder.layer.{layer}.output.LayerNorm"]
    for norm in norms:
        tensors[f"{norm}.weight"] = uniform(width, around=1.0)
        tensors[f"{norm}.bias"] = uniform(width)
    tensors["pooler.dense.weight"] = uniform(width, width)
    tensors["pooler.dense.bias"] = uniform(width)
    if "id2label" in config:
        tensors |= {"classifier.dense.weight": uniform(width, width), "classifier.dense.bias": uniform(width)}
        tensors["classifier.out_proj.weight"] = uniform(len(config["id2label"]), width)
        tensors["classifier.out_proj.bias"] = uniform(len(config["id2label"]))
    return tensors


def write_json(path: Path, content: object) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(content), encoding="utf-8")
