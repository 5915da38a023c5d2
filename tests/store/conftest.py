"""A store in a folder of its own, and the file of a small model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from diglot.store.local import LocalStore
from diglot.store.starter import fetch_starter
from diglot.store.supply import Reach, StoreSupply
from tests.store.arriving import QuickClock
from tests.store.gguf_bytes import gguf
from tests.store.registry import Registry, registry

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "models")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    file = tmp_path / "weights.gguf"
    file.write_bytes(gguf())
    return file


@pytest.fixture
def there() -> Iterator[Registry]:
    """A registry."""
    with registry() as offered:
        yield offered


@pytest.fixture
def elsewhere() -> Iterator[Registry]:
    """Another host."""
    with registry() as offered:
        yield offered


@pytest.fixture
def supply(store: LocalStore, tmp_path: Path) -> StoreSupply:
    """What brings models to the store, in parts of at least 128 KiB over three connections."""
    reach = Reach(identity=tmp_path / "id_ed25519", connections=3, least=1 << 17, stall=2.0)
    return StoreSupply(store, reach, clock=QuickClock())


@pytest.fixture(scope="session")
def starter_models() -> LocalStore:
    """The starter models, fetched once for this checkout, whichever test comes first."""
    store = LocalStore(ROOT / ".tools" / "models")
    fetch_starter(store)
    return store
