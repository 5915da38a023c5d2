"""The process that converts: `python -m diglot.store.convert SOURCE TARGET ELEMENT`.

It exists for `convert_apart` only and is no command for people.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from diglot.store.convert import REFUSED, CannotConvert, Element
from diglot.store.convert.writer import convert


def main(source: str, target: str, element: str) -> int:
    """Convert, and return the exit status."""
    try:
        convert(Path(source), Path(target), element=msgspec.convert(element, Element))
    except CannotConvert as error:
        print(error, file=sys.stderr)  # noqa: T201 (how the reason is handed over)
        return REFUSED
    return 0


sys.exit(main(*sys.argv[1:]))
