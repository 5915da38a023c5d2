"""What the record of a compaction is made of, as plain values.

They hold text that was seen in the conversation and nothing that a model made of it. `taking` makes them,
`writing` writes them down and reads them back.

Invariant: every text in here is one line without control characters, so that it can stand under a heading.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

FileKind = Literal["added", "updated", "written", "deleted", "moved"]
StepStatus = Literal["active", "open", "done"]
Mark = Literal["@", ">", "~", "$", "&", "|", ";", ":"]

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_BREAKS = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]+")


class FileChange(msgspec.Struct, frozen=True):
    """A changed file. `written` is a file whose whole content was given: new or not, nobody said."""

    path: str
    kind: FileKind
    source: str = ""


class Run(msgspec.Struct, frozen=True):
    """A command, how its last run ended (None where nothing told) and how often it was run."""

    command: str
    code: int | None = None
    count: int = 1


class Check(msgspec.Struct, frozen=True):
    """The last result that a command of tests printed."""

    command: str
    result: str


class Problem(msgspec.Struct, frozen=True):
    """An error that a command printed, and whether the same command passed later."""

    command: str
    text: str
    passed: bool = False


class Step(msgspec.Struct, frozen=True):
    """A step of the agent's plan."""

    text: str
    status: StepStatus


class Ledger(msgspec.Struct, frozen=True):
    """What was done and how it stands, oldest first."""

    files: tuple[FileChange, ...] = ()
    plan: tuple[Step, ...] = ()
    checks: tuple[Check, ...] = ()
    problems: tuple[Problem, ...] = ()
    runs: tuple[Run, ...] = ()


class Line(msgspec.Struct, frozen=True):
    """A line of the excerpt, quoted.

    `mark` says whose: `@` the user, `>` the agent, `~` the agent's thought, `$` a call, `&` more of what a call
    was given, `|` what it printed; `;` and `:` are these two below a call that was left out. `level`, 0 to 9, says how telling it was among all that it stood in.
    """

    mark: Mark
    level: int
    text: str


class Record(msgspec.Struct, frozen=True):
    """What a compaction keeps without any model."""

    ledger: Ledger = Ledger()
    excerpt: tuple[Line, ...] = ()


def one_line(text: str, limit: int = 400) -> str:
    """Return the text as one clean line of at most `limit` characters, cut at the end with an ellipsis."""
    if len(text) <= limit and text.isprintable():
        return text.strip()
    clean = _BREAKS.sub(" ", _ESCAPES.sub("", text[: 4 * limit + 400])).strip()
    return clean if len(clean) <= limit else clean[: limit - 1].rstrip() + "…"
