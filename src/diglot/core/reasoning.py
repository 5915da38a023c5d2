"""Reasoning that a model wrote into its text, split from the answer.

Engines split reasoning where the chat template declares its markers. This is for the others: a text that
opens with `<think>` is reasoning until `</think>`. It is deliberately not a parser of markup: a marker
anywhere but at the start is text.

Invariant: any cutting of the same text into deltas gives the same reasoning and the same text.
"""

from __future__ import annotations

import msgspec

_PAIRS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"))
_BLANKS = 64  # White space before a marker; more of it is an answer of its own, and goes on.


class Split(msgspec.Struct, frozen=True):
    """What a piece of text added to either side."""

    reasoning: str = ""
    text: str = ""


class ReasoningSplitter:
    """Feed text in pieces; whatever could still turn out to be a marker is held back until it is sure."""

    def __init__(self) -> None:
        self._held = ""
        self._close: str | None = None
        self._state = "start"
        self._begun = False

    @property
    def thinking(self) -> bool:
        """Whether what came last belongs to the reasoning or its markers."""
        return self._state in ("inside", "after")

    def feed(self, piece: str) -> Split:
        """Take a piece in and return what became certain."""
        if self._state == "answer":
            return Split(text=piece)
        self._held += piece
        if self._state == "start" and not self._opened():
            return self._as_text() if self._state == "answer" else Split()
        if self._state == "after":
            return self._trimmed("")
        return self._inside()

    def close(self) -> Split:
        """End: what was held back is what it looks like."""
        held, self._held = self._held, ""
        if self._state == "inside":
            return Split(reasoning=held)
        if self._state == "after":
            return Split()
        return Split(text=held)

    def _opened(self) -> bool:
        """Decide on the start: opened, answer, or not yet known."""
        head = self._held.lstrip()
        near = len(self._held) - len(head) <= _BLANKS
        for opening, closing in _PAIRS:
            if near and head.startswith(opening):
                self._state, self._close = "inside", closing
                self._held = head[len(opening) :]
                return True
        if not near or not any(opening.startswith(head) for opening, _ in _PAIRS):
            self._state = "answer"
        return False

    def _as_text(self) -> Split:
        held, self._held = self._held, ""
        return Split(text=held)

    def _inside(self) -> Split:
        closing = self._close or ""
        end = self._held.find(closing)
        if end >= 0:
            thought, self._held = self._held[:end], self._held[end + len(closing) :]
            thought = thought if self._begun else thought.lstrip()
            self._state = "after"
            return self._trimmed(thought)
        if not self._begun:
            self._held = self._held.lstrip()
            self._begun = bool(self._held)
        keep = overlap(self._held, closing)
        thought, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return Split(reasoning=thought)

    def _trimmed(self, thought: str) -> Split:
        """Drop the white space between the closing marker and the answer."""
        rest, self._held = self._held.lstrip(), ""
        if not rest:
            return Split(reasoning=thought)
        self._state = "answer"
        return Split(reasoning=thought, text=rest)


def overlap(text: str, marker: str) -> int:
    """Return the length of the longest end of `text` that is a proper start of `marker`."""
    for length in range(min(len(text), len(marker) - 1), 0, -1):
        if text.endswith(marker[:length]):
            return length
    return 0
