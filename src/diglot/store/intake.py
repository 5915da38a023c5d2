"""Intake: one content on its way into the store, from a client.

It is hashed while it is written, under a temporary name, and gets its own when it has all come. Neighbours:
`files` (temporary files), `local` (which opens one), `registry.blob` (contents that come in parts).

Invariant: what is settled has the digest that it is named by.
"""

from __future__ import annotations

import errno
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from diglot.core.digest import Digest
from diglot.core.errors import NoSpace, WrongDigest
from diglot.store.files import flush, incoming, settle
from diglot.store.layout import Layout

RESERVE: Final = 64 << 20
"""Bytes that stay free on the disk: a full one would stop more than a download."""


def require_space(folder: Path, needed: int) -> None:
    """Raise NoSpace unless that many bytes fit on the disk of `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if needed and needed + RESERVE > free:
        raise NoSpace(needed=needed, free=free)


@contextmanager
def space_told(needed: int = 0) -> Iterator[None]:
    """Turn a full disk into the fault that says so."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise NoSpace(needed=needed, free=0) from error


class HashingFile:
    """Writes to `file`, and knows the digest of what was written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def write(self, data: bytes) -> None:
        """Write."""
        self._file.write(data)
        self._hash.update(data)

    def hexdigest(self) -> str:
        """Return the sha256 in hex."""
        return self._hash.hexdigest()


class BlobIntake:
    """A content that is to have `digest`. Implements `core.ports.Intake`."""

    def __init__(self, layout: Layout, digest: Digest) -> None:
        self._target = layout.blob(digest)
        self._digest = digest
        self._open = ExitStack()
        with space_told():
            self._temporary, self._file = self._open.enter_context(incoming(layout.blobs))
        self._hashing = HashingFile(self._file)

    def write(self, data: bytes) -> None:
        """Take more of it. Raises NoSpace."""
        with space_told(len(data)):
            self._hashing.write(data)

    def settle(self) -> None:
        """Put it in its place. Raises WrongDigest, NoSpace."""
        found = Digest(self._hashing.hexdigest())
        if found != self._digest:
            raise WrongDigest(expected=str(self._digest), found=str(found))
        with space_told():
            flush(self._file)
            settle(self._temporary, self._target)

    def close(self) -> None:
        """Leave nothing behind of what was not settled."""
        self._open.close()
