"""Facts kept on disk, so that listing a thousand models opens no weights.

A file's facts depend on its content only, so they are kept by its digest and never go stale; a file of
another version is made anew. Losing this folder costs time and nothing else. Neighbours: `anatomy`
derives facts, `reading` asks for them.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from diglot.core.digest import Digest
from diglot.core.foreign import UNREADABLE
from diglot.store.anatomy import Facts, facts_of
from diglot.store.files import TooLarge, read_bounded, write_whole
from diglot.store.gguf import BrokenHeader, read_header
from diglot.store.manifest import Broken

VERSION: Final = 2
_LARGEST: Final = 1 << 20


class _Kept(msgspec.Struct, frozen=True):
    version: int
    facts: Facts


class KeptFacts:
    """The facts of contents, by digest, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, weights: Path, digest: Digest) -> Facts:
        """Return the facts of a content that lies at `weights`. Raises Broken."""
        kept = self._read(digest)
        if kept is None:
            kept = read_facts(weights)
            with suppress(OSError):  # On a full or a read-only disk they are read again next time.
                write_whole(self._path(digest), msgspec.json.encode(_Kept(VERSION, kept)), lasting=False)
        return kept

    def forget(self, digest: Digest) -> None:
        """Drop the facts of a content that is gone."""
        self._path(digest).unlink(missing_ok=True)

    def _path(self, digest: Digest) -> Path:
        return self._folder / f"sha256-{digest.hex}.json"

    def _read(self, digest: Digest) -> Facts | None:
        try:
            kept = msgspec.json.decode(read_bounded(self._path(digest), limit=_LARGEST), type=_Kept)
        except (OSError, TooLarge, *UNREADABLE):
            return None
        return kept.facts if kept.version == VERSION else None


def read_facts(weights: Path) -> Facts:
    """Read the facts of a file from its header. Raises Broken."""
    try:
        return facts_of(read_header(weights))
    except BrokenHeader as error:
        raise Broken(str(error)) from None
    except OSError as error:
        raise Broken(f"{weights.name} cannot be read: {error.strerror}") from None
