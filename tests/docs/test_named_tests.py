"""The pages that say how something is shown name tests, and each of them exists."""

import ast
import re
from functools import cache
from typing import Final

import pytest

from tests.docs.pages import PAGES, ROOT, text_of

NAMED: Final = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
HOLDING: Final = ("SECURITY.md", "docs/reports.md")


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the tests in a file under tests/, none if there is no such file."""
    file = ROOT / "tests" / path
    tree = ast.parse(file.read_text("utf-8")) if file.is_file() else ast.Module(body=[], type_ignores=[])
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds) and node.name.startswith("test_"))


def missing(text: str) -> list[str]:
    """Return the tests that a text names and that are not there."""
    return [f"{path}::{name}" for path, name in NAMED.findall(text) if name not in names_in(path)]


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_exists(page: str) -> None:
    assert not missing(text_of(page))


@pytest.mark.parametrize("page", HOLDING)
def test_every_row_of_such_a_page_names_a_test_or_says_why_there_is_none(page: str) -> None:
    tables = text_of(page).partition("## How each promise is tested")[2] if page == "SECURITY.md" else text_of(page)
    rows = [line for line in tables.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    bare = [row for row in rows if not NAMED.search(row) and "shown by" not in row and "does not apply" not in row]
    assert len(rows) > 20
    assert not bare


def test_a_test_that_is_gone_is_seen() -> None:
    assert missing("`docs/test_named_tests.py::test_nothing`, `docs/nowhere.py::test_x`") == [
        "docs/test_named_tests.py::test_nothing",
        "docs/nowhere.py::test_x",
    ]
    assert not missing("`docs/test_named_tests.py::test_a_test_that_is_gone_is_seen`")
