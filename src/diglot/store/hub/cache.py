"""Hugging Face's cache: what other programs have fetched from there, read where it lies.

    models--owner--repository/refs/main                 the newest snapshot's name
    models--owner--repository/snapshots/<name>/*.gguf   links to contents, which are named by their sha256

A model is called `hf.co/owner/repository:quantisation`, as if it had been pulled. Source: `huggingface_hub`, how-to
of its cache. Neighbour: `store.found` reads what lies here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from diglot.core.digest import Digest
from diglot.core.model import InvalidName, ModelRef
from diglot.store.folder import PROJECTOR
from diglot.store.found import Found
from diglot.store.split import splits_of

_REPOSITORY: Final = re.compile(r"models--(?P<owner>.+?)--(?P<name>.+)")
_QUANTISATION: Final = re.compile(r"(?:^|[-._])((?:UD-)?(?:I?Q\d\w*|TQ\d\w*|B?F16|F32|MXFP4\w*|NVFP4))$", re.IGNORECASE)
_HEX: Final = re.compile(r"[0-9a-f]{64}")
_LONGEST: Final = 80


def files_in_cache(folder: Path) -> Iterator[Found]:
    """Yield the GGUF files of the newest snapshots."""
    for repository in sorted(folder.glob("models--*--*")):
        match = _REPOSITORY.fullmatch(repository.name)
        snapshot = _newest(repository)
        if match and snapshot:
            yield from _files(snapshot, owner=match["owner"], name=match["name"])


def _newest(repository: Path) -> Path | None:
    try:
        commit = (repository / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        commit = ""
    named = repository / "snapshots" / Path(commit).name
    if commit and named.is_dir():
        return named
    others = [path for path in repository.glob("snapshots/*") if path.is_dir()]
    return max(others, key=lambda path: path.stat().st_mtime_ns, default=None)


def _files(snapshot: Path, *, owner: str, name: str) -> Iterator[Found]:
    files = sorted(path for path in snapshot.rglob("*.gguf") if path.is_file())
    projectors = [path for path in files if PROJECTOR in path.name.lower()]
    taken: set[str] = set()
    for split in splits_of(path for path in files if path not in projectors):
        match = _QUANTISATION.search(split.stem)
        tag = match[1] if match and match[1].lower() not in taken else split.stem[:_LONGEST]
        taken.add(tag.lower())
        try:
            ref = ModelRef(host="hf.co", namespace=owner, model=name, tag=tag)
        except InvalidName:
            continue  # Whoever named it so did not get it from there.
        # The links and not the contents: of a model in parts the engine finds the others by their names.
        digests = tuple(map(_digest, split.files))
        projector = next(iter(projectors), None)
        yield Found(ref=ref, files=split.files, missing=split.missing, projector=projector, digests=digests)


def _digest(link: Path) -> Digest | None:
    """Return the digest that the content behind a link is named by."""
    content = link.resolve()
    return Digest(content.name) if _HEX.fullmatch(content.name) else None
