"""Elsewhere: the stores of other programs on this machine, which are read in place and never changed.

What is derived of their files is kept in a folder of ours. Neighbours: `local` reads Ollama's, `found` the others.

Invariant: nothing is written into a folder that is not ours.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Protocol

from diglot.store.folder import files_in
from diglot.store.found import FoundModels
from diglot.store.hub.cache import files_in_cache
from diglot.store.local import LocalStore

ReadStore = LocalStore | FoundModels


class Places(Protocol):
    """Where to look. The settings are that."""

    @property
    def home(self) -> Path:
        """The folder of everything that is ours."""

    @property
    def model_folder(self) -> Path:
        """Our own models."""

    @property
    def read_ollama(self) -> bool:
        """Whether Ollama's are wanted."""

    @property
    def ollama_models(self) -> Path | None:
        """Ollama's, where there are any."""

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders of files."""

    @property
    def hub_cache(self) -> Path | None:
        """Hugging Face's cache."""


def stores_elsewhere(places: Places) -> tuple[ReadStore, ...]:
    """Return the stores that there are, in the order in which a name is looked for."""
    facts = places.home / "facts"
    found: list[ReadStore] = []
    ollama = places.ollama_models if places.read_ollama else None
    if ollama is not None and not _same(ollama, places.model_folder):
        found.append(LocalStore(ollama, facts=facts))
    found += [FoundModels(partial(files_in, folder), facts=facts) for folder in places.folders]
    if places.hub_cache is not None:
        found.append(FoundModels(partial(files_in_cache, places.hub_cache), facts=facts))
    return tuple(found)


def _same(one: Path, other: Path) -> bool:
    return one.absolute() == other.absolute() or (one.exists() and other.exists() and one.samefile(other))
