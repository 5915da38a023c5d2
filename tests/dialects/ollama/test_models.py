"""`/api/tags`, `/api/ps`, `/api/show`, and what says that the server is there."""

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from diglot.core.errors import ModelUnnamed
from diglot.core.model import (
    Anatomy,
    Capabilities,
    Defaults,
    Model,
    ModelCard,
    ModelDetails,
    ModelRef,
    TensorInfo,
)
from diglot.core.recipe import Example
from diglot.core.request import ListModels, ListRunning, Ping, ShowModel
from diglot.core.result import Running
from diglot.dialects.operation import TEXT, Wire
from tests.dialects.ollama.asking import NOW, STAMP, answer, operation, parse, refusal

SHOW = "/api/show"
MODEL = Model(
    ref=ModelRef.parse("smollm2:135m"),
    digest="ab" * 32,
    size=98_000_000,
    modified_at=1_796_000_000_123_456_789,
    weights=Path("/models/blobs/sha256-ab"),
    details=ModelDetails(
        family="llama",
        families=("llama",),
        parameter_size="134.52M",
        quantization_level="Q4_1",
        context_length=2048,
        embedding_length=576,
    ),
    capabilities=Capabilities(completion=True, tools=True, rerank=True),
    anatomy=Anatomy(architecture="llama"),
)
OTHER = replace(MODEL, ref=ModelRef.parse("ns/other"), modified_at=MODEL.modified_at + 1)
DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "llama",
    "families": ["llama"],
    "parameter_size": "134.52M",
    "quantization_level": "Q4_1",
    "context_length": 2048,
    "embedding_length": 576,
}


def running(model: Model, expires_at: float) -> Running:
    return Running(model, memory=300, accelerator_memory=100, expires_at=expires_at, window=4096)


# Lists


def test_lists_ask_for_lists() -> None:
    assert operation("/api/tags").parse(Wire()).request == ListModels()
    assert operation("/api/ps").parse(Wire()).request == ListRunning()


def test_models_are_listed_newest_first_with_a_digest_that_can_be_cut() -> None:
    newest, oldest = answer("/api/tags", (MODEL, OTHER))["models"]
    assert newest["name"] == newest["model"] == "ns/other:latest"
    assert oldest == {
        "name": "smollm2:135m",
        "model": "smollm2:135m",
        "modified_at": "2026-11-30T00:53:20.123456789Z",
        "size": 98_000_000,
        "digest": "ab" * 32,
        "details": DETAILS,
        "capabilities": ["completion", "tools"],
    }


@pytest.mark.parametrize("path", ["/api/tags", "/api/ps"])
def test_no_models_are_an_empty_list(path: str) -> None:
    assert answer(path, ()) == {"models": []}


def test_loaded_models_are_listed_with_the_one_that_stays_longest_first() -> None:
    entries = answer("/api/ps", (running(MODEL, NOW), running(OTHER, math.inf)))["models"]
    assert entries[1] == {
        "name": "smollm2:135m",
        "model": "smollm2:135m",
        "size": 300,
        "digest": "ab" * 32,
        "details": DETAILS,
        "expires_at": "2026-11-30T00:53:20.250000Z",
        "size_vram": 100,
        "context_length": 4096,
        "loaded": 1.0,
    }


def test_a_model_on_its_way_is_listed_with_the_share_that_is_loaded() -> None:
    (entry,) = answer("/api/ps", (replace(running(MODEL, NOW), loaded=0.25),))["models"]
    assert entry["loaded"] == 0.25


def test_a_model_that_stays_for_ever_expires_after_more_than_20_years_which_the_cli_calls_forever() -> None:
    (entry,) = answer("/api/ps", (running(OTHER, math.inf),))["models"]
    assert datetime.fromisoformat(entry["expires_at"]) > datetime.now(UTC) + timedelta(days=366 * 21)


@pytest.mark.parametrize("modified_at", [-5, 0, 1 << 80])
def test_a_time_that_cannot_be_is_still_a_time(modified_at: int) -> None:
    (entry,) = answer("/api/tags", (replace(MODEL, modified_at=modified_at),))["models"]
    assert datetime.fromisoformat(entry["modified_at"][:19]).year in {1970, 9999}


# Show

CARD = ModelCard(
    model=replace(
        MODEL,
        projector=Path("/models/blobs/sha256-cd"),
        adapters=(Path("/models/blobs/sha256-ef"),),
        defaults=Defaults(
            parameters={"stop": ["<|im_end|>", "a b "], "temperature": 0.6, "num_ctx": 8192.0, "use_mmap": True},
            system='Say "yes".\nOr "no".',
            messages=(Example("user", "hi"), Example("assistant", " hello")),
            template="{{ .Prompt }}",
        ),
    ),
    info={
        "general.architecture": "llama",
        "general.name": "SmolLM2",
        "general.parameter_count": 134_515_008,
        "llama.context_length": 2048,
        "llama.rope.freq_base": 100000.0,
        "tokenizer.ggml.tokens": [],
        "tokenizer.chat_template": "{% x %}",
    },
    tensors=(TensorInfo("output_norm.weight", "F32", (576,)),),
    projector_info={"general.architecture": "clip"},
    chat_template="{% x %}",
    licences=("Apache", "and more"),
)


