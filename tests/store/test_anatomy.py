"""What headers mean, by their fields and never by a model's name."""

from pathlib import Path
from typing import Any

import pytest

from diglot.core.model import Pooling
from diglot.store.anatomy import Facts, counted, facts_of
from diglot.store.gguf import read_header
from tests.store.gguf_bytes import BERT, LLAMA, Tensor, gguf


@pytest.fixture
def facts(tmp_path: Path) -> Any:
    def read(fields: Any, tensors: tuple[Tensor, ...] = (Tensor(),)) -> Facts:
        file = tmp_path / "model.gguf"
        file.write_bytes(gguf(fields, tensors))
        return facts_of(read_header(file))

    return read


def test_a_language_model_chats(facts: Any) -> None:
    found = facts(LLAMA)
    assert found.purpose == "model"
    assert found.capabilities.names == ("completion", "tools")
    assert not found.capabilities.template_tools
    assert found.anatomy.architecture == "llama"
    assert found.anatomy.context_length == 2048
    assert found.anatomy.vocabulary == 300
    assert found.anatomy.template == len(LLAMA["tokenizer.chat_template"])
    assert found.details.family == "llama"
    assert found.details.families == ("llama",)
    assert found.details.quantization_level == "F16"
    assert found.details.parameter_size == "64"


def test_an_encoder_embeds_and_has_no_cache(facts: Any) -> None:
    found = facts(BERT)
    assert found.capabilities.names == ("embedding",)
    assert found.anatomy.pooling == "mean"
    assert found.anatomy.kv_bytes_per_token == 0


@pytest.mark.parametrize(("number", "pooling"), [(0, "none"), (1, "mean"), (2, "cls"), (3, "last")])
def test_pooling_is_what_makes_a_model_embed(facts: Any, number: int, pooling: Pooling) -> None:
    found = facts({**LLAMA, "llama.pooling_type": number})
    assert found.anatomy.pooling == pooling
    assert found.capabilities.names == ("embedding",)


def test_a_reranker_ranks_and_does_not_embed(facts: Any) -> None:
    assert facts({**BERT, "bert.pooling_type": 4}).capabilities.names == ("rerank",)


@pytest.mark.parametrize(
    ("template", "tools", "thinks"),
    [
        ("{% if tools %}{{ tools | tojson }}{% endif %}", True, False),
        ("{% for call in message.tool_calls %}{% endfor %}", True, False),
        ("{{ '<tool_call>' }}", True, False),
        ("{{ 'a box of toolsets and stools' }}", False, False),
        ("{{ '<think>\n' }}", False, True),
        ("{{ message.reasoning_content }}", False, True),
        ("{% if enable_thinking %}{% endif %}{% if tools %}{% endif %}", True, True),
        ("{{ 'I think' }}", False, False),
    ],
)
def test_the_template_tells_of_tools_and_thinking(facts: Any, template: str, *, tools: bool, thinks: bool) -> None:
    able = facts({**LLAMA, "tokenizer.chat_template": template}).capabilities
    assert (able.template_tools, able.template_thinks, able.thinking) == (tools, thinks, thinks)
    assert able.tools


def test_a_model_without_a_template_completes_and_takes_no_tools(facts: Any) -> None:
    fields = {name: value for name, value in LLAMA.items() if name != "tokenizer.chat_template"}
    assert facts(fields).capabilities.names == ("completion",)


def test_infill_tokens_make_a_model_insert(facts: Any) -> None:
    tokens = {f"tokenizer.ggml.fim_{part}_token_id": number for number, part in enumerate(("pre", "suf", "mid"))}
    assert "insert" in facts({**LLAMA, **tokens}).capabilities.names
    assert facts({**LLAMA, **tokens}).anatomy.fill == (0, 1, 2)
    tokens.popitem()
    assert "insert" not in facts({**LLAMA, **tokens}).capabilities.names


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 2 * 2 * (16 + 16) * 2),  # Layers, key heads, widths, bytes.
        ({"llama.attention.key_length": 24, "llama.attention.value_length": 8}, 2 * 2 * (24 + 8) * 2),
        ({"llama.attention.head_count_kv": [0, 3]}, 3 * (16 + 16) * 2),
        ({"llama.attention.head_count_kv": []}, 2 * 4 * (16 + 16) * 2),
        ({"llama.attention.head_count": 0, "llama.attention.head_count_kv": 0}, 0),
        ({"llama.attention.head_count": "many", "llama.attention.head_count_kv": -1}, 0),
    ],
)
def test_the_cache_of_a_token_is_counted_over_heads_and_layers(facts: Any, fields: Any, expected: int) -> None:
    assert facts({**LLAMA, **fields}).anatomy.kv_bytes_per_token == expected


@pytest.mark.parametrize(
    ("fields", "tensors", "purpose"),
    [
        ({"general.architecture": "clip"}, (Tensor(),), "projector"),
        ({**LLAMA, "general.type": "mmproj"}, (Tensor(),), "projector"),
        ({**LLAMA, "general.type": "adapter"}, (Tensor(),), "adapter"),
        ({**LLAMA, "split.count": 3}, (Tensor(),), "shard"),
        ({**LLAMA, "split.count": 1}, (Tensor(),), "model"),
        (LLAMA, (), "vocabulary"),
    ],
)
def test_files_that_are_no_model_by_themselves_are_told_apart(
    facts: Any, fields: Any, tensors: Any, purpose: str
) -> None:
    assert facts(fields, tensors).purpose == purpose


def test_fields_of_a_wrong_type_count_as_absent(facts: Any) -> None:
    found = facts(
        {"general.architecture": 7, "general.file_type": "Q4", "tokenizer.chat_template": 1, "split.count": "x"}
    )
    assert found.anatomy.architecture == ""
    assert found.details.quantization_level == "unknown"
    assert found.purpose == "model"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1K"),
        (38_400, "38K"),
        (22_565_376, "22.57M"),
        (134_515_008, "134.52M"),
        (7_000_000, "7M"),
        (7_615_616_512, "7.6B"),
        (8_000_000_000, "8B"),
    ],
)
def test_counts_are_written_as_in_lists_of_models(number: int, words: str) -> None:
    assert counted(number) == words
