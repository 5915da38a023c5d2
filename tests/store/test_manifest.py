"""Manifests that others wrote: what can be run is understood, what cannot is told, no digest becomes a path."""

import json
from pathlib import Path

import pytest

from diglot.core.errors import ModelBroken
from diglot.core.model import ModelRef
from diglot.store import reading
from diglot.store.local import LocalStore
from tests.store.gguf_bytes import LLAMA, gguf
from tests.store.on_disk import SHARED, layer, manifest_of, put, rewrite


def test_broken_models_are_left_out_of_the_list_and_told_apart(
    store: LocalStore, weights: Path, tmp_path: Path
) -> None:
    store.add_file(weights, SHARED)
    for name, data in (
        ("cut", b'{"schemaVersion":2'),
        ("empty", b""),
        ("no-json", b"\xff\xfe"),
        ("huge", b" " * (reading.MAX_MANIFEST + 1)),
    ):
        path = manifest_of(store, ModelRef(model=name))
        path.parent.mkdir()
        path.write_bytes(data)
    listing = store.listing()
    assert [model.name for model in listing.models] == ["shared:latest"]
    assert {problem.ref.model for problem in listing.problems} == {"cut", "empty", "no-json", "huge"}
    for problem in listing.problems:
        with pytest.raises(ModelBroken) as caught:
            store.resolve(problem.ref)
        assert caught.value.reason == problem.reason


def test_a_missing_or_short_content_is_told(store: LocalStore, weights: Path) -> None:
    added = store.add_file(weights, SHARED)
    added.weights.write_bytes(added.weights.read_bytes()[:-1])
    fresh = LocalStore(store.root)
    assert "instead of" in fresh.listing().problems[0].reason
    added.weights.unlink()
    for each in (store, fresh):
        assert each.list() == ()
        assert "is missing" in each.listing().problems[0].reason


@pytest.mark.parametrize(
    "digest",
    [
        "../../etc/passwd",
        "sha256:../../../../etc/passwd",
        "sha256:" + "0" * 63,
        "sha256:" + "0" * 65,
        "sha256:" + "g" * 64,
        "sha256-" + "0" * 64 + "/../../x",
        "md5:" + "0" * 64,
        "",
        "/etc/passwd",
        "sha256:" + "0" * 64 + "\n",
    ],
)
@pytest.mark.parametrize("place", ["config", "layer"])
def test_a_digest_that_is_none_never_becomes_a_path(store: LocalStore, weights: Path, digest: str, place: str) -> None:
    store.add_file(weights, SHARED)

    def change(manifest: dict[str, object]) -> None:
        entry = manifest["config"] if place == "config" else manifest["layers"][0]  # type: ignore[index]
        entry["digest"] = digest  # type: ignore[index]

    rewrite(store, SHARED, change)
    listing = store.listing()
    assert listing.models == ()
    assert "no digest" in listing.problems[0].reason
    store.remove(SHARED)


def test_layers_of_other_makers_are_understood(store: LocalStore, weights: Path, tmp_path: Path) -> None:
    store.add_file(weights, SHARED, licences=("first", "second"))
    projector = gguf({"general.architecture": "clip", "clip.block_count": 3})
    parameters = {"temperature": 1, "stop": ["<|end|>"], "num_ctx": 8192, "num_predict": -1, "penalize_newline": True}
    more = [
        layer(store, "projector", projector),
        layer(store, "adapter", gguf({**LLAMA, "general.type": "adapter"})),
        layer(store, "params", json.dumps(parameters).encode()),
        layer(store, "system", b"Be brief."),
        layer(store, "template", b"old"),
        layer(store, "template", b"{{ .Prompt }}"),
        layer(store, "messages", b'[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]'),
        layer(store, "unheard-of", b"?"),
    ]
    rewrite(store, SHARED, lambda manifest: manifest["layers"].extend(more))  # type: ignore[attr-defined]
    model = store.resolve(SHARED)
    assert model.capabilities.vision
    assert model.projector is not None
    assert model.projector.read_bytes() == projector
    assert len(model.adapters) == 1
    assert model.defaults.parameters == parameters
    assert model.defaults.sampling.temperature == 1.0
    assert model.defaults.sampling.stop == ("<|end|>",)
    assert model.defaults.sampling.max_tokens == -1
    assert model.defaults.load.window == 8192
    assert model.defaults.system == "Be brief."
    assert model.defaults.template == "{{ .Prompt }}"
    assert [(example.role, example.content) for example in model.defaults.messages] == [
        ("user", "hi"),
        ("assistant", "ho"),
    ]
    card = store.card(SHARED)
    assert card.licences == ("first", "second")
    assert card.projector_info is not None
    assert card.projector_info["clip.block_count"] == 3


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("params", b'{"temperature":"hot"}', "temperature"),
        ("params", b"[]", "parameters"),
        ("params", b"{", "parameters"),
        ("messages", b'[{"role":1}]', "messages"),
        ("system", b"x" * (reading.MAX_DOCUMENT + 1), "longer than"),
    ],
)
def test_a_damaged_layer_is_told(store: LocalStore, weights: Path, kind: str, data: bytes, reason: str) -> None:
    store.add_file(weights, SHARED)
    rewrite(store, SHARED, lambda manifest: manifest["layers"].append(layer(store, kind, data)))  # type: ignore[attr-defined]
    with pytest.raises(ModelBroken, match=reason):
        store.resolve(SHARED)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"remote_host": "https://elsewhere.example", "remote_model": "m"}, "runs at https://elsewhere.example"),
        ({"model_format": "safetensors"}, "only gguf"),
        ({"model_families": 3}, "config is damaged"),
    ],
)
def test_models_that_cannot_run_here_are_told_apart(
    store: LocalStore, weights: Path, config: object, reason: str
) -> None:
    store.add_file(weights, SHARED)
    rewrite(store, SHARED, lambda manifest: manifest["config"].update(put(store, json.dumps(config).encode())))  # type: ignore[attr-defined]
    assert reason in store.listing().problems[0].reason


def test_what_the_maker_wrote_comes_before_what_the_header_says(store: LocalStore, weights: Path) -> None:
    store.add_file(weights, SHARED)
    config = {
        "model_format": "gguf",
        "model_family": "qwen",
        "model_families": None,
        "model_type": "3.2B",
        "file_type": "Q4_K_M",
    }
    rewrite(store, SHARED, lambda manifest: manifest["config"].update(put(store, json.dumps(config).encode())))  # type: ignore[attr-defined]
    details = store.resolve(SHARED).details
    assert (details.family, details.families) == ("qwen", ("llama",))
    assert (details.parameter_size, details.quantization_level) == ("3.2B", "Q4_K_M")
