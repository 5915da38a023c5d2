"""What the converter writes, and what it refuses because the engine would answer differently."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from diglot.store.convert import CannotConvert, convert_apart
from diglot.store.convert.writer import convert
from diglot.store.gguf import Header, read_header
from tests.store.encoders import BERT, GOLDEN, RERANKER, ROBERTA, lay_encoder, write_json


@pytest.fixture
def roberta(tmp_path: Path) -> Path:
    return lay_encoder(tmp_path / "roberta", ROBERTA, tokenizer=GOLDEN / "unigram.json")


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return lay_encoder(tmp_path / "bert", BERT, tokenizer=GOLDEN / "uncased.json")


def converted(folder: Path) -> Header:
    convert(folder, folder / "model.gguf")
    return read_header(folder / "model.gguf", longest=1000)


def change(path: Path, how: Callable[[Any], object]) -> None:
    """Change a JSON file in place."""
    content = json.loads(path.read_bytes())
    how(content)
    write_json(path, content)


def test_positions_that_no_token_uses_are_cut_off(roberta: Path) -> None:
    header = converted(roberta)
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    assert shapes["position_embd.weight"] == (64, 512)
    assert header.fields["bert.context_length"] == 512


def test_norms_and_what_is_added_stay_exact(bert: Path) -> None:
    types = {tensor.name: tensor.type for tensor in converted(bert).tensors}
    assert {name for name, kind in types.items() if kind == "F16"} == {
        "token_embd.weight",
        *(f"blk.0.{part}.weight" for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down")),
    }
    assert set(types.values()) == {"F16", "F32"}
    assert not any("pooler" in name for name in types)


def test_words_get_a_phantom_space_and_parts_lose_their_mark(bert: Path) -> None:
    fields = converted(bert).fields
    vocabulary = json.loads((GOLDEN / "uncased.json").read_bytes())["model"]["vocab"]
    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    assert tokens[vocabulary["the"]] == "\u2581the"
    assert tokens[vocabulary["##er"]] == "er"
    assert (tokens[vocabulary["[CLS]"]], kinds[vocabulary["[CLS]"]]) == ("[CLS]", 3)
    assert kinds[vocabulary["the"]] == 1
    assert fields["tokenizer.ggml.bos_token_id"] == vocabulary["[CLS]"]
    assert fields["tokenizer.ggml.seperator_token_id"] == vocabulary["[SEP]"]


def test_pieces_keep_their_numbers_and_scores(roberta: Path) -> None:
    fields = converted(roberta).fields
    pieces = json.loads((GOLDEN / "unigram.json").read_bytes())["model"]["vocab"]
    assert list(fields["tokenizer.ggml.tokens"][: len(pieces)]) == [text for text, _ in pieces]
    np.testing.assert_allclose(
        fields["tokenizer.ggml.scores"][: len(pieces)], [score for _, score in pieces], rtol=1e-6
    )
    assert fields["tokenizer.ggml.tokens"][-1] == "<mask>"
    assert fields["tokenizer.ggml.token_type"][:4] == (3, 3, 3, 2)


def test_an_embedding_with_more_rows_than_tokens_is_filled_up(roberta: Path) -> None:
    change(roberta / "config.json", lambda config: config.update(vocab_size=430))
    tensors = load_file(roberta / "model.safetensors")
    name = "embeddings.word_embeddings.weight"
    save_file({**tensors, name: np.resize(tensors[name], (430, 64))}, roberta / "model.safetensors")
    fields = converted(roberta).fields
    assert fields["tokenizer.ggml.tokens"][-1] == "[PAD429]"
    assert fields["tokenizer.ggml.token_type"][-1] == 5


def test_weights_in_several_files_are_put_together(bert: Path) -> None:
    whole = converted(bert).tensors
    tensors = sorted(load_file(bert / "model.safetensors").items())
    save_file(dict(tensors[:10]), bert / "a.safetensors")
    save_file(dict(tensors[10:]), bert / "b.safetensors")
    (bert / "model.safetensors").unlink()
    files = {name: "a.safetensors" if at < 10 else "b.safetensors" for at, (name, _) in enumerate(tensors)}
    write_json(bert / "model.safetensors.index.json", {"weight_map": files})
    assert converted(bert).tensors == whole


def test_brain_floats_are_read_as_what_they_are(bert: Path) -> None:
    """Written by hand, since numpy has no such type: every 32-bit float is cut to its upper half."""
    convert(bert, bert / "before.gguf", element="f32")
    tensors = {
        name: (t.view(np.uint32) & 0xFFFF0000).view(np.float32)
        for name, t in load_file(bert / "model.safetensors").items()
    }
    save_file(tensors, bert / "model.safetensors")
    convert(bert, bert / "expected.gguf", element="f32")
    data, entries = b"", {}
    for name, tensor in tensors.items():
        half = (tensor.view(np.uint32) >> 16).astype("<u2").tobytes()
        entries[name] = {"dtype": "BF16", "shape": tensor.shape, "data_offsets": [len(data), len(data) + len(half)]}
        data += half
    head = json.dumps(entries).encode()
    (bert / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + data)
    convert(bert, bert / "model.gguf", element="f32")
    assert (bert / "model.gguf").read_bytes() == (bert / "expected.gguf").read_bytes()
    assert (bert / "model.gguf").read_bytes() != (bert / "before.gguf").read_bytes()


@pytest.mark.parametrize(
    ("modes", "number"),
    [
        ({"pooling_mode_mean_tokens": True}, 1),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, 2),
        ({"pooling_mode_lasttoken": True}, 3),
        ({"pooling_mode": "cls"}, 2),
    ],
)
def test_pooling_is_what_its_module_says(bert: Path, modes: Any, number: int) -> None:
    write_json(bert / "1_Pooling" / "config.json", {"word_embedding_dimension": 64, **modes})
    assert converted(bert).fields["bert.pooling_type"] == number


def test_pooling_is_the_mean_where_nothing_is_said(bert: Path) -> None:
    (bert / "modules.json").unlink()
    (bert / "1_Pooling" / "config.json").unlink()
    assert converted(bert).fields["bert.pooling_type"] == 1


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"model_type": "gpt2"}, "model type 'gpt2'"),
        ({"architectures": ["BertForSequenceClassification"]}, "no plain encoder"),
        ({"is_decoder": True}, "no plain encoder"),
        ({"hidden_act": "relu"}, "hidden_act 'relu'"),
        ({"position_embedding_type": "relative_key"}, "relative_key"),
        ({"num_attention_heads": 7}, "7 heads"),
        ({"hidden_size": "wide"}, "config.json"),
        ({"vocab_size": 3}, "the embedding 3 rows"),
        ({"intermediate_size": 100}, "has the shape"),
        ({"num_hidden_layers": 3}, "is missing"),
        ({"max_position_embeddings": 32}, "has the shape"),
    ],
)
def test_settings_that_the_engine_would_not_follow_are_refused(bert: Path, setting: Any, reason: str) -> None:
    change(bert / "config.json", lambda config: config.update(setting))
    with pytest.raises(CannotConvert, match=reason):
        convert(bert, bert / "model.gguf")
    assert not (bert / "model.gguf").exists()


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"id2label": {"0": "no", "1": "yes"}}, "only a head with one output ranks"),
        ({"type_vocab_size": 2}, "tells two texts apart by their types"),
        ({"architectures": ["XLMRobertaForTokenClassification"]}, "no plain encoder"),
    ],
)
def test_a_head_that_the_engine_would_not_follow_is_refused(tmp_path: Path, setting: Any, reason: str) -> None:
    folder = lay_encoder(tmp_path / "ranker", {**RERANKER, **setting}, tokenizer=GOLDEN / "unigram.json")
    with pytest.raises(CannotConvert, match=reason):
        convert(folder, folder / "model.gguf")


def test_a_head_that_ranks_is_kept(tmp_path: Path) -> None:
    header = converted(lay_encoder(tmp_path / "ranker", RERANKER, tokenizer=GOLDEN / "unigram.json"))
    shapes = {tensor.name: tensor.shape for tensor in header.tensors if tensor.name.startswith("cls")}
    assert shapes == {
        "cls.weight": (64, 64),
        "cls.bias": (64,),
        "cls.output.weight": (64, 1),
        "cls.output.bias": (1,),
    }
    assert header.fields["bert.pooling_type"] == 4
    assert header.fields["tokenizer.ggml.add_sep_token"] is True


@pytest.mark.parametrize(
    ("modes", "reason"),
    [
        ({"pooling_mode_max_tokens": True}, "max_tokens"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, "cannot pool by"),
        ({}, "nothing"),
    ],
)
def test_pooling_that_the_engine_lacks_is_refused(bert: Path, modes: Any, reason: str) -> None:
    write_json(bert / "1_Pooling" / "config.json", modes)
    with pytest.raises(CannotConvert, match=reason):
        convert(bert, bert / "model.gguf")


def test_a_layer_behind_the_pooling_is_refused(bert: Path) -> None:
    change(
        bert / "modules.json",
        lambda modules: modules.append({"type": "sentence_transformers.models.Dense", "path": "3_Dense"}),
    )
    with pytest.raises(CannotConvert, match="Dense"):
        convert(bert, bert / "model.gguf")


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (lambda t: t["model"].update(type="BPE", vocab={}), "type 'BPE'"),
        (lambda t: t["model"].update(byte_fallback=True), "falls back to bytes"),
        (lambda t: t.update(normalizer={"type": "Lowercase"}), "'Lowercase'"),
        (lambda t: t["normalizer"].update(precompiled_charsmap="***"), "charsmap is damaged"),
        (lambda t: t["pre_tokenizer"]["pretokenizers"][1].update(prepend_scheme="never"), "'Metaspace'"),
        (lambda t: t["added_tokens"][4].update(id=1 << 60), "makes no sense"),
        (lambda t: t["added_tokens"][4].update(id=-1), "makes no sense"),
        (lambda t: t.pop("model"), "tokenizer.json"),
    ],
)
def test_tokenizers_that_the_engine_would_not_follow_are_refused(roberta: Path, how: Any, reason: str) -> None:
    change(roberta / "tokenizer.json", how)
    with pytest.raises(CannotConvert, match=reason):
        convert(roberta, roberta / "model.gguf")


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (lambda t: t["normalizer"].update(type="NFC"), "normalizer 'NFC'"),
        (lambda t: t["model"].update(continuing_subword_prefix="@@"), "do not begin with ##"),
        (lambda t: (t["model"]["vocab"].pop("[SEP]"), t["added_tokens"].pop(3)), r"\[SEP\] is missing"),
    ],
)
def test_word_pieces_that_the_engine_would_not_follow_are_refused(bert: Path, how: Any, reason: str) -> None:
    change(bert / "tokenizer.json", how)
    with pytest.raises(CannotConvert, match=reason):
        convert(bert, bert / "model.gguf")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"[1]"])
def test_a_missing_or_damaged_file_is_named(bert: Path, name: str, content: bytes | None) -> None:
    (bert / name).unlink()
    if content is not None:
        (bert / name).write_bytes(content)
    with pytest.raises(CannotConvert, match=name):
        convert(bert, bert / "model.gguf")


def test_a_tensor_of_another_model_is_refused(bert: Path) -> None:
    tensors = load_file(bert / "model.safetensors")
    save_file({**tensors, "encoder.layer.0.adapter.weight": tensors["pooler.dense.bias"]}, bert / "model.safetensors")
    with pytest.raises(CannotConvert, match=r"encoder\.layer\.0\.adapter\.weight"):
        convert(bert, bert / "model.gguf")


def test_the_process_apart_converts_and_tells_why_not(bert: Path) -> None:
    convert_apart(bert, bert / "apart.gguf", element="f32")
    assert {tensor.type for tensor in read_header(bert / "apart.gguf").tensors} == {"F32"}
    (bert / "config.json").unlink()
    with pytest.raises(CannotConvert, match=r"^config\.json is missing$"):
        convert_apart(bert, bert / "apart.gguf")


def test_the_process_apart_takes_no_code_from_the_folder_where_it_was_started(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit('a stranger')")
    monkeypatch.chdir(tmp_path)
    convert_apart(bert, bert / "apart.gguf", element="f32")
    assert read_header(bert / "apart.gguf").tensors
