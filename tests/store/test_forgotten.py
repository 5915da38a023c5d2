"""What a crash or a client left among the contents goes in time, and nothing else does."""

import os
import time
from pathlib import Path

from diglot.store.fetch.partial import Partial, Plan
from diglot.store.local import LocalStore
from tests.store.on_disk import OTHER, SHARED, files, put


def _age(path: Path, days: float) -> None:
    then = time.time() - days * 86400
    os.utime(path, (then, then))


def test_old_contents_that_nothing_names_go_with_the_next_change(store: LocalStore, weights: Path) -> None:
    model = store.add_file(weights, SHARED)
    for path in (store.root / "blobs").iterdir():
        _age(path, 30)
    old, young = (put(store, data)["digest"] for data in (b"old", b"young"))
    _age(store.root / "blobs" / str(old).replace(":", "-"), 2)
    store.copy(SHARED, OTHER)
    assert store.tidy()
    left = files(store, "blobs")
    assert str(old).replace(":", "-") not in left
    assert str(young).replace(":", "-") in left
    assert model.weights.is_file()
    assert len(left) == 3


def test_old_parts_go_unless_somebody_fetches_them(store: LocalStore, weights: Path) -> None:
    store.add_file(weights, SHARED)
    blobs = store.root / "blobs"
    gone, open_, fresh = (blobs / f"sha256-{letter * 64}" for letter in "abc")
    for target in (gone, open_, fresh):
        partial = Partial.open(target, Plan(size=4, part=2))
        assert partial is not None
        partial.close()
    held = Partial.open(open_, Plan(size=4, part=2))
    assert held is not None
    for target in (gone, open_):
        for path in blobs.glob(f"{target.name}-partial*"):
            _age(path, 8)
    assert store.tidy()
    left = {path.name for path in blobs.glob("*-partial")}
    assert left == {f"{open_.name}-partial", f"{fresh.name}-partial"}
    held.close()


def test_what_is_in_use_stays_until_it_is_not(tmp_path: Path, weights: Path) -> None:
    used: set[Path] = set()
    store = LocalStore(tmp_path / "models", in_use=used.__contains__)
    model = store.add_file(weights, SHARED)
    used.add(model.weights)
    store.remove(SHARED)
    assert store.list() == ()
    assert model.weights.is_file()
    assert not store.tidy()
    used.clear()
    assert store.tidy()
    assert not model.weights.exists()


def test_what_is_asked_for_again_stays(tmp_path: Path, weights: Path) -> None:
    used: set[Path] = set()
    store = LocalStore(tmp_path / "models", in_use=used.__contains__)
    model = store.add_file(weights, SHARED)
    used.add(model.weights)
    manifest = store.manifest(SHARED)
    store.remove(SHARED)
    used.clear()
    store.add_file(weights, OTHER)
    assert store.tidy()
    assert model.weights.is_file()
    assert store.install(SHARED, manifest) == frozenset()
