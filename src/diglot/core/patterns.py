r"""Regular expressions as clients write them into schemas: what of them a grammar engine can take.

A pattern is scanned once, never compiled and never run. What passes is the common part of ECMA-262 (which
JSON Schema names) and of the automata that grammar engines build: no look-around, no back-references, and
repetitions bounded so that unrolling them stays small. Neighbour: `core.schema`.

Invariant: time and memory are linear in the length of the pattern.
"""

from __future__ import annotations

import re
from typing import Final

MAX_LENGTH: Final = 4096
MAX_GROUPS: Final = 64
MAX_UNROLLED: Final = 20_000

_REPEAT = re.compile(r"\{(\d{1,7})(?:(,)(\d{0,7}))?\}", re.ASCII)
_GROUP = re.compile(r"\?(?::|P?<[A-Za-z_]\w{0,63}>)", re.ASCII)
_ESCAPE = re.compile(
    r"x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|[pP](?:[A-Z]|\{[\w=-]{1,64}\})|.", re.DOTALL
)


class InvalidPattern(ValueError):
    """The text is no pattern; the message says why."""


class UnsupportedPattern(ValueError):
    """The pattern may be right, but no grammar can enforce it; the message says why."""


def check_pattern(text: str) -> None:
    """Raise InvalidPattern or UnsupportedPattern unless `text` is a pattern that can be enforced."""
    if len(text) > MAX_LENGTH:
        raise InvalidPattern(f"a pattern may have {MAX_LENGTH} characters")
    _Scan(text).run()


class _Scan:
    """One pass. `sizes` holds, for each open group, how many steps it unrolls to so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.sizes = [0]
        self.last = 0  # The size of what a repetition would repeat; 0 where there is nothing.

    def run(self) -> None:
        while self.at < len(self.text):
            mark = self.text[self.at]
            self.at += 1
            match mark:
                case "(":
                    self.open()
                case ")":
                    self.close()
                case "*" | "+" | "?":
                    self.repeat(1)
                case "{":
                    self.bounds()
                case "|" | "^" | "$":
                    self.last = 0
                case "[":
                    self.characters()
                case "\\":
                    self.escape()
                case _:
                    self.add(1)
        if len(self.sizes) > 1:
            raise InvalidPattern("a group is not closed")

    def add(self, size: int) -> None:
        self.sizes[-1] += size
        self.last = size
        if self.sizes[-1] > MAX_UNROLLED:
            raise InvalidPattern(f"its repetitions unroll to more than {MAX_UNROLLED} steps")

    def open(self) -> None:
        if len(self.sizes) > MAX_GROUPS:
            raise InvalidPattern(f"its groups are nested deeper than {MAX_GROUPS}")
        if self.text.startswith("?", self.at):
            kind = _GROUP.match(self.text, self.at)
            if kind is None:
                if self.text.startswith(("?=", "?!", "?<=", "?<!"), self.at):
                    raise UnsupportedPattern("look-around cannot be enforced")
                raise InvalidPattern("a group of an unknown kind")
            self.at = kind.end()
        self.sizes.append(0)
        self.last = 0

    def close(self) -> None:
        size = self.sizes.pop()
        if not self.sizes:
            raise InvalidPattern("a group is closed that was not opened")
        self.add(max(size, 1))

    def repeat(self, times: int) -> None:
        if not self.last:
            raise InvalidPattern("there is nothing to repeat")
        self.add(self.last * max(times - 1, 0))
        self.last = 0
        if self.text.startswith("?", self.at):  # As few as possible: the same set of texts.
            self.at += 1

    def bounds(self) -> None:
        found = _REPEAT.match(self.text, self.at - 1)
        if found is None:
            raise InvalidPattern("a { that is no repetition must be escaped")
        low = int(found[1])
        high = int(found[3]) if found[3] else low
        if high < low:
            raise InvalidPattern("a repetition ends before it begins")
        self.at = found.end()
        self.repeat(high)

    def characters(self) -> None:
        if self.text.startswith("^", self.at):
            self.at += 1
        begin = self.at
        while self.at < len(self.text):
            mark = self.text[self.at]
            self.at += 1
            if mark == "]" and self.at - 1 > begin:
                self.add(1)
                return
            if mark == "\\":
                self.at += 1
        raise InvalidPattern("a set of characters is not closed")

    def escape(self) -> None:
        found = _ESCAPE.match(self.text, self.at)
        if found is None:
            raise InvalidPattern("a backslash stands at its end")
        self.at = found.end()
        if found[0] in "123456789k":
            raise UnsupportedPattern("back-references cannot be enforced")
        if found[0] in "bB":
            raise UnsupportedPattern("word boundaries cannot be enforced")
        self.add(1)
