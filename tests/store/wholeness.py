"""What holds of every store at any time: the invariant that crashes, crowds and machines are held to."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from diglot.core.digest import digests_in
from diglot.core.model import ModelRef
from diglot.store.local import LocalStore

Identity = tuple[str, str]
"""The digest of a model's weights, and its system text."""


def require_whole(root: Path) -> dict[ModelRef, Identity]:
    """Show that every name stands for a model whose contents are all here, with the digests they are named by; returns what there is."""
    store = LocalStore(root)
    listing = store.listing()
    assert listing.problems == ()
    for model in listing.models:
        for digest in digests_in(store.manifest(model.ref)):
            assert hashlib.sha256(store.blob(digest).read_bytes()).hexdigest() == digest.hex
    return {
        model.ref: (hashlib.sha256(model.weights.read_bytes()).hexdigest(), model.defaults.system)
        for model in listing.models
    }


def require_tidy(root: Path) -> None:
    """Show that of what was left over nothing stays, once it is old and somebody adds something."""
    then = time.time() - 30 * 86400
    for path in (root / "blobs").glob("*"):
        os.utime(path, (then, then))
    store = LocalStore(root)
    with store.scratch():
        pass
    intake = store.intake(next(iter(digests_in(b"sha256:" + b"0" * 64))))
    intake.close()
    assert store.tidy()
    named = {
        str(digest).replace(":", "-") for model in store.list() for digest in digests_in(store.manifest(model.ref))
    }
    assert {path.name for path in (root / "blobs").iterdir()} == named
    assert not list(root.glob(".incoming-*"))
