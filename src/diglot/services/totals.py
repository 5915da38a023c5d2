"""Totals: what has been asked of each model since the server began, as plain numbers.

Each visit is added when it ends; loads and crashes are told as they happen. Only models that exist have totals, and only
the last few hundred that were used, so that no client can make the numbers grow. It knows no format: `http.metrics`
shows them.

Invariant: numbers only grow, as long as their model is remembered.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Final

import msgspec

from diglot.services.visit import Visit

BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""Upper bounds in seconds: from a token out of the cache to an hour's work on a small machine."""
_MOST_MODELS = 256
_NS = 1e-9


class Occupancy(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a model is taken now: slots, busy ones, requests that wait, and bytes of memory."""

    model: str
    slots: int
    busy: int
    waiting: int
    memory: int


class Histogram:
    """How often a time was how long. `counts` holds one number for each of `BOUNDS`, and one for what is longer."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.sum = 0.0

    def observe(self, nanoseconds: int) -> None:
        """Count a time."""
        seconds = nanoseconds * _NS
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds


class ModelTotals:
    """The numbers of one model. Tokens are counted for what came to an end and for prompts that were begun."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()  # By kind and outcome.
        self.input_tokens = self.output_tokens = self.cached_tokens = 0
        self.queue = Histogram()
        self.loading = Histogram()
        self.first_token = Histogram()
        self.generation = Histogram()
        self.whole = Histogram()
        self.loads: Counter[str] = Counter()
        self.load = Histogram()
        self.crashes = 0
        self.compactions: Counter[str] = Counter()
        self.compacted_from = self.compacted_to = 0

    def add(self, visit: Visit) -> None:
        """Count a visit that has ended."""
        self.requests[(visit.kind, visit.outcome)] += 1
        self.input_tokens += visit.usage.input
        self.output_tokens += visit.usage.output
        self.cached_tokens += visit.usage.cached
        for stage, histogram in (("queue", self.queue), ("load", self.loading), ("decode", self.generation)):
            if stage in visit.spent:
                histogram.observe(visit.spent[stage])
        if visit.first_token is not None:
            self.first_token.observe(visit.first_token)
        self.whole.observe(visit.total)
        for folded in visit.folded:
            self.compactions[folded.outcome] += 1
            self.compacted_from += folded.before
            self.compacted_to += folded.after


class Totals:
    """The numbers of all models, by their full names."""

    def __init__(self) -> None:
        self._models: OrderedDict[str, ModelTotals] = OrderedDict()

    def __iter__(self) -> Iterator[tuple[str, ModelTotals]]:
        """Give each model and its numbers, in the order of the names."""
        return iter(sorted(self._models.items()))

    def of(self, model: str) -> ModelTotals:
        """Return the numbers of a model that exists. Those of the model used longest ago are forgotten for a new one."""
        found = self._models.get(model)
        if found is None:
            found = self._models[model] = ModelTotals()
        self._models.move_to_end(model)
        while len(self._models) > _MOST_MODELS:
            self._models.popitem(last=False)
        return found

    def add(self, visit: Visit) -> None:
        """Count a visit that has ended, if a model was found for it."""
        if visit.model:
            self.of(visit.model).add(visit)

    def loaded(self, model: str, nanoseconds: int, outcome: str) -> None:
        """Count a load that has ended: `ok`, `cancelled`, or the kind of a fault."""
        totals = self.of(model)
        totals.loads[outcome] += 1
        totals.load.observe(nanoseconds)