def shown(card: ModelCard = CARD, **body: Any) -> Any:
    return answer(SHOW, card, {"model": "smollm2:135m", **body})


def test_a_card_is_shown_with_everything() -> None:
    reply = shown()
    assert reply.pop("modelfile").startswith('# Modelfile generated by "ollama show"\n')
    assert reply == {
        "license": "Apache\nand more",
        "parameters": (
            'stop                           "<|im_end|>"\n'
            'stop                           "a b "\n'
            "temperature                    0.6\n"
            "num_ctx                        8192\n"
            "use_mmap                       true"
        ),
        "template": "{% x %}",
        "system": 'Say "yes".\nOr "no".',
        "details": DETAILS,
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": " hello"}],
        "model_info": {
            "general.architecture": "llama",
            "general.parameter_count": 134_515_008,
            "llama.context_length": 2048,
            "llama.rope.freq_base": 100000.0,
            "tokenizer.ggml.tokens": [],
        },
        "projector_info": {"general.architecture": "clip"},
        "tensors": [{"name": "output_norm.weight", "type": "F32", "shape": [576]}],
        "capabilities": ["completion", "tools"],
        "modified_at": "2026-11-30T00:53:20.123456789Z",
    }


def test_a_card_is_shown_as_a_modelfile() -> None:
    assert shown()["modelfile"] == (
        '# Modelfile generated by "ollama show"\n'
        "# To build a new Modelfile based on this, replace FROM with:\n"
        "# FROM smollm2:135m\n"
        "\n"
        "FROM /models/blobs/sha256-ab\n"
        "ADAPTER /models/blobs/sha256-ef\n"
        "FROM /models/blobs/sha256-cd\n"
        "TEMPLATE {{ .Prompt }}\n"
        'SYSTEM """Say "yes".\nOr "no"."""\n'
        "PARAMETER stop <|im_end|>\n"
        'PARAMETER stop "a b "\n'
        "PARAMETER temperature 0.6\n"
        "PARAMETER num_ctx 8192\n"
        "PARAMETER use_mmap true\n"
        "LICENSE Apache\n"
        "LICENSE and more\n"
        "MESSAGE user hi\n"
        'MESSAGE assistant " hello"\n'
    )


def test_a_bare_card_still_has_its_objects_and_texts() -> None:
    reply = shown(ModelCard(model=MODEL, info={}, tensors=()))
    assert reply["model_info"] == {}
    assert reply["license"] == reply["parameters"] == reply["template"] == reply["system"] == ""
    assert "messages" not in reply
    assert "projector_info" not in reply


@pytest.mark.shows("POST /api/show", "model", "name")
@pytest.mark.parametrize(
    "body",
    [{"model": "x:1"}, {"model": "", "name": "x:1"}, {"model": "x:1", "name": ""}, {"model": "x:1", "name": "y"}],
)
def test_a_model_is_named_in_model_or_in_name(body: Any) -> None:
    assert parse(SHOW, body).request == ShowModel("x:1")


@pytest.mark.parametrize("body", [{}, {"model": ""}, {"model": None, "name": ""}])
def test_a_name_is_required(body: Any) -> None:
    with pytest.raises(ModelUnnamed):
        parse(SHOW, body)
    assert refusal(SHOW, body) == (400, "model is required")


@pytest.mark.shows("POST /api/show", "verbose")
def test_verbose_asks_for_all_values() -> None:
    assert parse(SHOW, {"model": "x", "verbose": True}).request == ShowModel("x", verbose=True)


@pytest.mark.shows("POST /api/show", "system", "options")
def test_system_and_options_are_shown_in_place_of_the_models_own() -> None:
    reply = shown(system="be brief", options={"temperature": 1, "seed": 3})
    assert reply["system"] == "be brief"
    assert "SYSTEM be brief\n" in reply["modelfile"]
    assert "PARAMETER temperature 1\n" in reply["modelfile"]
    assert "PARAMETER seed 3\n" in reply["modelfile"]
    assert "seed" not in reply["parameters"]


def test_copilot_reads_the_requested_name_as_the_basename() -> None:
    parsed = parse(SHOW, {"model": "smollm2"}, user_agent="GitHubCopilotChat/1.2")
    body = operation(SHOW).whole(parsed.view, STAMP, CARD).body
    assert b'"general.basename":"smollm2"' in body
    assert "general.basename" not in shown()["model_info"]


# The server


@pytest.mark.parametrize("path", ["/", "/api/version", "/api/status"])
def test_what_says_that_the_server_is_there_asks_for_nothing(path: str) -> None:
    assert operation(path).parse(Wire()).request == Ping()


def test_the_text_of_the_root_is_what_health_checks_compare() -> None:
    reply = operation("/").whole(None, STAMP, None)
    assert (reply.status, reply.body, reply.media_type) == (200, b"Ollama is running", TEXT)


def test_the_version_passes_the_gates_of_clients() -> None:
    version = tuple(map(int, answer("/api/version", None)["version"].split(".")))
    assert version >= (0, 13, 4)


def test_the_status_says_that_there_is_no_cloud() -> None:
    assert answer("/api/status", None) == {"cloud": {"disabled": True, "source": "config"}}
