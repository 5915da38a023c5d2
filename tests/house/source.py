"""A Python file of this repository, parsed: what the laws and walls of the house look at.

It judges nothing; `laws` and `walls` do. Paths are relative to the repository, with `/`.
"""

import ast
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


class Source:
    """One file."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text, self.path)

    @property
    def module(self) -> str:
        """The dotted name of a file under src/."""
        return self.path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def imports(self) -> Iterator[tuple[int, str]]:
        """Give line and dotted name of each import, also of those inside functions."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def sources(*folders: str) -> list[Source]:
    """Read all Python files under these folders of the repository."""
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    kept = (path for path in paths if "node_modules" not in path.parts)
    return [Source(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in kept]


def within(name: str, *packages: str) -> bool:
    """Tell whether a dotted name is one of these packages or inside one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)
