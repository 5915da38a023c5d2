"""Files that are whole or absent: atomic writes, copies with a digest, a lock between processes.

Everything the store writes goes through here, into a temporary file beside its place, to the disk, and
then by rename. A temporary file or folder begins with `TEMPORARY`, which no reader takes for a part of the
store, and is locked as long as its maker lives, so that what a crash left behind can be told and swept.
Neighbours: `layout` knows the names, `local` decides what is written.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

TEMPORARY: Final = ".incoming-"
_CHUNK: Final = 1 << 20

CopyProgress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""


class TooLarge(Exception):
    """A file is longer than anything of its kind is."""


def read_bounded(path: Path, *, limit: int) -> bytes:
    """Return the whole of a small file. Raises TooLarge over `limit` bytes, and OSError."""
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise TooLarge(f"{path.name} is longer than {limit} bytes")
    return data


def write_whole(path: Path, data: bytes, *, lasting: bool = True) -> None:
    """Write `data` to `path` so that a reader sees all of it or what was there before.

    What is not `lasting` may be gone or torn after a power cut: waiting for the disk takes longer than making it anew.
    """
    with incoming(path.parent) as (temporary, file):
        file.write(data)
        if lasting:
            flush(file)
        else:
            file.flush()
        settle(temporary, path, lasting=lasting)


@contextmanager
def incoming(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Open a new temporary file in `folder`; it is gone afterwards unless it was settled."""
    folder.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=TEMPORARY, dir=folder)
    temporary = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield temporary, file
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Make a new temporary folder in `folder`; it is gone afterwards with all that is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=folder) as name:
        number = os.open(name, os.O_RDONLY)
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(number)


def sweep(folder: Path) -> None:
    """Remove the temporary files and folders in `folder` whose makers are gone."""
    for path in folder.glob(f"{TEMPORARY}*"):
        try:
            number = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # Settled or gone meanwhile.
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # Somebody is at it.
        else:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        finally:
            os.close(number)


def flush(file: BinaryIO) -> None:
    """Bring what was written to the disk."""
    file.flush()
    os.fsync(file.fileno())


def settle(temporary: Path, path: Path, *, lasting: bool = True) -> None:
    """Move a temporary file that is on the disk to its place, readable by all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.chmod(0o644)
    temporary.replace(path)
    if lasting:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring a folder's list of names to the disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def copy_hashed(source: Path, target: BinaryIO | None, *, progress: CopyProgress | None = None) -> str:
    """Return the sha256 of `source` in hex, and write its bytes to `target` on the way."""
    digest = hashlib.sha256()
    done = 0
    with source.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            if target is not None:
                target.write(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, size)
    return digest.hexdigest()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path` against other processes and threads; waits for as long as it takes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield  # Closing the file gives the lock back, also when the process dies.


def remove_empty(folder: Path, *, below: Path) -> None:
    """Remove `folder` and its parents as long as they are empty, up to but without `below`."""
    while below in folder.parents:
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            return  # It holds something.
        folder = folder.parent
