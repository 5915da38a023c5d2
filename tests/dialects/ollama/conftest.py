"""What these tests show: a test marked `shows(operation, field)` stands behind that line of the manifest."""

from typing import Final

import pytest

SHOWN: Final = pytest.StashKey[set[tuple[str, str]]]()
FILES: Final = pytest.StashKey[set[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shows(operation, *fields): the fields of the manifest that a test shows")
    config.stash[SHOWN] = set()
    config.stash[FILES] = set()


def pytest_itemcollected(item: pytest.Item) -> None:
    item.config.stash[FILES].add(item.path.name)
    for mark in item.iter_markers("shows"):
        operation, *fields = mark.args
        item.config.stash[SHOWN].update((operation, field) for field in fields)


@pytest.fixture
def shown(request: pytest.FixtureRequest) -> set[tuple[str, str]]:
    """All that the tests of this folder show; skips where only some of them were collected."""
    here = {path.name for path in request.path.parent.glob("test_*.py")}
    if request.config.stash[FILES] != here:
        pytest.skip("not all files of this folder were collected")
    return request.config.stash[SHOWN]
