"""The store: the models of one folder, listed, found, added, copied and removed.

It holds no model in memory but a memo of the last listing, checked against the files each time. Every
change of names or contents happens under one lock, so that a removal never takes a content that an
addition is about to name. Methods block: callers run them in threads. Neighbours: `reading` (manifest to
model), `files` (atomic writes), `core.ports.ModelStore` (what this fulfils).

Invariant: at any moment, also after a crash, each name stands for a whole model or is reported as broken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from diglot.core.digest import Digest, digests_in
from diglot.core.errors import ModelBroken, ModelNotFound
from diglot.core.model import Model, ModelCard, ModelRef
from diglot.store.anatomy import Facts
from diglot.store.facts import KeptFacts, read_facts
from diglot.store.files import (
    CopyProgress,
    copy_hashed,
    flush,
    incoming,
    locked,
    read_bounded,
    remove_empty,
    scratch,
    settle,
    sweep,
    write_whole,
)
from diglot.store.forgotten import forgotten
from diglot.store.gguf import BrokenHeader
from diglot.store.intake import BlobIntake, HashingFile, require_space, space_told
from diglot.store.layout import Layout
from diglot.store.manifest import CONFIG_TYPE, Broken, Layer, Manifest, config_of, layer_type, read_manifest
from diglot.store.merge import merge
from diglot.store.reading import MAX_MANIFEST, card_of, model_of, require_model, require_model_of, require_projector

LOCK_NAME: Final = ".lock"

_Stamp = tuple[int, int, int]


class Problem(msgspec.Struct, frozen=True):
    """A name on disk that stands for no model that can be run, and why."""

    ref: ModelRef
    reason: str


class Listing(msgspec.Struct, frozen=True):
    """Everything a folder holds: the models, the newest first, and the names that are left out."""

    models: tuple[Model, ...]
    problems: tuple[Problem, ...]


class LocalStore:
    """The models folder `root`. What is derived from weights is kept in `facts`, by default in a folder of `root`.

    A content that is `in_use` is removed only by a later `tidy`.
    """

    def __init__(
        self, root: Path, *, facts: Path | None = None, in_use: Callable[[Path], bool] = lambda _: False
    ) -> None:
        self._layout = Layout(root)
        self._in_use = in_use
        self._leftover: frozenset[Digest] = frozenset()
        self._facts = KeptFacts(facts or root / "facts")
        self._memo: dict[Path, tuple[_Stamp, Model]] = {}

    @property
    def root(self) -> Path:
        """The folder."""
        return self._layout.root

    @property
    def is_empty(self) -> bool:
        """Whether it holds no name, not even a broken one."""
        return next(iter(self._layout.names()), None) is None

    def list(self) -> tuple[Model, ...]:
        """Return all models, the newest first."""
        return self.listing().models

    def listing(self) -> Listing:
        """Return all models, and what is left out with the reason."""
        models: list[Model] = []
        problems: list[Problem] = []
        paths: set[Path] = set()
        for ref, path in self._layout.names():
            try:
                models.append(self._model(ref, path))
            except FileNotFoundError:
                continue  # Removed while we looked.
            except Broken as error:
                problems.append(Problem(ref, str(error)))
            paths.add(path)
        for path in self._memo.keys() - paths:
            self._memo.pop(path, None)
        models.sort(key=lambda model: (-model.modified_at, model.name))
        return Listing(tuple(models), tuple(problems))

    def resolve(self, ref: ModelRef) -> Model:
        """Return the model of that name, in any case of letters. Raises ModelNotFound, ModelBroken."""
        with _told(ref):
            return self._model(*self._find(ref))

    def card(self, ref: ModelRef, *, verbose: bool = False) -> ModelCard:
        """Return all there is to know of a model; long lists only if `verbose`. Raises ModelNotFound, ModelBroken."""
        with _told(ref):
            named, path = self._find(ref)
            return card_of(self._model(named, path), path, layout=self._layout, verbose=verbose)

    def holds(self, digest: Digest) -> bool:
        """Whether that content is there. It then stays, also if it was only left over: somebody is about to name it."""
        with self._locked():
            self._leftover -= {digest}
            return self._holds(digest)

    def blob(self, digest: Digest) -> Path:
        """Where a content lies, or is to lie."""
        return self._layout.blob(digest)

    def intake(self, digest: Digest, *, size: int = 0) -> BlobIntake:
        """Begin to take in a content of `size` bytes (0: unknown). Raises NoSpace when it will not fit."""
        require_space(self._layout.blobs, size)
        with self._locked():
            sweep(self._layout.blobs)
            return BlobIntake(self._layout, digest)

    def install(self, ref: ModelRef, data: bytes) -> frozenset[Digest]:
        """Give a name to the model that a manifest tells of, written as it is.

        Returns the contents that are missing: then nothing is done. Raises ModelBroken when it cannot be run.
        """
        with self._locked():
            with _told(ref):
                named = read_manifest(data).contents
                missing = frozenset(digest for digest in named if not self._holds(digest))
                if not missing:
                    self._require_model(data, named)
            if not missing:
                self._replace(ref, data)
        return missing

    def manifest(self, ref: ModelRef) -> bytes:
        """Return the manifest of a name, byte for byte. Raises ModelNotFound."""
        with _told(ref):
            return read_bounded(self._find(ref)[1], limit=MAX_MANIFEST)

    def add_file(
        self, path: Path, ref: ModelRef, *, licences: Sequence[str] = (), progress: CopyProgress | None = None
    ) -> Model:
        """Add a copy of a GGUF file under a name, which is replaced if it is taken.

        It is never a link: a file that somebody changes later would change a content under its digest.
        Raises ModelBroken when it is no model that can be run, and OSError when it cannot be copied.
        """
        with self._incoming() as (temporary, file):
            digest = Digest(copy_hashed(path, file, progress=progress))
            flush(file)
            try:
                facts = read_facts(temporary)
                require_model(facts)
            except Broken as error:
                raise ModelBroken(str(ref), reason=str(error)) from None
            weights = Layer(media_type=layer_type("model"), digest=str(digest), size=temporary.stat().st_size)
            with self._locked():
                settle(temporary, self._layout.blob(digest))
                texts = [self._keep(layer_type("license"), text.encode()) for text in licences]
                self._name(ref, facts, [weights, *texts])
        return self.resolve(ref)

    def take(self, path: Path, *, progress: CopyProgress | None = None) -> Digest:
        """Add a copy of a file as a content, which a model is about to name. Raises NoSpace, OSError."""
        require_space(self._layout.blobs, path.stat().st_size)
        with space_told(), self._incoming() as (temporary, file):
            digest = Digest(copy_hashed(path, file, progress=progress))
            flush(file)
            with self._locked():
                settle(temporary, self._layout.blob(digest))
        return digest

    def drop(self, contents: Collection[Digest]) -> None:
        """Remove contents that no name stands for."""
        with self._locked():
            self._prune(contents)

    def assemble(self, ref: ModelRef, weights: Digest, *, projector: Digest | None = None) -> Model:
        """Give a name to a model of contents that are here. Raises ModelBroken when it is none; then they go again."""
        contents = [weights, *((projector,) if projector else ())]
        with self._locked(), _told(ref):
            try:
                facts = read_facts(self._layout.blob(weights))
                require_model(facts)
                layers = [self._layer("model", weights)]
                if projector is not None:
                    require_projector(read_facts(self._layout.blob(projector)))
                    layers.append(self._layer("projector", projector))
            except Broken:
                self._prune(contents)
                raise
            self._name(ref, facts, layers)
        return self.resolve(ref)

    def merge(self, ref: ModelRef, parts: Sequence[Digest]) -> Digest:
        """Put weights in several contents, in order, together into one, and return its digest. Raises ModelBroken, NoSpace.

        The parts go, unless another model needs them.
        """
        digest = self.join(ref, [self._layout.blob(part) for part in parts])
        self.drop(frozenset(parts) - {digest})
        return digest

    def join(self, ref: ModelRef, paths: Sequence[Path]) -> Digest:
        """Do the same with files that lie anywhere, and stay."""
        require_space(self._layout.blobs, sum(path.stat().st_size for path in paths))
        with _told(ref), self._incoming() as (temporary, file):
            hashing = HashingFile(file)
            with space_told():
                merge(paths, hashing)
                flush(file)
            digest = Digest(hashing.hexdigest())
            with self._locked():
                settle(temporary, self._layout.blob(digest))
        return digest

    def copy(self, source: ModelRef, target: ModelRef) -> Model:
        """Give a model a second name, which is replaced if it is taken. Raises ModelNotFound."""
        with self._locked():
            self._replace(target, self._find(source)[1].read_bytes())
        return self.resolve(target)

    def remove(self, ref: ModelRef) -> None:
        """Remove a name, and the contents that no other name needs. Raises ModelNotFound."""
        with self._locked():
            _, path = self._find(ref)
            contents = digests_in(path.read_bytes())
            path.unlink()
            remove_empty(path.parent, below=self._layout.manifests)
            self._prune(contents)

    def tidy(self) -> bool:
        """Remove what stayed because it was in use. Returns whether nothing is left of that.

        What nothing has named for long goes as well: a crash or a client that changed its mind left it.
        """
        with self._locked():
            self._prune(self._leftover | forgotten(self._layout.blobs))
        return not self._leftover

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Make a temporary folder on the store's disk; it is gone afterwards, after a crash at the next addition."""
        with ExitStack() as stack:
            with self._locked():
                sweep(self.root)
                folder = stack.enter_context(scratch(self.root))
            yield folder

    @contextmanager
    def _incoming(self) -> Iterator[tuple[Path, BinaryIO]]:
        """Open a temporary file among the contents, and clear away those that a crash left there."""
        with ExitStack() as stack:
            with self._locked():
                sweep(self._layout.blobs)
                opened = stack.enter_context(incoming(self._layout.blobs))
            yield opened

    def _require_model(self, data: bytes, contents: Collection[Digest]) -> None:
        """Raise Broken unless a manifest tells of a model that can be run; its contents then go again."""
        try:
            require_model_of(data, layout=self._layout, facts=self._facts)
        except Broken:
            self._prune(contents)
            raise

    def _find(self, ref: ModelRef) -> tuple[ModelRef, Path]:
        """Return the name as it stands on disk, and its manifest. Raises ModelNotFound."""
        path = self._layout.find(ref)
        if path is None:
            raise ModelNotFound(str(ref))
        return self._layout.ref(path), path

    def _model(self, ref: ModelRef, path: Path) -> Model:
        """Return the model of a manifest, from the memo if nothing changed. Raises Broken, FileNotFoundError."""
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
        known = self._memo.get(path)
        if known is not None and known[0] == stamp and known[1].weights.is_file():
            return known[1]
        model = model_of(ref, path, layout=self._layout, facts=self._facts)
        self._memo[path] = (stamp, model)
        return model

    def _holds(self, digest: Digest) -> bool:
        return self._layout.blob(digest).is_file()

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self._layout.root / LOCK_NAME)

    def _name(self, ref: ModelRef, facts: Facts, contents: Sequence[Layer]) -> None:
        """Write config and manifest: from here on the name stands for these contents."""
        config = config_of(facts.details, facts.capabilities, contents)
        layer = self._keep(CONFIG_TYPE, msgspec.json.encode(config))
        self._replace(ref, msgspec.json.encode(Manifest(config=layer, layers=tuple(contents))))

    def _layer(self, kind: str, digest: Digest) -> Layer:
        size = self._layout.blob(digest).stat().st_size
        return Layer(media_type=layer_type(kind), digest=str(digest), size=size)

    def _replace(self, ref: ModelRef, data: bytes) -> None:
        """Write a manifest, and drop what only the one before it needed."""
        path = self._layout.manifest(ref)
        before = digests_in(path.read_bytes()) if path.is_file() else frozenset()
        with space_told(len(data)):
            write_whole(path, data)
        self._prune(before)

    def _keep(self, media_type: str, data: bytes) -> Layer:
        """Write a small content, unless it is there, and return its layer."""
        digest = Digest(hashlib.sha256(data).hexdigest())
        if not self._holds(digest):
            with space_told(len(data)):
                write_whole(self._layout.blob(digest), data)
        return Layer(media_type=media_type, digest=str(digest), size=len(data))

    def _prune(self, candidates: Collection[Digest]) -> None:
        """Remove those contents that no manifest names, not even a damaged one."""
        if not candidates:
            return
        used = frozenset[Digest]().union(*(digests_in(path.read_bytes()) for _, path in self._layout.names()))
        unnamed = frozenset(candidates) - used
        busy = frozenset(digest for digest in unnamed if self._in_use(self._layout.blob(digest)))
        for digest in unnamed - busy:
            self._layout.blob(digest).unlink(missing_ok=True)
            self._facts.forget(digest)
        self._leftover = self._leftover - unnamed - used | busy


@contextmanager
def _told(ref: ModelRef) -> Iterator[None]:
    """Turn what is wrong with a model on disk into what is told of the name that was asked for."""
    try:
        yield
    except FileNotFoundError:
        raise ModelNotFound(str(ref)) from None  # Removed while we looked.
    except (Broken, BrokenHeader) as error:
        raise ModelBroken(str(ref), reason=str(error)) from None
