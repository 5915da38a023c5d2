"""The choice: which files of a repository make the model that was asked for.

A repository holds one model in many quantisations, in one file each or in several, and maybe a projector for
images. Files are told apart by their names alone, as everybody does who puts them there. Pure.

Invariant: what was named is taken or refused, never replaced by something else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from diglot.core.digest import Digest
from diglot.core.model import DEFAULT_TAG
from diglot.store.split import PART

PREFERRED: Final = (
    *("Q4_K_M", "Q4_K_S", "Q4_K_L", "Q4_K", "IQ4_XS", "IQ4_NL", "Q4_0", "Q4_1", "Q5_K_M", "Q5_K_S"),
    *("Q6_K", "Q8_0", "Q3_K_M", "F16", "BF16"),
)
"""What is taken when nothing was named: four bits first, as Ollama and llama.cpp do, then what is nearest to it."""
_PROJECTORS: Final = ("F16", "BF16", "F32", "Q8_0")


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the repository. `digest` is unknown for those that are kept in another way."""

    path: str
    size: int
    digest: Digest | None = None

    @property
    def stem(self) -> str:
        """The path without its ending."""
        return self.path[: -len(".gguf")]


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one model: its weights, in order where they are several, and its projector."""

    weights: tuple[Offered, ...]
    projector: Offered | None = None


class NoChoice(Exception):
    """There is nothing to take; the text says why."""


def choose(files: Iterable[Offered], tag: str = DEFAULT_TAG) -> Chosen:
    """Return the files that a tag asks for: a quantisation, or the name of a file. Raises NoChoice."""
    found = [file for file in files if file.path.lower().endswith(".gguf")]
    projectors = [file for file in found if "mmproj" in file.path.lower()]
    models = _joined([file for file in found if file not in projectors])
    if not models:
        raise NoChoice("it has no GGUF files")
    wanted = PREFERRED if tag.lower() == DEFAULT_TAG else (tag,)
    weights = next((taken for word in wanted if (taken := _named(models, word))), None)
    if weights is None and wanted is not PREFERRED:
        raise NoChoice(f"it has no {tag}, but {', '.join(sorted(models))}")
    first = weights or models[min(models)]
    count = PART.search(first[0].stem)
    if count is not None and len(first) != int(count[2]):
        raise NoChoice(f"of the {int(count[2])} parts of {first[0].path} it has {len(first)}")
    projector = next((each for word in _PROJECTORS for each in projectors if _has(each.stem, word)), None)
    return Chosen(weights=first, projector=projector or next(iter(projectors), None))


def _joined(files: Sequence[Offered]) -> dict[str, tuple[Offered, ...]]:
    """Return the models by their names without parts: each the parts of one, in order."""
    models: defaultdict[str, list[Offered]] = defaultdict(list)
    for file in sorted(files, key=lambda each: each.path):
        models[PART.sub("", file.stem)].append(file)
    return {name: tuple(parts) for name, parts in models.items()}


def _named(models: dict[str, tuple[Offered, ...]], word: str) -> tuple[Offered, ...] | None:
    """Return the model of that file name, or else the one with that word in its name, the shortest name first."""
    plain = re.sub(r"\.gguf$", "", word, flags=re.IGNORECASE).lower()
    same = [name for name in models if name.lower().rpartition("/")[2] == plain]
    having = [name for name in models if _has(name, plain)]
    return next((models[name] for name in (*same, *sorted(having, key=lambda each: (len(each), each)))), None)


def _has(name: str, word: str) -> bool:
    """Whether a word stands in a name between marks. `Q4_K` is not in `Q4_K_M`."""
    return re.search(rf"(?:^|[-./]){re.escape(word)}(?:$|[-./])", name, re.IGNORECASE) is not None
