"""Where things lie in a models folder: `manifests/<host>/<namespace>/<model>/<tag>`, `blobs/sha256-<hex>`.

The layout is Ollama's, so that one tool can read the other's. Names come from `ModelRef`, whose parts
cannot climb out of the folder, and digests from `Digest`, which is 64 hex digits or nothing: no other
text becomes a path. Neighbours: `manifest` (what a manifest holds), `local` (the store).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec

from diglot.core.model import InvalidName, ModelRef

_DIGEST = re.compile(r"sha256[:-]([0-9a-fA-F]{64})")


class Digest(msgspec.Struct, frozen=True):
    """The sha256 of a blob: 64 lower-case hex digits."""

    hex: str

    def __post_init__(self) -> None:
        """Refuse everything else, whoever made this."""
        if not re.fullmatch(r"[0-9a-f]{64}", self.hex):
            raise ValueError(f"{self.hex!r} is no sha256 in hex")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `sha256:<hex>` or `sha256-<hex>`. Raises ValueError."""
        match = _DIGEST.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no digest of the form sha256:<64 hex digits>")
        return cls(match[1].lower())

    def __str__(self) -> str:
        return f"sha256:{self.hex}"


def digests_in(data: bytes) -> frozenset[Digest]:
    """Return every digest that stands anywhere in a manifest, also in a damaged one."""
    return frozenset(Digest(found.lower()) for found in _DIGEST.findall(data.decode("utf-8", errors="replace")))


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
