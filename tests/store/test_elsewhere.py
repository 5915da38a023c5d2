"""Stores of other programs: read in place, never changed, each model listed once."""

import asyncio
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diglot.core.errors import ModelBroken, ModelNotFound
from diglot.core.model import ModelRef
from diglot.services.catalog import Catalog
from diglot.settings import Settings, load_settings
from diglot.store.elsewhere import stores_elsewhere
from diglot.store.local import LocalStore
from tests.store.gguf_bytes import LLAMA, gguf
from tests.store.on_disk import SHARED, files, layer, manifest_of, names, put

MMPROJ: Final = gguf({"general.architecture": "clip", "general.type": "mmproj"})


def lay(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def lay_in_cache(cache: Path, repository: str, name: str, data: bytes, *, main: bool = True) -> Path:
    """Lay a file into Hugging Face's cache, as huggingface_hub does, and return its content's place."""
    folder = cache / f"models--{repository.replace('/', '--')}"
    content = lay(folder / "blobs" / hashlib.sha256(data).hexdigest(), data)
    link = folder / "snapshots" / "abc" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(content, link.parent))
    if main:
        lay(folder / "refs" / "main", b"abc")
    return content


def named(name: str) -> bytes:
    return gguf({**LLAMA, "general.name": name})


def places(tmp_path: Path, **more: object) -> Settings:
    return load_settings({"home": tmp_path / "home", **more}, {"HOME": str(tmp_path)})


@pytest.fixture
def ollama(tmp_path: Path, weights: Path) -> LocalStore:
    """Ollama's store of this user, with one model."""
    store = LocalStore(tmp_path / ".ollama" / "models", facts=tmp_path / "other")
    store.add_file(weights, SHARED)
    return store


def test_the_store_of_ollama_is_found_where_it_is_and_read_without_a_change(tmp_path: Path, ollama: LocalStore) -> None:
    (ollama.root / ".lock").unlink()
    before = {path: path.stat().st_mtime_ns for path in ollama.root.rglob("*")}
    [store] = stores_elsewhere(places(tmp_path))
    assert names(store) == ["shared:latest"]
    assert store.resolve(SHARED).weights.is_relative_to(ollama.root)
    assert store.card(SHARED).tensors
    assert {path: path.stat().st_mtime_ns for path in ollama.root.rglob("*")} == before
    assert list((tmp_path / "home" / "facts").iterdir())


def test_it_is_found_where_its_own_variable_says(tmp_path: Path, ollama: LocalStore) -> None:
    environ = {"HOME": str(tmp_path / "nobody"), "OLLAMA_MODELS": str(ollama.root)}
    assert load_settings({}, environ).ollama_models == ollama.root


def test_it_is_left_alone_where_that_is_wanted_and_where_it_is_our_own(tmp_path: Path, ollama: LocalStore) -> None:
    assert stores_elsewhere(places(tmp_path, read_ollama=False)) == ()
    assert stores_elsewhere(places(tmp_path, models=ollama.root)) == ()
    assert stores_elsewhere(load_settings({"home": tmp_path}, {})) == ()


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"remote_host": "https://ollama.com", "remote_model": "big"}, "it runs at https://ollama.com, not here"),
        ({"model_format": "safetensors"}, "its format is safetensors, only gguf can be run"),
    ],
)
def test_what_only_ollama_can_run_is_hidden_with_the_reason(
    tmp_path: Path, ollama: LocalStore, config: dict[str, str], reason: str
) -> None:
    manifest = {"schemaVersion": 2, "config": {"mediaType": "x", **put(ollama, json.dumps(config).encode())}}
    lay(manifest_of(ollama, ModelRef("far")), json.dumps({**manifest, "layers": []}).encode())
    [store] = stores_elsewhere(places(tmp_path))
    listing = store.listing()
    assert [model.name for model in listing.models] == ["shared:latest"]
    assert [(str(each.ref), each.reason) for each in listing.problems] == [("far:latest", reason)]
    with pytest.raises(ModelBroken):
        store.resolve(ModelRef("far"))


@pytest.mark.parametrize("template", [True, False])
def test_a_model_with_a_renderer_falls_back_to_the_template_of_its_weights(
    tmp_path: Path,
    ollama: LocalStore,
    template: bool,  # noqa: FBT001
) -> None:
    fields = LLAMA if template else {key: value for key, value in LLAMA.items() if "template" not in key}
    config = json.dumps({"model_format": "gguf", "renderer": "harmony", "unheard_of": [1]}).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"mediaType": "application/vnd.docker.container.image.v1+json", **put(ollama, config)},
        "layers": [layer(ollama, "model", gguf(fields)), layer(ollama, "unheard-of", b"x")],
        "unheard_of": True,
    }
    lay(manifest_of(ollama, ModelRef("new")), json.dumps(manifest).encode())
    [store] = stores_elsewhere(places(tmp_path))
    model = store.resolve(ModelRef("new"))
    assert model.raw_only is not template
    assert model.defaults.marks == {"renderer": "harmony"}


