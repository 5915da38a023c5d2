"""Where Codex is, which `tools/setup dev` installs."""

from pathlib import Path

import pytest

from tests.codex.agent import OLDER, Codex


@pytest.fixture
def codex(node: Path, tmp_path: Path) -> Codex:
    """The newest Codex."""
    return Codex(node, tmp_path)


@pytest.fixture
def older_codex(node: Path, tmp_path: Path) -> Codex:
    """The last Codex that can be told to use `/v1/responses/compact`."""
    return Codex(node, tmp_path, program=OLDER)
