"""Calls that a server itself took apart, put together again.

A call comes as a name and pieces of its arguments; the next index, or the end, says that it is whole. Some servers
count every call as the first or count none: there a name under a new id begins the next one.
Neighbours: `answer` feeds this.

Invariant: a call is given once, whole, with arguments that are a JSON object; anything else is not given.
"""

from __future__ import annotations

import msgspec

from diglot.core.foreign import UNREADABLE
from diglot.core.tools import WrittenCall
from diglot.engines.peer.chunks import CallChunk

Whole = tuple[WrittenCall, str | None]
"""A call and the id that the server gave it."""


class CallPieces:
    """Feed pieces of calls, get whole ones."""

    def __init__(self) -> None:
        self._index = 0
        self._id: str | None = None
        self._name = ""
        self._arguments: list[str] = []

    def feed(self, pieces: list[CallChunk]) -> list[Whole]:
        """Take pieces in; return the calls that are followed by another one."""
        whole: list[Whole] = []
        for piece in pieces:
            index = self._index if piece.index is None else piece.index
            if self._name and (index != self._index or self._renamed(piece)):
                whole.extend(self.close(cut=False))
            self._index = index
            self._id = piece.id or self._id
            if piece.function is not None:
                self._name += piece.function.name or ""
                self._arguments.append(piece.function.arguments or "")
        return whole

    def _renamed(self, piece: CallChunk) -> bool:
        named = piece.function is not None and bool(piece.function.name)
        return named and bool(piece.id and self._id) and piece.id != self._id

    def close(self, *, cut: bool) -> list[Whole]:
        """End the call that is open. `cut`: the answer ended for its length, so an empty call is half a call."""
        name, text, call_id = self._name, "".join(self._arguments), self._id
        self._id, self._name = None, ""
        self._arguments.clear()
        if not name or (cut and not text):
            return []
        try:
            msgspec.json.decode(text or "{}", type=dict[str, msgspec.Raw])
        except UNREADABLE:
            return []
        return [(WrittenCall(name, text or "{}"), call_id)]
