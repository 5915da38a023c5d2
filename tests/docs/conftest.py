"""A real server for the examples of the documentation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.serving import serving_script

SCRIPT: Final = {"replies": [{"say": "Hello yourself, from a script."}]}


@pytest.fixture(scope="session")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of `diglot serve` with the scripted engine."""
    with serving_script(tmp_path_factory.mktemp("docs"), SCRIPT, "--log", "debug") as served:
        yield served.url


@pytest.fixture(scope="session")
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to run examples in, so that they see nothing of the checkout."""
    return tmp_path_factory.mktemp("elsewhere")