def test_a_folder_of_files_is_a_store(tmp_path: Path) -> None:
    folder = tmp_path / "models of mine"
    lay(folder / "Tiny Model-Q4_0.gguf", gguf())
    lay(folder / "owner" / "repository" / "vision.gguf", named("vision"))
    lay(folder / "owner" / "repository" / "mmproj-vision-f16.gguf", MMPROJ)
    lay(folder / "notes.txt", b"x")
    lay(folder / ".hidden" / "no.gguf", gguf())
    lay(folder / "broken.gguf", b"no gguf")
    lay(folder / "again" / "vision.gguf", named("another"))
    [store] = stores_elsewhere(places(tmp_path, folders=[str(folder)]))
    before = files_of(folder)
    assert sorted(names(store)) == ["Tiny-Model-Q4_0:latest", "vision:latest"]
    vision = store.resolve(ModelRef("VISION"))
    assert vision.weights == folder / "again" / "vision.gguf"
    assert vision.projector is None
    problems = {str(each.ref): each.reason for each in store.listing().problems}
    assert problems.keys() == {"broken:latest", "vision:latest"}
    assert "another file has this name" in problems["vision:latest"]
    (folder / "again" / "vision.gguf").unlink()
    vision = store.resolve(ModelRef("vision"))
    assert vision.projector == folder / "owner" / "repository" / "mmproj-vision-f16.gguf"
    assert vision.capabilities.vision
    assert store.card(vision.ref).projector_info is not None
    assert files_of(folder) == before - {folder / "again" / "vision.gguf"}
    with pytest.raises(ModelBroken, match="broken"):
        store.resolve(ModelRef("broken"))
    with pytest.raises(ModelNotFound):
        store.resolve(ModelRef("none"))


def files_of(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_a_file_that_changed_is_another_model(tmp_path: Path) -> None:
    folder = tmp_path / "models of mine"
    path = lay(folder / "tiny.gguf", gguf())
    [store] = stores_elsewhere(places(tmp_path, folders=[str(folder)]))
    before = store.resolve(ModelRef("tiny"))
    assert store.resolve(ModelRef("tiny")).digest == before.digest
    lay(path, named("A longer name"))
    assert store.resolve(ModelRef("tiny")).digest != before.digest


def test_the_cache_of_hugging_face_is_a_store(tmp_path: Path) -> None:
    cache = tmp_path / "hub"
    content = lay_in_cache(cache, "owner/some--Repo-GGUF", "Repo-Q4_K_M.gguf", gguf())
    lay_in_cache(cache, "owner/some--Repo-GGUF", "Repo.IQ4_XS.gguf", named("small"))
    lay_in_cache(cache, "owner/some--Repo-GGUF", "plain.gguf", named("plain"))
    lay_in_cache(cache, "owner/some--Repo-GGUF", "mmproj-F16.gguf", MMPROJ)
    lay_in_cache(cache, "owner/old", "a-Q8_0.gguf", named("old"), main=False)
    lay(cache / "models--owner--empty" / "refs" / "main", b"../../..")
    lay(cache / "datasets--owner--x" / "snapshots" / "a" / "x.gguf", gguf())
    [store] = stores_elsewhere(places(tmp_path, hub_cache=cache))
    assert sorted(names(store)) == [
        "hf.co/owner/old:Q8_0",
        "hf.co/owner/some--Repo-GGUF:IQ4_XS",
        "hf.co/owner/some--Repo-GGUF:Q4_K_M",
        "hf.co/owner/some--Repo-GGUF:plain",
    ]
    model = store.resolve(ModelRef.parse("hf.co/Owner/Some--repo-gguf:q4_k_m"))
    assert model.weights.resolve() == content
    assert model.projector is not None
    assert store.resolve(ModelRef.parse("hf.co/owner/old:Q8_0")).digest == hashlib.sha256(named("old")).hexdigest()
    assert store.listing().problems == ()


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.sampled_from(["ours", "ollama", "folder"]), st.sampled_from(["a", "b", "C", "c"])), max_size=6
    )
)
def test_a_model_of_several_places_is_listed_once_from_the_first(laid: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        ours, ollama = LocalStore(root / "ours"), LocalStore(root / ".ollama" / "models", facts=root / "x")
        first: dict[str, str] = {}
        for place, called in laid:
            path = lay(root / "in" / called, gguf())
            if place == "folder":
                lay(root / "folder" / f"{called}.gguf", gguf())
            else:
                (ours if place == "ours" else ollama).add_file(path, ModelRef(called))
        for place in ("ours", "ollama", "folder"):
            for called in (each.lower() for where, each in laid if where == place):
                first.setdefault(called, place)
        found = Settings(
            home=root / "home",
            ollama_models=ollama.root,
            folders=(root / "folder",) if (root / "folder").exists() else (),
        )
        before = files(ollama)
        catalog = Catalog((ours, *stores_elsewhere(found)))
        listed = asyncio.run(catalog.list())
        shown = {model.ref.model.lower(): model.weights.relative_to(root).parts[0].strip(".") for model in listed}
        assert shown == first
        assert len(listed) == len(first)
        for model in listed:
            assert asyncio.run(catalog.find(model.name.upper())).weights == model.weights
        assert files(ollama) == before
