"""Fold: a conversation made ready for its window, before it is answered.

Compaction items are opened and put in place of what they stand for. Then, where the client or the operator
wishes it and the prompt is longer than agreed, it is folded up first and the answer goes on from there. For
protocols that have no compaction item to carry, what was folded is remembered for a while, so that the next
request of the same conversation need not be folded again.

Neighbours: `core.compaction.window` for the rule, `services.compact` for the work, `services.generate` calls.

Invariant: nothing is folded that nobody wished to be folded; at most once for a request.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from msgspec.structs import replace

from diglot.core.compaction.window import effective, is_kept, is_shown_summary, newest_compaction, shown
from diglot.core.errors import Fault, NothingGained
from diglot.core.events import Compacted, Event
from diglot.core.items import Compaction, Item
from diglot.core.ports import Engine
from diglot.core.request import Compacting, Conversation, Generation, Overflow
from diglot.services.compact import Compact
from diglot.services.envelopes import Envelopes
from diglot.services.keeping import kept_within
from diglot.services.tally import Tally
from diglot.services.visit import Folded, Visit, kind_of

log = logging.getLogger(__name__)

_REMEMBERED = 64
_ANSWER_SHARE = 8  # One part in eight of the window is kept for the answer.


class Fold:
    """Makes conversations ready. `always` folds every conversation that would not fit, whoever asks."""

    def __init__(self, envelopes: Envelopes, compact: Compact, *, always: bool = False) -> None:
        self._envelopes = envelopes
        self._compact = compact
        self._always = always
        self._memory: OrderedDict[str, Compaction] = OrderedDict()

    def opened(self, request: Generation) -> Generation:
        """Return the request with what its compaction items stand for. Raises `BrokenCompaction`."""
        if not isinstance(request.prompt, Conversation):
            return request
        items = request.prompt.items
        if self._folds_anything(request):
            items = self._recalled(items)
        return replace(request, prompt=Conversation(effective(items, self._envelopes.open)))

    def _folds_anything(self, request: Generation) -> bool:
        return request.overflow is Overflow.COMPACT or (self._always and request.overflow is Overflow.ERROR)

    def wish(self, request: Generation, window: int) -> Compacting | None:
        """Return what is wished for: what the client said, else what the operator set."""
        if not isinstance(request.prompt, Conversation):
            return None
        if request.compacting is not None:
            return request.compacting
        return Compacting(threshold=window - window // _ANSWER_SHARE) if self._folds_anything(request) else None

    async def within(self, request: Generation, engine: Engine) -> Generation:
        """Return the request with no more old user messages than fit. Only where something was folded up before."""
        prompt = request.prompt
        if not isinstance(prompt, Conversation) or not any(map(is_shown_summary, prompt.items)):
            return request
        first = next(index for index, item in enumerate(prompt.items) if is_shown_summary(item))
        kept = await kept_within(Tally(engine, request), prompt.items[:first])
        return replace(request, prompt=Conversation((*kept, *prompt.items[first:])))

    async def __call__(
        self, request: Generation, engine: Engine, wish: Compacting, *, visit: Visit
    ) -> AsyncGenerator[Event]:
        """Yield progress and `Compacted` where the wish comes true, nothing where it need not."""
        assert isinstance(request.prompt, Conversation)  # noqa: S101
        tally = Tally(engine, request)
        if not wish.instead and wish.threshold is not None and await tally(request.prompt.items) <= wish.threshold:
            return
        try:
            async with aclosing(self._compact(engine, request, threshold=wish.threshold, tally=tally)) as events:
                async for event in events:
                    if isinstance(event, Compacted):
                        visit.folded.append(Folded("ok", before=event.before, after=event.after))
                        visit.add(event.usage)
                    yield event
        except Fault as fault:
            visit.folded.append(Folded(kind_of(fault)))
            if wish.instead or not isinstance(fault, NothingGained):
                raise
            log.info("a conversation over its threshold could not be made shorter")  # It is answered as it is.

    def after(self, request: Generation, event: Compacted, original: Generation) -> Generation:
        """Return the request as it stands after a compaction, and remember it where the client cannot."""
        assert isinstance(request.prompt, Conversation)  # noqa: S101
        if self._folds_anything(original) and isinstance(original.prompt, Conversation):
            self._remember(original.prompt.items, event.item)
        kept = tuple(item for item in request.prompt.items if is_kept(item))
        summary = shown(event.item.payload, self._envelopes.open(event.item))
        return replace(request, prompt=Conversation((*kept, *summary)), compacting=None)

    def _remember(self, items: tuple[Item, ...], item: Compaction) -> None:
        self._memory[_digests(items)[-1]] = item
        while len(self._memory) > _REMEMBERED:
            self._memory.popitem(last=False)

    def _recalled(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """Put the longest remembered compaction of a beginning of this conversation in its place."""
        if not self._memory or newest_compaction(items):
            return items
        for length, digest in reversed(list(enumerate(_digests(items), start=1))):
            item = self._memory.get(digest)
            if item is not None:
                self._memory.move_to_end(digest)
                return (*items[:length], item, *items[length:])
        return items


def _digests(items: tuple[Item, ...]) -> list[str]:
    """Return the digest of every beginning of a conversation."""
    running = hashlib.sha256()
    digests = []
    for item in items:
        running.update(msgspec.json.encode(item))
        digests.append(running.hexdigest())
    return digests
