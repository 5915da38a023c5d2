"""Salvage: tool calls that a model wrote into its text.

Small models and new templates write calls that the engine's own parser does not know, and then they come
as text. This reads the common forms (`<tool_call>`, `[TOOL_CALLS]`, `<|python_tag|>`, `<function=...>`, fenced and
bare JSON) and takes a call only when its name was declared: everything else stays text. It is
deliberately no strict parser, and it never repairs JSON. Neighbour: `core.candidates` reads one possible call.

Invariants: any cutting of the same text gives the same pieces, joined; text that cannot become a call is
passed on at once; nothing is lost, for what turns out to be no call comes out as text (but white space and closing
tags behind a call); the work is linear in the length of the text.
"""

from __future__ import annotations

import re
from typing import Final

from diglot.core.candidates import MARKERS, Candidate
from diglot.core.reasoning import overlap
from diglot.core.tools import WrittenCall

_START: Final = re.compile("|".join(map(re.escape, MARKERS)) + r"|^[ \t]*(?:```|{|\[(?!TOOL_CALLS\]))", re.MULTILINE)
_TICKS: Final = re.compile(r"(?:^|\n)[ \t]*(`{1,2})$")
_LISTED: Final = "[TOOL_CALLS]"
_FENCE: Final = "```"
_BLOCK: Final = 1024  # A long piece is read in blocks, so that starting over behind a false start stays cheap.

Piece = str | WrittenCall


class CallSalvage:
    """Feed text in pieces, get text and calls back in order."""

    def __init__(self, declared: frozenset[str]) -> None:
        self._declared = declared
        self._held = ""
        self._fresh = True  # Whether only blanks stand before what is held, on its line.
        self._fenced = False  # Whether a fence is open that holds something else.
        self._candidate: Candidate | None = None
        self._behind: tuple[str, ...] | None = None  # Behind a call: the closing tags that may still come.
        self._text: list[str] = []
        self._out: list[Piece] = []

    def feed(self, piece: str) -> list[Piece]:
        """Take a piece of text in and return what became certain."""
        for at in range(0, len(piece), _BLOCK):
            rest: str | None = piece[at : at + _BLOCK]
            while rest:
                if self._candidate is not None:
                    rest = self._read(self._candidate, rest)
                elif self._behind is not None:
                    rest = self._skip(self._behind, rest)
                else:
                    rest = self._search(rest)
        return self._given()

    def close(self) -> list[Piece]:
        """End: return whatever was held back."""
        if self._candidate is not None:
            self._pass_on(self._candidate.text)
        self._pass_on(self._held)
        self._candidate, self._held, self._behind = None, "", None
        return self._given()

    def _given(self) -> list[Piece]:
        self._end_text()
        out, self._out = self._out, []
        return out

    def _search(self, piece: str) -> str | None:
        """Look for the start of a possible call; return what stands from there on."""
        text = self._held + piece
        for match in _START.finditer(text):
            opener = match.group().lstrip(" \t")
            if opener not in MARKERS and match.start() == 0 and not self._fresh:
                continue
            begin = match.end() - len(opener)
            if opener == "[" and _LISTED.startswith(text[begin:]):  # It may become that marker.
                break
            self._held = ""
            if opener == _FENCE and self._fenced:
                self._fenced = False
                self._pass_on(text[: match.end()])
                return text[match.end() :]
            self._pass_on(text[:begin])
            self._candidate = Candidate(opener, self._declared)
            return text[match.end() :]
        keep = len(text) - self._undecided(text)
        self._pass_on(text[:keep])
        self._held = text[keep:]
        return None

    def _undecided(self, text: str) -> int:
        """Return how many characters at the end could still become the start of a call."""
        tail = max(overlap(text, marker) for marker in MARKERS)
        ticks = _TICKS.search(text)
        if ticks and (ticks.start() > 0 or text[:1] == "\n" or self._fresh):
            tail = max(tail, len(ticks[1]))
        return tail

    def _read(self, candidate: Candidate, piece: str) -> str:
        """Give the candidate more text; return what it leaves."""
        rest = candidate.feed(piece)
        if candidate.calls:
            self._end_text()
            self._out.extend(candidate.calls)
            self._candidate, self._behind, self._fresh = None, candidate.closers, True
        elif candidate.over:
            self._candidate = None
            self._fenced = self._fenced or candidate.text.startswith(_FENCE)
            self._pass_on(candidate.text)
        return rest

    def _skip(self, closers: tuple[str, ...], piece: str) -> str | None:
        """Drop white space and closing tags behind a call; return what stands behind them."""
        text = (self._held + piece).lstrip()
        self._held = ""
        for index, closer in enumerate(closers):
            if text.startswith(closer):
                self._behind = closers[index + 1 :]
                return text[len(closer) :]
        if any(closer.startswith(text) for closer in closers):
            self._held = text
            return None
        self._behind = None if text else closers
        return text or None

    def _pass_on(self, text: str) -> None:
        """Give out text that is certain."""
        if not text:
            return
        _, newline, line = text.rpartition("\n")
        self._fresh = not line.strip(" \t") and (bool(newline) or self._fresh)
        self._text.append(text)

    def _end_text(self) -> None:
        if self._text:
            self._out.append("".join(self._text))
            self._text.clear()
