"""No import goes through a wall of the house, and each kind of wall is seen to hold."""

import pytest

from tests.house.source import ROOT, Source, sources
from tests.house.walls import stays_in_its_room


def test_the_house_keeps_its_walls() -> None:
    found = [f"{source.path}:{wrong}" for source in sources("src") for wrong in stays_in_its_room(source)]
    assert not found, "\n".join(found)


def test_every_room_is_a_package() -> None:
    """import-linter does not look into a folder without `__init__.py`."""
    folders = {path.parent for path in (ROOT / "src").rglob("*.py")}
    assert not [folder.name for folder in folders if not (folder / "__init__.py").exists()]


@pytest.mark.parametrize(
    ("path", "statement"),
    [
        ("core/items.py", "import os"),
        ("core/items.py", "from datetime import datetime"),
        ("core/items.py", "from diglot.framing import sse"),
        ("services/generate.py", "from diglot.store.layout import Layout"),
        ("services/generate.py", "def f():\n    import diglot.settings"),
        ("dialects/ollama/chat.py", "from uuid import uuid4"),
        ("dialects/ollama/chat.py", "from starlette.requests import Request"),
        ("store/layout.py", "import httpx2"),
        ("http/serve.py", "import sqlite3"),
        ("app.py", "import pydantic"),
    ],
)
def test_an_import_through_a_wall_is_seen(path: str, statement: str) -> None:
    assert list(stays_in_its_room(Source(f"src/diglot/{path}", statement)))


@pytest.mark.parametrize(
    ("path", "statement"),
    [
        ("core/items.py", "from collections.abc import Mapping"),
        ("services/generate.py", "import asyncio\nfrom diglot.core.items import Message"),
        ("store/fetch/web.py", "import httpx2"),
        ("store/registry/pull.py", "import httpx2"),
        ("http/__init__.py", "from starlette.applications import Starlette"),
    ],
)
def test_a_door_is_open(path: str, statement: str) -> None:
    assert not list(stays_in_its_room(Source(f"src/diglot/{path}", statement)))
