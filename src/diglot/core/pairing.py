"""Pairing: which result belongs to which call.

Clients reuse ids, leave them empty, answer a call twice or late, or cut the call off from their history. This is
arithmetic over positions; nothing is refused. Neighbour: `core.turns`, which puts results behind their calls.

Invariant: every result belongs to one call or is an orphan. It looks back, to the newest turn with a call of its
id; only a call that nobody answers takes a result that came before it.
"""

from __future__ import annotations

from collections import defaultdict, deque

from diglot.core.items import Item, Message, ToolCall, ToolResult


class Pairing:
    """The pairs of a conversation, by the positions of its items."""

    def __init__(self, items: tuple[Item, ...]) -> None:
        self._results: dict[int, list[ToolResult]] = defaultdict(list)
        self._orphans: dict[str, dict[int, ToolResult]] = defaultdict(dict)
        self._unanswered: dict[str, list[tuple[int, deque[int]]]] = defaultdict(list)  # One entry for each turn.
        self._newest: dict[str, int] = {}
        turn = 0
        for index, item in enumerate(items):
            match item:
                case ToolCall(call_id=call_id):
                    waiting = self._unanswered[call_id]
                    if not waiting or waiting[-1][0] != turn:
                        waiting.append((turn, deque()))
                    waiting[-1][1].append(index)
                    self._newest[call_id] = index
                case ToolResult():
                    self._pair(index, item)
                    turn += 1
                case Message(role="user"):
                    turn += 1
                case _:
                    pass
        self._take_early()

    def results(self, call: int) -> tuple[ToolResult, ...]:
        """Return the results of the call at that position, in order."""
        return tuple(self._results.get(call, ()))

    def is_orphan(self, index: int, result: ToolResult) -> bool:
        """Say whether no call fits the result, which stands at that position."""
        return index in self._orphans.get(result.call_id, {})

    def _pair(self, index: int, result: ToolResult) -> None:
        waiting = self._unanswered[result.call_id]
        if waiting:
            calls = waiting[-1][1]
            self._results[calls.popleft()].append(result)
            if not calls:
                waiting.pop()
        elif result.call_id in self._newest:
            self._results[self._newest[result.call_id]].append(result)
        else:
            self._orphans[result.call_id][index] = result

    def _take_early(self) -> None:
        for call_id, waiting in self._unanswered.items():
            orphans = self._orphans.get(call_id, {})
            calls = (call for _, calls in waiting for call in calls)
            for call, index in zip(calls, tuple(orphans), strict=False):
                self._results[call].append(orphans.pop(index))
