"""The marker by which a test says which field it shows, and what all tests of this folder show together."""

from pathlib import Path

import pytest

from tests.dialects.openai.material import SHOWN, Shown

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shows(operation, *fields): the fields of the manifest that a test shows")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note what is shown before any test is deselected."""
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    marks = [mark.args for item in ours for mark in item.iter_markers("shows")]
    config.stash[SHOWN] = Shown(
        files=frozenset(item.path.name for item in ours),
        fields=frozenset((operation, field) for operation, *fields in marks for field in fields),
    )
