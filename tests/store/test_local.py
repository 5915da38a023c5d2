"""The store, with small models: what is added is found, what is removed is gone."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from diglot.core.errors import ModelBroken, ModelNotFound
from diglot.core.model import ModelRef
from diglot.store.local import LocalStore
from tests.store.gguf_bytes import BERT, LLAMA, Tensor, gguf
from tests.store.on_disk import OTHER, SHARED, files, layer, manifest_of, names, rewrite


def test_an_empty_or_missing_folder_holds_no_models(store: LocalStore) -> None:
    assert store.list() == ()
    assert store.listing().problems == ()
    with pytest.raises(ModelNotFound) as caught:
        store.resolve(SHARED)
    assert caught.value.name == "shared:latest"
    assert not store.root.exists()


def test_an_added_model_is_found_listed_and_whole(store: LocalStore, weights: Path) -> None:
    added = store.add_file(weights, SHARED, licences=("Apache-2.0",))
    assert store.list() == (added,)
    assert store.resolve(SHARED) == added
    assert added.name == "shared:latest"
    assert added.weights.read_bytes() == weights.read_bytes()
    assert added.weights.name == f"sha256-{hashlib.sha256(weights.read_bytes()).hexdigest()}"
    assert added.details.family == "llama"
    assert added.capabilities.completion
    manifest = manifest_of(store, SHARED).read_bytes()
    assert added.digest == hashlib.sha256(manifest).hexdigest()
    assert added.modified_at == manifest_of(store, SHARED).stat().st_mtime_ns
    assert added.size == sum(path.stat().st_size for path in (store.root / "blobs").iterdir())


def test_the_file_stays_the_adders_own(store: LocalStore, weights: Path) -> None:
    before = weights.read_bytes()
    added = store.add_file(weights, SHARED)
    weights.write_bytes(b"changed in place")
    assert added.weights.read_bytes() == before


def test_the_manifest_is_one_that_other_tools_read(store: LocalStore, weights: Path) -> None:
    added = store.add_file(weights, SHARED, licences=("L",))
    manifest = json.loads(manifest_of(store, SHARED).read_bytes())
    assert manifest["schemaVersion"] == 2
    assert manifest["mediaType"] == "application/vnd.docker.distribution.manifest.v2+json"
    assert manifest["config"]["mediaType"] == "application/vnd.docker.container.image.v1+json"
    assert [layer["mediaType"] for layer in manifest["layers"]] == [
        "application/vnd.ollama.image.model",
        "application/vnd.ollama.image.license",
    ]
    for entry in (manifest["config"], *manifest["layers"]):
        data = (store.root / "blobs" / entry["digest"].replace(":", "-")).read_bytes()
        assert len(data) == entry["size"]
        assert f"sha256:{hashlib.sha256(data).hexdigest()}" == entry["digest"]
    config = json.loads((store.root / "blobs" / manifest["config"]["digest"].replace(":", "-")).read_bytes())
    assert config["model_format"] == "gguf"
    assert config["model_family"] == "llama"
    assert config["model_families"] == ["llama"]
    assert config["model_type"] == added.details.parameter_size
    assert config["file_type"] == "F16"
    assert config["capabilities"] == ["completion", "tools"]
    assert config["context_length"] == 2048


def test_a_name_is_found_in_any_case_and_keeps_its_own(store: LocalStore, weights: Path) -> None:
    store.add_file(weights, OTHER)
    for spelling in ("hf.co/me/Other:Q4", "HF.CO/ME/OTHER:q4", "hf.co/Me/other:q4"):
        assert store.resolve(ModelRef.parse(spelling)).name == "hf.co/me/Other:Q4"
    with pytest.raises(ModelNotFound):
        store.resolve(ModelRef.parse("hf.co/me/Other:latest"))


def test_adding_under_another_case_replaces(store: LocalStore, weights: Path, tmp_path: Path) -> None:
    store.add_file(weights, ModelRef.parse("Shared"))
    new = tmp_path / "new.gguf"
    new.write_bytes(gguf(BERT))
    store.add_file(new, ModelRef.parse("SHARED"))
    assert names(store) == ["Shared:latest"]
    assert store.resolve(SHARED).capabilities.embedding


def test_the_newest_comes_first(store: LocalStore, weights: Path) -> None:
    for age, name in enumerate(("b", "a", "c", "d")):
        store.add_file(weights, ModelRef(model=name))
        os.utime(manifest_of(store, ModelRef(model=name)), ns=(0, 10**18 - (age // 2) * 10**9))
    assert names(store) == ["a:latest", "b:latest", "c:latest", "d:latest"]


def test_adding_the_same_again_changes_nothing_but_the_time(store: LocalStore, weights: Path) -> None:
    first = store.add_file(weights, SHARED)
    before = files(store)
    second = store.add_file(weights, SHARED)
    assert files(store) == before
    assert second.digest == first.digest


def test_replacing_drops_what_only_the_old_one_needed(store: LocalStore, weights: Path, tmp_path: Path) -> None:
    old = store.add_file(weights, SHARED)
    new = tmp_path / "new.gguf"
    new.write_bytes(gguf(BERT))
    store.add_file(new, SHARED)
    assert not old.weights.exists()
    assert len(files(store, "facts")) == 1


def test_removing_keeps_what_another_name_needs(store: LocalStore, weights: Path) -> None:
    store.add_file(weights, SHARED)
    copied = store.copy(SHARED, OTHER)
    assert copied.digest == store.resolve(SHARED).digest
    store.remove(ModelRef.parse("SHARED:LATEST"))
    assert names(store) == ["hf.co/me/Other:Q4"]
    assert store.resolve(OTHER).weights.read_bytes() == weights.read_bytes()
    store.remove(OTHER)
    assert files(store) == {".lock"}
    assert list((store.root / "manifests").iterdir()) == []


def test_removing_keeps_what_a_damaged_manifest_still_names(store: LocalStore, weights: Path) -> None:
    added = store.add_file(weights, SHARED)
    store.copy(SHARED, OTHER)
    damaged = manifest_of(store, OTHER)
    damaged.write_bytes(damaged.read_bytes()[:-2])
    store.remove(SHARED)
    assert added.weights.exists()


@pytest.mark.parametrize("action", ["remove", "copy", "card", "resolve"])
def test_what_is_not_there_is_not_found(store: LocalStore, action: str) -> None:
    with pytest.raises(ModelNotFound) as caught:
        getattr(store, action)(*[ModelRef(model="absent")] * (2 if action == "copy" else 1))
    assert caught.value.name == "absent:latest"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"GGUF\x03\0\0\0" + b"\xff" * 16, "claims"),
        (gguf(tensors=()), "holds no tensors"),
        (gguf({**LLAMA, "split.count": 2}), "split over several files"),
        (gguf({"general.architecture": "clip"}), "projector"),
        (gguf({**LLAMA, "general.type": "adapter"}), "adapter"),
        (gguf({"general.name": "x"}), "names no architecture"),
    ],
)
def test_what_is_no_model_is_refused_and_leaves_nothing(
    store: LocalStore, tmp_path: Path, data: bytes, reason: str
) -> None:
    file = tmp_path / "bad.gguf"
    file.write_bytes(data)
    with pytest.raises(ModelBroken, match=reason) as caught:
        store.add_file(file, SHARED)
    assert caught.value.name == "shared:latest"
    assert files(store) == {".lock"}


def test_a_file_that_is_not_there_is_an_error_of_the_system(store: LocalStore, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        store.add_file(tmp_path / "absent.gguf", SHARED)
    assert files(store) == {".lock"}


def test_progress_tells_how_much_is_copied_and_can_stop_it(store: LocalStore, weights: Path) -> None:
    seen: list[tuple[int, int]] = []
    store.add_file(weights, SHARED, progress=lambda done, size: seen.append((done, size)))
    size = weights.stat().st_size
    assert seen[-1] == (size, size)

    def stop(done: int, size: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.add_file(weights, OTHER, progress=stop)
    assert names(store) == ["shared:latest"]
    assert not any(path.startswith("blobs/.") for path in files(store))


def test_what_a_crash_left_behind_goes_with_the_next_addition(store: LocalStore, weights: Path) -> None:
    with store.scratch() as living:
        left = store.root / "blobs" / ".incoming-def"
        left.parent.mkdir()
        left.write_bytes(b"half")
        dead = store.root / ".incoming-abc"
        dead.mkdir()
        (dead / "wheel").write_bytes(b"half")
        store.add_file(weights, SHARED)
        with store.scratch():
            assert living.is_dir()
        assert not left.exists()
        assert not dead.exists()
    assert not living.exists()


def test_what_a_crash_left_behind_is_no_model(store: LocalStore, weights: Path) -> None:
    store.add_file(weights, SHARED)
    manifest_of(store, SHARED).with_name(".incoming-abc").write_bytes(b"{")
    (store.root / "blobs" / ".incoming-def").write_bytes(b"half")
    (store.root / "blobs" / f"sha256-{'0' * 64}-partial").write_bytes(b"half")
    (store.root / "manifests" / "stray").write_bytes(b"")
    (store.root / "manifests" / "registry.ollama.ai" / "a b").mkdir()
    listing = store.listing()
    assert [model.name for model in listing.models] == ["shared:latest"]
    assert listing.problems == ()


def test_a_card_tells_all_and_long_lists_only_on_demand(store: LocalStore, weights: Path) -> None:
    store.add_file(weights, SHARED, licences=("L",))
    card = store.card(SHARED)
    assert card.model == store.resolve(SHARED)
    assert card.info["general.architecture"] == "llama"
    assert card.info["general.parameter_count"] == 64
    assert card.info["tokenizer.ggml.tokens"] == ()
    assert not {"general.name", "tokenizer.chat_template"} & card.info.keys()
    assert card.chat_template == LLAMA["tokenizer.chat_template"]
    assert [tensor.name for tensor in card.tensors] == [Tensor().name]
    assert store.card(SHARED, verbose=True).info["tokenizer.ggml.tokens"] == tuple(LLAMA["tokenizer.ggml.tokens"])


def test_listing_again_opens_no_weights(store: LocalStore, weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added = store.add_file(weights, SHARED)
    monkeypatch.setattr("diglot.store.facts.read_header", None)
    assert store.list() == (added,)
    assert LocalStore(store.root).list() == (added,)


@pytest.mark.parametrize(("old", "new"), [(b"{", b""), (b'"version":', b'"version":1000'), (b"anatomy", b"\xff")])
def test_kept_facts_that_are_damaged_or_of_another_version_are_made_anew(
    store: LocalStore, weights: Path, old: bytes, new: bytes
) -> None:
    added = store.add_file(weights, SHARED)
    (path,) = (store.root / "facts").iterdir()
    good = path.read_bytes()
    path.write_bytes(good.replace(old, new, 1))
    assert path.read_bytes() != good
    assert LocalStore(store.root).list() == (added,)
    assert path.read_bytes() == good


def test_facts_can_be_kept_elsewhere_for_a_store_of_somebody_else(
    store: LocalStore, weights: Path, tmp_path: Path
) -> None:
    added = store.add_file(weights, SHARED)
    before = {path: (store.root / path).stat().st_mtime_ns for path in files(store)}
    foreign = LocalStore(store.root, facts=tmp_path / "elsewhere")
    assert foreign.list() == (added,)
    assert {path: (store.root / path).stat().st_mtime_ns for path in files(store)} == before
    assert len(list((tmp_path / "elsewhere").iterdir())) == 1


def test_a_change_by_another_process_is_seen(store: LocalStore, weights: Path) -> None:
    store.add_file(weights, SHARED)
    assert names(store) == ["shared:latest"]
    LocalStore(store.root).copy(SHARED, OTHER)
    assert sorted(names(store)) == ["hf.co/me/Other:Q4", "shared:latest"]
    rewrite(store, OTHER, lambda manifest: manifest["layers"].append(layer(store, "system", b"New.")))  # type: ignore[attr-defined]
    assert store.resolve(OTHER).defaults.system == "New."
    LocalStore(store.root).remove(SHARED)
    assert names(store) == ["hf.co/me/Other:Q4"]
