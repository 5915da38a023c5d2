"""Write `docs/compat.md`: every endpoint, and what becomes of every field of its body.

Run as `python -m tools.compat_page`, by `make docs`. It reads the tables that the dialects serve by and are tested
against, and adds no facts of its own. Invariant: the same tables, the same page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.ollama.compat import TRAITS as OLLAMA_TRAITS
from diglot.dialects.openai import DIALECT as OPENAI
from diglot.dialects.openai.compat import TRAITS as OPENAI_TRAITS
from diglot.dialects.operation import Dialect, Operation, Trait

PAGE: Final = Path(__file__).parent.parent / "docs/compat.md"
PARTS: Final = (("Ollama", OLLAMA, OLLAMA_TRAITS), ("OpenAI", OPENAI, OPENAI_TRAITS))
INTRODUCTION: Final = """# What becomes of every field

Every field that a client may send is **honoured**, **refused** by its name with a 400, or **without effect** for a
reason that stands here. What a line says of a field holds for what is inside it, unless that has a line of its own.

This page is written by `make docs` from the tables of the dialects, which tests hold to what the server does.
"""
_PARAMETER: Final = re.compile(r":\w+}")


def page() -> str:
    """Return the page."""
    return "\n".join((INTRODUCTION, *(line for part in PARTS for line in _part(*part))))


def _part(title: str, dialect: Dialect, traits: Iterable[Trait]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| endpoint | what it does |\n|---|---|"
    yield from (f"| `{_name(operation)}` | {_cell(operation.summary)} |" for operation in dialect.operations)
    yield ""
    for operation, group in groupby(traits, key=lambda trait: trait.operation):
        yield from _fields(operation, tuple(group))


def _fields(operation: str, traits: tuple[Trait, ...]) -> Iterator[str]:
    yield f"### `{operation}`\n"
    plain = [trait.field for trait in traits if trait.support == "honoured" and not trait.note]
    if plain:
        yield f"Honoured: {', '.join(f'`{field}`' for field in plain)}.\n"
    noted = [trait for trait in traits if trait.support != "honoured" or trait.note]
    if noted:
        yield "| field | what becomes of it | note |\n|---|---|---|"
        for _, alike in groupby(noted, key=lambda trait: (trait.support, trait.note)):
            first, *others = alike
            names = ", ".join(_which(trait.field) for trait in (first, *others))
            yield f"| {names} | {_becomes(first)} | {_cell(first.note)} |"
        yield ""


def _name(operation: Operation) -> str:
    return f"{operation.method} {_PARAMETER.sub('}', operation.path)}"


def _which(field: str) -> str:
    return "any other" if field == "*" else f"`{field}`"


def _becomes(trait: Trait) -> str:
    return "no effect" if trait.support == "ignored" else trait.support


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
