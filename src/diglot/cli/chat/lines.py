'''What a person types: one line, or several between three quotes.

    >>> """Why is the sky blue?
    ... In one sentence."""

Neighbours: `session` reads through this. Where the platform has line editing, lines can be edited and
called back; what was typed is kept in memory only.
'''

from __future__ import annotations

from collections.abc import Callable
from typing import Final

FIRST: Final = ">>> "
MORE: Final = "... "
QUOTES: Final = '"""'


def edit_lines() -> None:
    """Have lines edited with the keys one is used to, where the platform can do that."""
    try:
        import readline  # noqa: F401, PLC0415  importing it is what switches it on
    except ImportError:
        return


def read_message(ask: Callable[[str], str] = input) -> str:
    """Return what was typed, without quotes around it. Raises EOFError at its end, KeyboardInterrupt."""
    line = ask(FIRST)
    before, quotes, rest = line.partition(QUOTES)
    if not quotes or (before.strip() and not before.startswith("/")):
        return line.strip()
    lines = []
    while QUOTES not in rest:
        lines.append(rest)
        rest = ask(MORE)
    lines.append(rest.partition(QUOTES)[0])
    return (before + "\n".join(lines)).strip()
