"""Making: a model of a recipe, in the store.

What the recipe does not set comes from its base, wherever that lies: contents of another store are copied in,
since nobody else vouches for them. Blocking; the steps are told on the way. Neighbours: `local` keeps, `convert`
turns safetensors into GGUF, `core.recipe` says what is wanted.

Invariant: the name stands for what it stood for until all of the new model is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, get_args

import msgspec

from diglot.core.digest import Digest
from diglot.core.errors import InvalidField, ModelBroken, ModelForeign, UnsupportedField
from diglot.core.events import Step
from diglot.core.model import Defaults, ModelCard, ModelRef
from diglot.core.recipe import Recipe
from diglot.store.anatomy import Facts, Purpose
from diglot.store.aside import Tell
from diglot.store.convert import CannotConvert, Element, convert_apart
from diglot.store.facts import read_facts
from diglot.store.files import CopyProgress
from diglot.store.local import LocalStore
from diglot.store.manifest import CONFIG_TYPE, Broken, Layer, Manifest, config_of, layer_type, read_parameters
from diglot.store.reading import require_model

_SAFETENSORS: Final = ".safetensors"
_ELEMENTS: Final[tuple[Element, ...]] = get_args(Element)


class _Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The files that make a model."""

    weights: Digest
    projector: Digest | None = None
    adapters: tuple[Digest, ...] = ()


def make(store: LocalStore, ref: ModelRef, recipe: Recipe, *, base: ModelCard | None, tell: Tell) -> None:
    """Make the model `ref`. Raises InvalidField, UnsupportedField, ModelBroken, ModelForeign, NoSpace."""
    making = _Making(store, ref, tell)
    try:
        making.install(making.manifest(recipe, base))
    except BaseException:
        store.drop(making.new)
        raise
    tell(Step("done"))


