"""The pages of the documentation, taken apart: fenced blocks, links, what they name. It judges nothing."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted(
    page.relative_to(ROOT).as_posix() for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
)
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block and the line of its page that it begins on."""

    page: str
    line: int
    language: str
    text: str


def text_of(page: str) -> str:
    """Return a page."""
    return (ROOT / page).read_text("utf-8")


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = text_of(page)
    return [Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2]) for found in _BLOCK.finditer(text)]


def links_of(page: str) -> Iterator[str]:
    """Give the targets of the links of a page that lead to other files of the repository."""
    for target in _LINK.findall(_BLOCK.sub("", text_of(page))):
        if not re.match(r"\w+:|#", target):
            yield target.partition("#")[0]
