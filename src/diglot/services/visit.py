"""A visit: one request on its way through the house, whose it is and what it has come to so far.

Whoever lets a request in makes one (`http.journal`; `services.respond` for what goes on in the background), the services
write down on it what they find out, and at its end it makes a line of the log and goes into the totals. No service
decides anything by what is written on it, but admission by who calls and whether anybody waits for the answer.

Invariant: the times of all stages together are the time that has passed, up to the last stage that was reached.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

from diglot.core.errors import Cancelled, Fault
from diglot.core.events import Usage

_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")

Stage = Literal["arrival", "queue", "load", "prefill", "decode"]
"""What a request waits for: to be read, a slot, its model, its first token, its last one."""
Kind = Literal["", "generate", "embed", "rerank"]


def kind_of(fault: Fault) -> str:
    """Return the kind of a fault as one word, such as `model_not_found`; `left` if the client did."""
    if isinstance(fault, Cancelled) and fault.left:
        return "left"
    return _WORD.sub("_", type(fault).__name__).lower()


class Folded(msgspec.Struct, frozen=True):
    """A compaction and what came of it: `ok`, or the kind of a fault. `before` and `after` are in tokens."""

    outcome: str
    before: int = 0
    after: int = 0


class Visit(msgspec.Struct, kw_only=True):
    """`caller` is the same for all requests of one client; `began` and `since` are nanoseconds of a monotonic clock.

    `kind` is what a model is asked for, `model` the full name of one that exists, both empty before that is known.
    `usage` counts what was computed for it, `spent` holds the nanoseconds of each stage, `first_token` those from the
    beginning to the first token, where there was one. `outcome` is `ok`, `left`, or the kind of a fault.
    """

    caller: str = ""
    background: bool = False
    began: int = 0
    since: int = 0
    stage: Stage = "arrival"
    kind: Kind = ""
    model: str = ""
    usage: Usage = Usage()
    spent: dict[Stage, int] = msgspec.field(default_factory=dict)
    first_token: int | None = None
    folded: list[Folded] = msgspec.field(default_factory=list)
    outcome: str = "ok"

    @classmethod
    def at(cls, now: int, *, caller: str = "", background: bool = False) -> Visit:
        """Return one that begins now."""
        return cls(caller=caller, background=background, began=now, since=now)

    def reach(self, stage: Stage, now: int) -> None:
        """Go over to another stage."""
        self.spent[self.stage] = self.spent.get(self.stage, 0) + now - self.since
        self.stage, self.since = stage, now
        if stage == "decode" and self.first_token is None:
            self.first_token = now - self.began

    def end(self, now: int) -> None:
        """Come to the end, without leaving the stage in which it was: the log tells it."""
        self.reach(self.stage, now)

    def add(self, usage: Usage) -> None:
        """Count what another piece of work has taken."""
        self.usage = Usage(
            input=self.usage.input + usage.input,
            output=self.usage.output + usage.output,
            cached=self.usage.cached + usage.cached,
            reasoning=self.usage.reasoning + usage.reasoning,
        )

    @property
    def total(self) -> int:
        """The nanoseconds of all stages."""
        return sum(self.spent.values())
