"""What commands were run and how they ended: exit status, test results, errors; and the plan.

A run is known by its command. The newest run says how it stands; an error is open until the same command
passes. Test results are known by the summary lines that test programs print, whoever called them.

Invariant: what a result says about another command changes nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from diglot.core.compaction.record.calls import Call, Outcome
from diglot.core.compaction.record.values import Check, Problem, Run, Step, StepStatus, one_line

_HINT = re.compile(r"pass|fail|tests|ok\b|ran \d|examples?\b|pending", re.IGNORECASE)
_SUMMARIES = tuple(
    re.compile(pattern)
    for pattern in (
        r"^=*\s*(?:\d+ \w+, )*\d+ (?:passed|failed|errors?|skipped|xfailed|deselected)\b.*$",  # pytest, playwright
        r"^test result: .*$",  # cargo
        r"^(?:ok|FAIL|---\s\w+:?)\s+\S+\s+(?:\(?[\d.]+m?s\)?|\(cached\)|\[.*\]).*$",  # go
        r"^\s*Tests?:?\s+.*\d+ (?:passed|failed|total|skipped|errors?).*$",  # jest, vitest
        r"^Ran \d+ tests? in .*$|^(?:OK|FAILED)(?: \(.*\))?$",  # unittest, phpunit
        r"^\d+% tests passed, .*$",  # ctest
        r"^\s*\d+ (?:passing|failing|pending)\b.*$",  # mocha
        r"^\d+ (?:examples?|tests?|runs?|specs?)\b.*\d+ (?:failures?|assertions|failed).*$",  # rspec, minitest, exunit
        r"^.*\bTests run: \d+.*$",  # maven
        r"^\d+ tests? completed.*$",  # gradle
        r"^\s*(?:Passed|Failed)!\s+- .*$|^Total tests: \d+.*$",  # dotnet
        r"^Tests: \d+, Assertions: .*$",  # phpunit
        r"^# (?:tests|pass|fail) \d+$",  # TAP
        r"^.*Executed \d+ tests?, with .*$",  # XCTest
        r"^(?:ok|FAILED) \| .*$",  # deno
        r"^All \d+ tests? passed\b.*$",  # zig
    )
)
_ERROR = re.compile(
    r"(?:^|[\s:\[(])(?:\w*(?:Error|Exception)|error|ERROR|fatal|FATAL|panic(?:ked)?|FAIL(?:ED)?|Traceback)(?:$|[\s:\[\](),!])"
    r"|: (?:No such file|Permission denied|command not found|not found)|^E  +\S"
)
_RECENT_CHECKS = 8
_RECENT_PROBLEMS = 16
_RECENT_RUNS = 400
_ERRORS_OF_A_RUN = 3
_LOOKED_AT = 400_000
_STEP_TEXT = ("step", "content", "title", "task", "text", "description", "name", "activeForm")
_STATUSES: Final[dict[str, StepStatus]] = {
    "in_progress": "active",
    "in-progress": "active",
    "inprogress": "active",
    "active": "active",
    "doing": "active",
    "completed": "done",
    "complete": "done",
    "done": "done",
    "cancelled": "done",
}


def ran(runs: dict[str, Run], command: str, outcome: Outcome) -> None:
    """Count a run; the newest stands last."""
    before = runs.pop(command, None)
    runs[command] = Run(command, outcome.code, 1 + (before.count if before else 0))
    while len(runs) > _RECENT_RUNS:
        del runs[next(iter(runs))]


def checked(checks: dict[str, Check], command: str, outcome: Outcome) -> None:
    """Note what tests printed."""
    hinted = (line[:400] for line in outcome.body[-_LOOKED_AT:].split("\n") if _HINT.search(line))
    found = [line for line in hinted if any(pattern.match(line) for pattern in _SUMMARIES)]
    if found:
        checks.pop(command, None)
        checks[command] = Check(command, one_line("; ".join(one_line(line.strip("= ")) for line in found[-3:])))
        while len(checks) > _RECENT_CHECKS:
            del checks[next(iter(checks))]


def failed_or_passed(problems: list[Problem], command: str, outcome: Outcome) -> list[Problem]:
    """Return the problems after a run: what it printed when it failed, or that it passed."""
    if not outcome.failed:
        if outcome.code is None or not any(each.command == command for each in problems):
            return problems
        return [Problem(each.command, each.text, passed=True) if each.command == command else each for each in problems]
    lines = [line for line in outcome.body[-_LOOKED_AT:].split("\n") if _ERROR.search(line[:300])]
    texts = list(dict.fromkeys(one_line(line, 240) for line in lines[: _ERRORS_OF_A_RUN + 5]))[:_ERRORS_OF_A_RUN]
    kept = [each for each in problems if each.command != command or each.text not in texts]
    return [*kept, *(Problem(command, text) for text in texts if text)][-_RECENT_PROBLEMS:]


def plan_of(call: Call) -> tuple[Step, ...] | None:
    """Return the plan that a call sets, by shape: a list of texts with a status each."""
    for value in call.arguments.values():
        if isinstance(value, list) and value:
            steps = [step for each in value if isinstance(each, Mapping) and (step := _step(each))]
            if len(steps) == len(value):
                return tuple(steps)
    return None


def _step(value: Mapping[str, Any]) -> Step | None:
    status = value.get("status", value.get("state"))
    text = next((value[key] for key in _STEP_TEXT if isinstance(value.get(key), str) and value[key].strip()), None)
    if text is None or not isinstance(status, str):
        return None
    return Step(one_line(text, 240), _STATUSES.get(status.lower().replace(" ", "_"), "open"))
