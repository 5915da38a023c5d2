"""Splits: a model whose weights lie in several files, told by their names.

    big-Q4_K_M-00001-of-00003.gguf
    big-Q4_K_M-00002-of-00003.gguf
    big-Q4_K_M-00003-of-00003.gguf

That is how llama.cpp writes them; it opens the first and finds the others beside it, by these very names. Pure.
Neighbours: `folder` and `hub.cache` look for files, `hub.choice` chooses among those of a repository.

Invariant: the files of a split come in their order, each once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

PART: Final = re.compile(r"-(\d{5})-of-(\d{5})$")
_ENDING: Final = re.compile(r"\.gguf$", re.IGNORECASE)


class Split(msgspec.Struct, frozen=True):
    """The files of one model, in order: one, or all its parts that there are. `stem` is its name without ending and part."""

    stem: str
    files: tuple[Path, ...]
    count: int = 1

    @property
    def missing(self) -> str:
        """What is not there, in words; empty where all is."""
        there = {_number(path) for path in self.files}
        lost = [number for number in range(1, self.count + 1) if self.count > 1 and number not in there]
        if not lost:
            return ""
        named = ", ".join(map(str, lost[:5])) + (" and more" if len(lost) > 5 else "")  # noqa: PLR2004  a line is full
        return f"of its {self.count} parts {len(lost)} {'is' if len(lost) == 1 else 'are'} missing: {named}"


def splits_of(paths: Iterable[Path]) -> Iterator[Split]:
    """Yield the models that files make, in the order of the first file of each."""
    found: dict[tuple[Path, str, int], list[Path]] = {}
    for path in paths:
        stem = _ENDING.sub("", path.name)
        match = PART.search(stem)
        count = int(match[2]) if match else 1
        place = PART.sub("", stem) if count > 1 else stem
        found.setdefault((path.parent, place, count), []).append(path)
    for (_, stem, count), files in found.items():
        yield Split(stem, tuple(sorted(files)), count)


def _number(path: Path) -> int:
    match = PART.search(_ENDING.sub("", path.name))
    return int(match[1]) if match else 0
