"""Where things lie in a models folder: `manifests/<host>/<namespace>/<model>/<tag>`, `blobs/sha256-<hex>`.

The layout is Ollama's, so that one tool can read the other's. Names come from `ModelRef`, whose parts
cannot climb out of the folder, and digests from `Digest`, which is 64 hex digits or nothing: no other
text becomes a path. Neighbours: `manifest` (what a manifest holds), `local` (the store).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from diglot.core.digest import Digest
from diglot.core.model import InvalidName, ModelRef


class Layout(msgspec.Struct, frozen=True):
    """The paths of one models folder."""

    root: Path

    @property
    def manifests(self) -> Path:
        """The folder of all names."""
        return self.root / "manifests"

    @property
    def blobs(self) -> Path:
        """The folder of all contents."""
        return self.root / "blobs"

    def blob(self, digest: Digest) -> Path:
        """Where a content lies."""
        return self.blobs / f"sha256-{digest.hex}"

    def manifest(self, ref: ModelRef) -> Path:
        """Where the manifest of `ref` is to be written: over one whose name is equal, if there is one."""
        return self.find(ref) or self.manifests / ref.host / ref.namespace / ref.model / ref.tag

    def find(self, ref: ModelRef) -> Path | None:
        """Return the manifest of that name in any case of letters, the same case before others."""
        found = [self.manifests]
        for part in (ref.host, ref.namespace, ref.model, ref.tag):
            found = [folder / name for folder in found for name in _alike(folder, part)]
        return next((path for path in found if path.is_file()), None)

    def ref(self, path: Path) -> ModelRef:
        """Return the name whose manifest `path` is. Raises InvalidName."""
        model = path.parent
        return ModelRef(tag=path.name, model=model.name, namespace=model.parent.name, host=model.parent.parent.name)

    def names(self) -> Iterator[tuple[ModelRef, Path]]:
        """Yield every name and its manifest. What is no name, such as a temporary file, is passed over."""
        folders = [self.manifests]
        for _ in range(3):
            folders = [folder / name for folder in folders for name in _entries(folder)]
        for folder in folders:
            for tag in _entries(folder):
                path = folder / tag
                try:
                    ref = self.ref(path)
                except InvalidName:
                    continue
                if path.is_file():
                    yield ref, path


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 (a Path for each is most of what it costs)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _alike(folder: Path, name: str) -> list[str]:
    found = [entry for entry in _entries(folder) if entry.lower() == name.lower()]
    return sorted(found, key=lambda entry: entry != name)
