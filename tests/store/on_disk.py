"""Looks at a store's folder, and changes it as another tool might."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from diglot.core.model import ModelRef
from diglot.core.ports import ModelStore
from diglot.store.local import LocalStore

SHARED = ModelRef(model="shared")
OTHER = ModelRef.parse("hf.co/me/Other:Q4")


def files(store: LocalStore, folder: str = "") -> set[str]:
    root = store.root / folder
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def names(store: ModelStore) -> list[str]:
    return [model.name for model in store.list()]


def manifest_of(store: LocalStore, ref: ModelRef) -> Path:
    return store.root / "manifests" / ref.host / ref.namespace / ref.model / ref.tag


def rewrite(store: LocalStore, ref: ModelRef, change: Callable[[dict[str, object]], object]) -> None:
    """Change the manifest of a model as another tool might."""
    path = manifest_of(store, ref)
    manifest = json.loads(path.read_bytes())
    change(manifest)
    path.write_text(json.dumps(manifest))


def put(store: LocalStore, data: bytes) -> dict[str, object]:
    """Lay a content into the store and return what a layer says of it."""
    digest = hashlib.sha256(data).hexdigest()
    (store.root / "blobs" / f"sha256-{digest}").write_bytes(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}


def layer(store: LocalStore, kind: str, data: bytes) -> dict[str, object]:
    return {"mediaType": f"application/vnd.ollama.image.{kind}", **put(store, data)}
