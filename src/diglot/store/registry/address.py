"""Addresses: where in a registry a model, its manifest and its contents are."""

from __future__ import annotations

import httpx2
import msgspec

from diglot.core.digest import Digest
from diglot.core.model import ModelRef


class Address(msgspec.Struct, frozen=True):
    """A model at the registry that its name tells of. `plain` is without encryption."""

    ref: ModelRef
    plain: bool = False

    @property
    def root(self) -> httpx2.URL:
        """The repository."""
        scheme = "http" if self.plain else "https"
        return httpx2.URL(f"{scheme}://{self.ref.host}/v2/{self.ref.namespace}/{self.ref.model}/")

    @property
    def manifest(self) -> httpx2.URL:
        """The manifest of the tag."""
        return self.root.join(f"manifests/{self.ref.tag}")

    def blob(self, digest: Digest) -> httpx2.URL:
        """Return the URL of a content."""
        return httpx2.URL(f"{self.root}blobs/{digest}")

    @property
    def uploads(self) -> httpx2.URL:
        """Where contents are handed in."""
        return self.root.join("blobs/uploads/")
