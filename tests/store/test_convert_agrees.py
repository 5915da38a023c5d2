"""Converted encoders answer in the real engine as the originals do in another implementation."""

from pathlib import Path

import pytest

from diglot.store.convert import Element
from diglot.store.convert.writer import convert
from diglot.store.facts import read_facts
from diglot.store.local import LocalStore
from diglot.store.starter import STARTERS
from tests.store.encoders import BERT, GOLDEN, ROBERTA, lay_encoder
from tests.store.engine import cosine, embed, golden


def agreement(weights: Path, name: str, pooling: str = "mean") -> float:
    """Return the least cosine over all golden texts, after the token numbers were found equal."""
    cases = golden(name)
    answers = embed(weights, cases)
    assert [answer.ids for answer in answers] == [case.ids for case in cases]
    return min(cosine(answer.vector, getattr(case, pooling)) for case, answer in zip(cases, answers, strict=True))


@pytest.mark.parametrize(("pooling", "prefix"), [("mean", ""), ("cls", "roberta.")])
def test_xlm_roberta(tmp_path: Path, pooling: str, prefix: str) -> None:
    mode = {"mean": "mean_tokens", "cls": "cls_token"}[pooling]
    folder = lay_encoder(tmp_path / "source", ROBERTA, tokenizer=GOLDEN / "unigram.json", pooling=mode, prefix=prefix)
    convert(folder, tmp_path / "model.gguf")
    assert read_facts(tmp_path / "model.gguf").anatomy.context_length == 512
    assert agreement(tmp_path / "model.gguf", "roberta", pooling) >= 0.9999


@pytest.mark.parametrize(("element", "least"), [("f32", 0.999999), ("q8_0", 0.999)])
def test_other_element_types(tmp_path: Path, element: Element, least: float) -> None:
    folder = lay_encoder(tmp_path / "source", ROBERTA, tokenizer=GOLDEN / "unigram.json")
    convert(folder, tmp_path / "model.gguf", element=element)
    assert read_facts(tmp_path / "model.gguf").details.quantization_level == element.upper()
    assert agreement(tmp_path / "model.gguf", "roberta") >= least


@pytest.mark.parametrize("case", ["cased", "uncased"])
def test_bert_with_and_without_the_case_of_letters(tmp_path: Path, case: str) -> None:
    folder = lay_encoder(tmp_path / "source", BERT, tokenizer=GOLDEN / f"{case}.json", prefix="bert.")
    convert(folder, tmp_path / "model.gguf")
    assert agreement(tmp_path / "model.gguf", case) >= 0.9999


def test_the_embedding_starter(starter_models: LocalStore) -> None:
    assert agreement(starter_models.resolve(STARTERS[1].ref).weights, "minilm") >= 0.9999
