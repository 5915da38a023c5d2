"""A store in a folder of its own, and the file of a small model."""

from pathlib import Path

import pytest

from diglot.store.local import LocalStore
from diglot.store.starter import fetch_starter
from tests.store.gguf_bytes import gguf

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "models")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    file = tmp_path / "weights.gguf"
    file.write_bytes(gguf())
    return file


@pytest.fixture(scope="session")
def starter_models() -> LocalStore:
    """The starter models, fetched once for this checkout, whichever test comes first."""
    store = LocalStore(ROOT / ".tools" / "models")
    fetch_starter(store)
    return store
