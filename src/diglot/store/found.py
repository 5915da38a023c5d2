"""Found models: GGUF files that lie somewhere without a manifest, as a store that is only read.

Nobody wrote down what such a file holds, so its header alone says it, and nothing is in force but that. Its digest
is that of its contents where the place tells it, else of its path, size and time: to hash gigabytes for a list
would cost minutes. Neighbours: `folder` and `hub.cache` look for files, `reading` shows what a header says.

Invariant: nothing is written but facts, and those not here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from diglot.core.digest import Digest
from diglot.core.errors import ModelBroken, ModelNotFound
from diglot.core.model import Model, ModelCard, ModelRef
from diglot.store.anatomy import whole
from diglot.store.facts import KeptFacts
from diglot.store.local import Listing, Problem
from diglot.store.manifest import Broken
from diglot.store.reading import card_of_files, require_model


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Files that may be a model, and what it would be called: one, or its parts in order, with the word for what is `missing`.

    `digests` are their sha256, where these are known.
    """

    ref: ModelRef
    files: tuple[Path, ...]
    missing: str = ""
    projector: Path | None = None
    digests: tuple[Digest | None, ...] = ()


class FoundModels:
    """The models among what `look` finds; of several with one name the first. Implements `core.ports.ModelStore`."""

    def __init__(self, look: Callable[[], Iterable[Found]], *, facts: Path) -> None:
        self._look = look
        self._facts = KeptFacts(facts)

    def list(self) -> tuple[Model, ...]:
        """Return all models, the newest first."""
        return self.listing().models

    def listing(self) -> Listing:
        """Return all models, and what is left out with the reason."""
        models: dict[ModelRef, Model] = {}
        problems: list[Problem] = []
        for found in self._look():
            try:
                model = self._model(found)
            except FileNotFoundError:
                continue  # Removed while we looked.
            except Broken as error:
                problems.append(Problem(found.ref, f"{error} ({found.files[0]})"))
                continue
            if models.setdefault(found.ref, model) is not model:
                problems.append(Problem(found.ref, f"another file has this name ({found.files[0]})"))
        ordered = sorted(models.values(), key=lambda model: (-model.modified_at, model.name))
        return Listing(tuple(ordered), tuple(problems))

    def resolve(self, ref: ModelRef) -> Model:
        """Return the model of that name. Raises ModelNotFound, ModelBroken."""
        broken: Broken | None = None
        for found in self._look():
            if found.ref == ref:
                try:
                    return self._model(found)
                except FileNotFoundError:
                    continue
                except Broken as error:
                    broken = broken or error
        if broken is not None:
            raise ModelBroken(str(ref), reason=str(broken))
        raise ModelNotFound(str(ref))

    def card(self, ref: ModelRef, *, verbose: bool = False) -> ModelCard:
        """Return all there is to know of a model. Raises ModelNotFound, ModelBroken."""
        try:
            return card_of_files(self.resolve(ref), verbose=verbose)
        except Broken as error:
            raise ModelBroken(str(ref), reason=str(error)) from None

    def _model(self, found: Found) -> Model:
        """Return the model of some files. Raises Broken, FileNotFoundError."""
        if found.missing:
            raise Broken(found.missing)
        states = [path.stat() for path in found.files]
        digests = found.digests or (None,) * len(found.files)
        keys = [digest or _stamped(path) for path, digest in zip(found.files, digests, strict=True)]
        facts = whole([self._facts.of(path, key) for path, key in zip(found.files, keys, strict=True)])
        require_model(facts)
        size = sum(status.st_size for status in states)
        projector = found.projector if found.projector and self._projects(found.projector) else None
        if projector is not None:
            keys.append(_stamped(projector))
            size += projector.stat().st_size
        digest = keys[0] if len(keys) == 1 else _hashed(" ".join(map(str, keys)))
        able = facts.capabilities
        return Model(
            ref=found.ref,
            digest=digest.hex,
            size=size,
            modified_at=max(status.st_mtime_ns for status in states),
            weights=found.files[0],
            parts=found.files[1:],
            projector=projector,
            details=facts.details,
            capabilities=msgspec.structs.replace(able, vision=able.vision or projector is not None),
            anatomy=facts.anatomy,
        )

    def _projects(self, path: Path) -> bool:
        """Whether a file is a projector for images, as its name says."""
        try:
            return self._facts.of(path, _stamped(path)).purpose == "projector"
        except (Broken, FileNotFoundError):
            return False


def _stamped(path: Path) -> Digest:
    """Return what tells a file from others and from what it was before."""
    status = path.stat()
    return _hashed(f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ino}")


def _hashed(text: str) -> Digest:
    return Digest(hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest())
