"""A stand-in for Hugging Face on loopback: the listing of repositories, and their files.

The listing is what its API gives, as far as `huggingface_hub` reads it. Files come from the machinery of
`tests.store.registry`, so that they may break off and lead elsewhere as well.
"""

# ruff: noqa: D102, N802  http.server names its methods and says what they do

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tests.store.registry import Answers, Registry, digest_of, served

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(Registry):
    """Repositories `owner/name`, with files by path. `closed`: with this token only."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, dict[str, bytes]] = {}
        self.closed = ""
        self.plain: set[str] = set()  # Paths of files that are kept in another way, so that they have no digest.

    def listing(self, repository: str) -> bytes:
        """Return what the API says of a repository."""
        siblings = [
            {"rfilename": path, "size": len(data), "blobId": "0" * 40}
            | (
                {}
                if path in self.plain
                else {"lfs": {"sha256": digest_of(data)[7:], "size": len(data), "pointerSize": 134}}
            )
            for path, data in self.files[repository].items()
        ]
        return json.dumps(
            {"id": repository, "sha": COMMIT, "siblings": siblings, "private": False, "tags": []}
        ).encode()


class HubAnswers(Answers):
    """Answers as Hugging Face does."""

    registry: Hub

    def do_GET(self) -> None:
        there = self.registry
        self.note()
        if there.closed and self.headers.get("Authorization") != f"Bearer {there.closed}":
            self.answer(401, b'{"error":"Repository not found"}', X_Error_Code="RepoNotFound")
            return
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/"):
            repository = path.removeprefix("/api/models/")
            if repository in there.files:
                self.answer(200, there.listing(repository), Content_Type="application/json")
            else:
                self.answer(404, b'{"error":"Repository not found"}', X_Error_Code="RepoNotFound")
            return
        repository, _, file = path[1:].partition(f"/resolve/{COMMIT}/")
        data = there.files.get(repository, {}).get(file)
        if data is None:
            self.answer(404)
        elif there.cdn is not None:
            there.cdn.blobs[digest_of(data)] = data
            self.answer(302, Location=f"{there.cdn.url}/v2/x/y/blobs/{digest_of(data)}")
        else:
            self.give(data, digest_of(data))


@contextmanager
def hub() -> Iterator[Hub]:
    """Run one."""
    with served(Hub(), HubAnswers) as offered:
        yield offered
