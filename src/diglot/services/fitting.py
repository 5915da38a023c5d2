"""Fitting: a summary written so long that it fills its budget and no longer.

The record takes what the prose and the retained items leave. How many characters that is depends on the text, so that
it is written, counted and put right, a few times at most. Where even the shortest record is too long beside the
prose, the prose is cut. Neighbours: `core.compaction.record` writes, `services.compact` calls.

Invariant: the result fits its budget, unless what is retained and a few lines already do not.
"""

from __future__ import annotations

import msgspec

from diglot.core.compaction.abridge import length_of, shortened
from diglot.core.compaction.envelope import Summary
from diglot.core.compaction.record import Record, write_record, write_summary
from diglot.core.compaction.window import shown
from diglot.core.items import Compaction, Item
from diglot.services.envelopes import Envelopes
from diglot.services.tally import Tally

_SHORTEST_RECORD = 200
_SHORTEST_PROSE = 64
_EVERYTHING = 1 << 40
_FULL = 0.97
_AIM = 0.985
_TRIES = 4


class Fitted(msgspec.Struct, frozen=True):
    """A compaction, and the tokens that it takes."""

    item: Compaction
    taken: int


class Fitting:
    """Writes summaries of at most `whole` tokens beside the items `kept`, which are `fixed` tokens.

    `density` is how many characters a token has.
    """

    def __init__(
        self, tally: Tally, envelopes: Envelopes, *, kept: tuple[Item, ...], fixed: int, whole: int, density: float
    ) -> None:
        self._tally = tally
        self._envelopes = envelopes
        self._kept = kept
        self._fixed = fixed
        self._whole = whole
        self._density = density

    async def __call__(self, record: Record, prose: str, retained: tuple[Item, ...]) -> Fitted:
        """Return the longest that was found to fit."""
        complete = len(write_record(record, characters=_EVERYTHING))
        others = len(prose) + sum(map(length_of, retained))
        characters = int(self._whole * _AIM * self._density) - others
        best: Fitted | None = None
        for _ in range(_TRIES):
            characters = max(_SHORTEST_RECORD, min(characters, complete))
            written = await self._written(record, prose, characters=characters, retained=retained)
            fits = written.taken <= self._whole
            if fits and (best is None or written.taken > best.taken):
                best = written
            if characters == (complete if fits else _SHORTEST_RECORD) or (
                fits and written.taken >= self._whole * _FULL
            ):
                break
            characters += int((self._whole * _AIM - written.taken) * self._density)
        least = max(_SHORTEST_RECORD, characters)
        return best or await self._shrunk(record, prose, characters=least, retained=retained)

    async def _shrunk(self, record: Record, prose: str, *, characters: int, retained: tuple[Item, ...]) -> Fitted:
        """Return what fits when everything else gives way, the record first."""
        while True:
            written = await self._written(record, prose, characters=characters, retained=retained)
            if written.taken <= self._whole:
                return written
            if characters > _SHORTEST_RECORD:
                characters = max(_SHORTEST_RECORD, characters // 2)
            elif len(prose) > _SHORTEST_PROSE:
                prose = shortened(prose, len(prose) // 2)
            else:
                return written

    async def _written(self, record: Record, prose: str, *, characters: int, retained: tuple[Item, ...]) -> Fitted:
        """Write the envelope with so much of the record, and count the prompt then."""
        summary = Summary(write_summary(write_record(record, characters=characters), prose), retained)
        item = self._envelopes.write(summary)
        return Fitted(item, await self._tally((*self._kept, *shown(item.payload, summary))) - self._fixed)
