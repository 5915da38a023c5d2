"""Elsewhere: the stores of other programs on this machine, which are read in place and never changed.

What is derived of their files is kept in a folder of ours. Neighbours: `local` reads Ollama's, `found` the others.

Invariant: nothing is written into a folder that is not ours.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from diglot.settings import Settings
from diglot.store.folder import files_in
from diglot.store.found import FoundModels
from diglot.store.hub.cache import files_in_cache
from diglot.store.local import LocalStore

ReadStore = LocalStore | FoundModels


def stores_elsewhere(settings: Settings) -> tuple[ReadStore, ...]:
    """Return the stores that the settings tell of, in the order in which a name is looked for."""
    facts = settings.home / "facts"
    found: list[ReadStore] = []
    ollama = settings.ollama_models if settings.read_ollama else None
    if ollama is not None and not _same(ollama, settings.model_folder):
        found.append(LocalStore(ollama, facts=facts))
    found += [FoundModels(partial(files_in, folder), facts=facts) for folder in settings.folders]
    if settings.hub_cache is not None:
        found.append(FoundModels(partial(files_in_cache, settings.hub_cache), facts=facts))
    return tuple(found)


def _same(one: Path, other: Path) -> bool:
    return one.absolute() == other.absolute() or (one.exists() and other.exists() and one.samefile(other))
