"""`GET /metrics`: what has been done so far and what goes on now, for Prometheus.

It reads numbers that are there already, waits for nothing and asks no engine, so that it answers while all slots work.
Models are named only where they exist, operations only as the tables name them: no client can make the page grow.
Neighbours: `services.totals` and `journal` count, `obs.exposition` writes the text. `docs/observing.md` tells what each
family means.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Final

from starlette.types import Receive, Scope, Send

from diglot.dialects.operation import Rendered
from diglot.http.journal import Journal, entry_of
from diglot.http.reply import send_whole
from diglot.obs.exposition import OPENMETRICS, PLAIN, Family, Labels, counter, exposition, gauge, histogram
from diglot.services.desk import Desk
from diglot.services.totals import BOUNDS, Histogram, ModelTotals, Occupancy, Totals

OPERATION: Final = "GET /metrics"
_TIMES: Final[tuple[tuple[str, str, Callable[[ModelTotals], Histogram]], ...]] = (
    ("queue", "waiting for a slot of the model", attrgetter("queue")),
    ("load_wait", "waiting for the model to be in memory", attrgetter("loading")),
    ("time_to_first_token", "from a request's arrival to its first token", attrgetter("first_token")),
    ("generation", "from the first token of an answer to the last", attrgetter("generation")),
    ("request", "from a request's arrival to the end of its answer", attrgetter("whole")),
    ("load", "one load of the model", attrgetter("load")),
)
_TOKENS: Final[tuple[tuple[str, str, Callable[[ModelTotals], float]], ...]] = (
    ("input_tokens", "Tokens of prompts", attrgetter("input_tokens")),
    ("cached_tokens", "Tokens of prompts that were in the cache", attrgetter("cached_tokens")),
    ("output_tokens", "Tokens of answers", attrgetter("output_tokens")),
    ("engine_crashes", "Engines that died by themselves", attrgetter("crashes")),
    ("compaction_tokens_before", "Tokens of conversations before they were compacted", attrgetter("compacted_from")),
    ("compaction_tokens_after", "Tokens of the same afterwards", attrgetter("compacted_to")),
)
_NOW: Final[tuple[tuple[str, str, Callable[[Occupancy], float]], ...]] = (
    ("slots", "Answers that the model makes at the same time", attrgetter("slots")),
    ("slots_busy", "Slots that are taken", attrgetter("busy")),
    ("queue_length", "Requests that wait for a slot", attrgetter("waiting")),
    ("model_memory_bytes", "Memory of the loaded model", attrgetter("memory")),
)


class Metrics:
    """An ASGI application. Shows OpenMetrics to whoever asks for that, else Prometheus's own text."""

    def __init__(self, desk: Desk, journal: Journal) -> None:
        self._desk = desk
        self._journal = journal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  ASGI
        """Send the page."""
        entry_of(scope).operation = OPERATION
        accepted = next((value for name, value in scope["headers"] if name.lower() == b"accept"), b"")
        openmetrics = b"application/openmetrics-text" in accepted
        occupancy = self._desk.occupancy()  # First: it finds engines that have died.
        families = (
            *_of_requests(self._journal),
            *_of_models(self._desk.totals),
            *_of_now(occupancy),
            *_of_process(),
        )
        page = exposition(families, openmetrics=openmetrics)
        reply = Rendered(page, media_type=OPENMETRICS if openmetrics else PLAIN)
        await send_whole(reply, send, head_only=scope["method"] == "HEAD")


def _of_requests(journal: Journal) -> Iterator[Family]:
    told = "Requests that have ended, over HTTP and WebSocket"
    values = (
        ((("dialect", dialect), ("operation", operation), ("outcome", outcome)), count)
        for (dialect, operation, outcome), count in sorted(journal.counts.items())
    )
    yield counter("diglot_http_requests", told, values)


def _of_models(totals: Totals) -> Iterator[Family]:
    models = tuple((_named(model), numbers) for model, numbers in totals)
    yield counter(
        "diglot_requests",
        "Requests to a model that have ended, by what was asked and how it ended",
        (
            ((*labels, ("kind", kind), ("outcome", outcome)), count)
            for labels, numbers in models
            for (kind, outcome), count in sorted(numbers.requests.items())
        ),
    )
    for name, told, of in _TOKENS:
        yield counter(f"diglot_{name}", told, ((labels, of(numbers)) for labels, numbers in models))
    for name, told, outcomes in (
        ("loads", "Loads of the model that have ended", attrgetter("loads")),
        ("compactions", "Compactions that have ended", attrgetter("compactions")),
    ):
        yield counter(
            f"diglot_{name}",
            told,
            (
                ((*labels, ("outcome", outcome)), count)
                for labels, numbers in models
                for outcome, count in sorted(outcomes(numbers).items())
            ),
        )
    for name, told, times in _TIMES:
        values = ((labels, times(numbers)) for labels, numbers in models)
        yield histogram(
            f"diglot_{name}_seconds",
            f"Seconds: {told}",
            ((labels, each.counts, each.sum) for labels, each in values),
            bounds=BOUNDS,
        )


def _of_now(occupancy: tuple[Occupancy, ...]) -> Iterator[Family]:
    for name, told, of in _NOW:
        yield gauge(f"diglot_{name}", told, ((_named(each.model), of(each)) for each in occupancy))


def _of_process() -> Iterator[Family]:
    """Tell of the server's own process, under the names that Prometheus's clients have for it."""
    yield counter(
        "process_cpu_seconds", "Processor time of the server, without its engines", [((), time.process_time())]
    )
    if memory := resident():
        yield gauge("process_resident_memory_bytes", "Memory of the server, without its engines", [((), memory)])


def _named(model: str) -> Labels:
    return (("model", model),)


def resident() -> int:
    """Return the resident bytes of this process, 0 where the system does not say (only Linux has this file)."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
