"""A store in a folder of its own, and the file of a small model."""

from pathlib import Path

import pytest

from diglot.store.local import LocalStore
from tests.store.gguf_bytes import gguf


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "models")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    file = tmp_path / "weights.gguf"
    file.write_bytes(gguf())
    return file