class _Making:
    """What is done to the store on the way to the model `ref`. `new` are contents that were not there before."""

    def __init__(self, store: LocalStore, ref: ModelRef, tell: Tell) -> None:
        self._store = store
        self._ref = ref
        self._tell = tell
        self.new: set[Digest] = set()

    def manifest(self, recipe: Recipe, base: ModelCard | None) -> Manifest:
        """Return the manifest of a recipe, whose contents are all here."""
        parts = self.copied(base) if base is not None else self.gathered(recipe)
        facts = self.facts(parts.weights, "model", "files")
        known = facts.details.quantization_level
        if recipe.quantization.lower() not in {"", known.lower()}:
            reason = f"weights in GGUF are kept as they are, here {known}; llama-quantize makes others"
            raise UnsupportedField("quantize", reason)
        adapters = (*parts.adapters, *(self.adapter(name, digest) for name, digest in recipe.adapters.items()))
        layers = [self.layer("model", parts.weights, parent=base.model.name if base else "")]
        if parts.projector is not None:
            layers.append(self.layer("projector", parts.projector))
        layers += [self.layer("adapter", adapter) for adapter in dict.fromkeys(adapters)]
        layers += [self.kept(layer_type(kind), text) for kind, text in _texts(recipe, base)]
        marks = {**(base.model.defaults.marks if base else {}), **recipe.marks}
        written = config_of(facts.details, facts.capabilities, layers, marks=marks)
        return Manifest(config=self.kept(CONFIG_TYPE, msgspec.json.encode(written)), layers=tuple(layers))

    def install(self, manifest: Manifest) -> None:
        """Give the name to it. Raises ModelBroken when a content has gone meanwhile."""
        self._tell(Step("write"))
        if missing := self._store.install(self._ref, msgspec.json.encode(manifest)):
            reason = f"its contents were removed while it was made ({next(iter(missing))})"
            raise ModelBroken(str(self._ref), reason=reason)

    def copied(self, base: ModelCard) -> _Parts:
        """Return the files of a base, copied in where they are not ours."""
        model = base.model
        return _Parts(
            weights=self._joined(base) if model.parts else self._own(model.weights, base),
            projector=self._own(model.projector, base) if model.projector else None,
            adapters=tuple(self._own(path, base) for path in model.adapters),
        )

    def gathered(self, recipe: Recipe) -> _Parts:
        """Return what the files of a recipe are."""
        for name, digest in recipe.files.items():
            self._require(f"files.{name}", digest)
        if any(name.endswith(_SAFETENSORS) for name in recipe.files):
            return _Parts(weights=self._converted(recipe.files, recipe.quantization))
        found: dict[Purpose, list[Digest]] = {}
        for name, digest in sorted(recipe.files.items()):
            found.setdefault(self._facts(digest, f"files.{name}").purpose, []).append(digest)
        projectors = found.get("projector", [])
        if len(projectors) > 1:
            raise InvalidField("files", f"{len(projectors)} of them are projectors for images, a model has one")
        return _Parts(
            weights=self._weights(found),
            projector=projectors[0] if projectors else None,
            adapters=tuple(found.get("adapter", ())),
        )

    def facts(self, digest: Digest, purpose: Purpose, field: str) -> Facts:
        """Return the facts of a file, which is one of that purpose. Raises InvalidField."""
        facts = self._facts(digest, field)
        if facts.purpose != purpose:
            raise InvalidField(field, f"it holds no {purpose}, but a {facts.purpose}")
        return facts

    def adapter(self, name: str, digest: Digest) -> Digest:
        """Return an adapter that was named, seen to be one."""
        field = f"adapters.{name}"
        if name.endswith(_SAFETENSORS):
            raise UnsupportedField(field, "adapters are taken as GGUF; convert_lora_to_gguf.py of llama.cpp makes that")
        self._require(field, digest)
        self.facts(digest, "adapter", field)
        return digest

    def layer(self, kind: str, digest: Digest, *, parent: str = "") -> Layer:
        """Return the layer of a content that is here."""
        self._tell(Step("reuse", digest))
        size = self._store.blob(digest).stat().st_size
        return Layer(media_type=layer_type(kind), digest=str(digest), size=size, from_=parent)

    def kept(self, media_type: str, data: bytes) -> Layer:
        """Write a small content, unless it is here, and return its layer."""
        digest = Digest(hashlib.sha256(data).hexdigest())
        there = self._store.holds(digest)
        self._tell(Step("reuse" if there else "make", digest))
        if not there:
            self.new.add(digest)
            intake = self._store.intake(digest, size=len(data))
            try:
                intake.write(data)
                intake.settle()
            finally:
                intake.close()
        return Layer(media_type=media_type, digest=str(digest), size=len(data))

    def _joined(self, base: ModelCard) -> Digest:
        """Return the digest of weights that lie in several files elsewhere, put together into one."""
        paths = (base.model.weights, *base.model.parts)
        if not all(path.is_file() for path in paths):
            raise ModelForeign(base.model.name)
        self._tell(Step("convert"))
        digest = self._store.join(self._ref, paths)
        self.new.add(digest)
        return digest

    def _own(self, path: Path, base: ModelCard) -> Digest:
        """Return the digest of a file of a base, copied in if it is not ours."""
        if not path.is_file():
            raise ModelForeign(base.model.name)
        try:
            named = Digest.parse(path.name)
        except ValueError:
            named = None
        if named is not None and self._store.holds(named):
            return named
        return self._taken(path, lambda done, total: self._tell(Step("receive", named, total, done, path.name)))

    def _taken(self, path: Path, progress: CopyProgress | None = None) -> Digest:
        digest = self._store.take(path, progress=progress)
        self.new.add(digest)
        return digest

    def _weights(self, found: Mapping[Purpose, list[Digest]]) -> Digest:
        whole, parts = found.get("model", []), found.get("shard", [])
        if len(whole) == 1 and not parts:
            return whole[0]
        if parts and not whole:
            return self._store.merge(self._ref, parts)
        what = f"{len(whole)} of them hold weights" if whole else "none of them holds weights"
        raise InvalidField("files", f"{what}, and a model has one such file, or all the parts of one")

    def _converted(self, files: Mapping[str, Digest], quantization: str) -> Digest:
        """Return the weights made of safetensors."""
        element = next((each for each in _ELEMENTS if each == (quantization.lower() or "f16")), None)
        if element is None:
            raise UnsupportedField("quantize", f"matrices are stored as {', '.join(_ELEMENTS)}, not {quantization}")
        self._tell(Step("convert"))
        with self._store.scratch() as folder:
            source, target = folder / "source", folder / "weights.gguf"
            for name, digest in files.items():
                place = source / _inner(name)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(self._store.blob(digest).absolute())
            try:
                convert_apart(source, target, element=element)
            except CannotConvert as error:
                raise InvalidField("files", str(error)) from None
            return self._taken(target)

    def _require(self, field: str, digest: Digest) -> None:
        if not self._store.holds(digest):
            raise InvalidField(field, f"there is no content {digest} here; POST /api/blobs/{digest} brings it")

    def _facts(self, digest: Digest, field: str) -> Facts:
        try:
            facts = read_facts(self._store.blob(digest))
            if facts.purpose == "model":
                require_model(facts)
        except Broken as error:
            raise InvalidField(field, str(error)) from None
        return facts


def _inner(name: str) -> PurePosixPath:
    """Return where a file lies in its maker's folder. Raises InvalidField for a place outside of it."""
    place = PurePosixPath(name)
    if not place.parts or place.is_absolute() or ".." in place.parts or "\0" in name:
        raise InvalidField(f"files.{name}", "its name is no path within a folder")
    return place


def _texts(recipe: Recipe, base: ModelCard | None) -> Iterator[tuple[str, bytes]]:
    """Yield the small documents of a model, by kind: those of the recipe before those of its base."""
    before = base.model.defaults if base is not None else Defaults()
    if template := recipe.template or before.template:
        yield "template", template.encode()
    for licence in dict.fromkeys((*(base.licences if base else ()), *recipe.licences)):
        yield "license", licence.encode()
    if system := recipe.system or before.system:
        yield "system", system.encode()
    if parameters := {**before.parameters, **recipe.parameters}:
        written = msgspec.json.encode(parameters)
        try:
            read_parameters(written)
        except Broken as error:
            raise InvalidField("parameters", str(error)) from None
        yield "params", written
    if messages := recipe.messages or before.messages:
        yield "messages", msgspec.json.encode(messages)
