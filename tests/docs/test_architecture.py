"""The page of the architecture names files, classes and functions that exist, and all rooms that there are."""

import ast
import re
from typing import Final

import pytest

from tests.docs.pages import PAGES, ROOT, text_of

PAGE: Final = "docs/architecture.md"
SOURCE: Final = ROOT / "src/diglot"
ROOTS: Final = (SOURCE, SOURCE / "engines", ROOT)
NAMED: Final = re.compile(r"`([\w/]+\.py)(?::([\w.]+))?`")


def missing(text: str) -> list[str]:
    """Return what a text names and is not there. Paths begin in the package, among its engines, or in the repository."""
    wrong = []
    for path, name in NAMED.findall(text):
        file = next((root / path for root in ROOTS if (root / path).is_file()), None)
        if file is None or (name and not has(file.read_text("utf-8"), name)):
            wrong.append(f"{path}:{name}" if name else path)
    return wrong


def has(code: str, dotted: str) -> bool:
    """Whether a module defines a function, a class, or a method of a class."""
    body = ast.parse(code).body
    for name in dotted.split("."):
        found = next((node for node in body if getattr(node, "name", None) == name), None)
        if not isinstance(found, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        body = found.body
    return True


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_in_the_code_is_there(page: str) -> None:
    assert not missing(text_of(page))


def test_the_request_is_followed_through_a_dozen_places() -> None:
    steps = text_of(PAGE).partition("## One request")[2].partition("\n## ")[0]
    assert len([name for _, name in NAMED.findall(steps) if name]) >= 12


def test_every_room_has_a_row() -> None:
    rooms = {f"{entry.name}/" if entry.is_dir() else entry.name for entry in SOURCE.iterdir()}
    rows = set(re.findall(r"^\| \d \| `([^`]+)` \|", text_of(PAGE), re.MULTILINE))
    assert rows == {room for room in rooms if not room.startswith("__") and room != "py.typed"}


@pytest.mark.parametrize(
    "gone", ["`services/nowhere.py`", "`app.py:Nobody`", "`services/generate.py:Generate.nothing`", "`app.py:serve.x`"]
)
def test_what_is_gone_is_seen(gone: str) -> None:
    assert missing(f"See {gone}.")


def test_what_is_there_is_found() -> None:
    assert not missing("`services/generate.py:Generate.count`, `app.py:serve`, `tests/docs/pages.py`")
