"""What was forgotten among the contents: by a crash, or by a client that sent a content and never named it.

Contents are only told of, since a manifest may name them; parts of contents that nobody has gone on with for
long are removed. Neighbours: `fetch.partial` (what a part is), `local` (which asks).

Invariant: nothing that is younger than a day is touched.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from diglot.core.digest import Digest

A_DAY: Final = 86400.0
A_WEEK: Final = 7 * A_DAY
_PARTIAL: Final = "-partial"


def forgotten(blobs: Path) -> frozenset[Digest]:
    """Return the contents that are older than a day, and remove parts that nobody has gone on with for a week."""
    now = time.time()
    old: set[Digest] = set()
    for path in blobs.glob("sha256-*"):
        with suppress(OSError, ValueError):  # Gone meanwhile; no content.
            age = now - path.stat().st_mtime
            if _PARTIAL in path.name:
                if age > A_WEEK:
                    _remove_unless_open(path)
            elif age > A_DAY:
                old.add(Digest.parse(path.name))
    return frozenset(old)


def _remove_unless_open(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)  # Raises where somebody fetches it.
        path.unlink()
    finally:
        os.close(number)
