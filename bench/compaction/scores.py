"""Scores brought together: means of a part, the targets that they are held to, and what is drawn of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean, median
from typing import Final

import msgspec

from bench.compaction.chart import Panel, chart
from bench.compaction.trials import Round, Score

OURS: Final = "Diglot"
_RETOLD: Final = "as Ollama"
HEAD: Final = (
    "transcript",
    "way",
    "success",
    "valid",
    "cached",
    "seconds",
    "facts",
    "rules",
    "files F1",
    "tokens",
    "answers",
    "counts",
    "unseen",
)
_QUIET: Final = ", quiet"
_FACTS: Final = {"1 window": 0.95, "1 window, quiet": 0.95, "3 windows, quiet": 0.8, "10 windows, quiet": 0.5}
_OF_ALL: Final = {"facts", "files F1"}
_OF_MODEL: Final = {"valid", "cached", "seconds"}
_SHOWN_ROUNDS: Final = (1, 2, 3, 5)


class Part(msgspec.Struct, frozen=True):
    """Scores of one length, by way; `rounds` where it is about compactions in a row."""

    name: str
    scores: dict[str, list[Score]]
    rounds: dict[str, list[list[Round]]] = {}


class Verdict(msgspec.Struct, frozen=True):
    """A target, and what was measured."""

    what: str
    value: float
    target: float

    @property
    def met(self) -> bool:
        """Whether the target is met; what is printed is what counts."""
        return round(self.value, 3) >= self.target

    def cells(self) -> tuple[str, ...]:
        """Return it as text."""
        return self.what, f"{self.value:.3f}", f">= {self.target:g}", "met" if self.met else "NOT MET"


def rows(part: Part) -> list[tuple[str, ...]]:
    """Return a line of the table for each way, then the facts that are left after each round."""
    lines = [(part.name, way, *_cells(scores)) for way, scores in part.scores.items()]
    unsaid = _OF_ALL if part.rounds else set()  # The session goes on: its later facts and files are not there yet.
    unsaid = unsaid | (_OF_MODEL if part.name.endswith(_QUIET) else set())
    for place, (_, way, *_) in enumerate(lines):
        told = unsaid | ({"unseen"} if way == _RETOLD else set())  # It shows no item, but JSON that tells of it.
        lines[place] = tuple("" if HEAD[at] in told else cell for at, cell in enumerate(lines[place]))
    blank = [""] * (len(HEAD) - 3)
    for way, rounds in part.rounds.items():
        left = ", ".join(f"{_left(rounds, count):.2f} after {count}" for count in _counts(rounds))
        lines.append(("  facts left", way, left, *blank))
    return lines


def _cells(scores: Sequence[Score]) -> tuple[str, ...]:
    valid = [score.valid for score in scores if score.valid is not None]
    return (
        f"{sum(score.success for score in scores)} of {len(scores)}",
        f"{mean(valid):.0%}" if valid else "-",
        f"{_mean(scores, lambda score: score.cached):.1%}",
        f"{median(score.seconds for score in scores):.1f}",
        f"{_mean(scores, lambda score: score.facts):.2f}",
        f"{_mean(scores, lambda score: score.rules):.2f}",
        f"{_mean(scores, lambda score: score.files):.2f}",
        f"{_mean(scores, lambda score: score.before):.0f} > {_mean(scores, lambda score: score.after):.0f}",
        f"{_mean(scores, lambda score: score.answers):.1f}",
        f"{_mean(scores, lambda score: score.counts):.1f}",
        f"{sum(score.unseen for score in scores)}",
    )


def _mean(scores: Sequence[Score], value: Callable[[Score], float]) -> float:
    return mean(map(value, scores))


def _left(rounds: Sequence[Sequence[Round]], count: int) -> float:
    """Return the mean share of the facts of the first stretch that stand after so many compactions."""
    return mean(done[count - 1].left for done in rounds)


def _counts(rounds: Sequence[Sequence[Round]]) -> list[int]:
    return [count for count in _SHOWN_ROUNDS if rounds and count <= len(rounds[0])]


def verdicts(parts: Sequence[Part]) -> list[Verdict]:
    """Return the targets of what was measured."""
    told: list[Verdict] = []
    every = [score for part in parts for score in part.scores[OURS]]
    asked = [score.valid or 0 for part in parts for score in part.scores[OURS] if not part.name.endswith(_QUIET)]
    if asked:
        told.append(Verdict("valid answers", mean(asked), 1.0))
    told.append(Verdict("compactions that succeed", mean(score.success for score in every), 1.0))
    told.append(Verdict("rules that survive", mean(score.rules for score in every), 1.0))
    told.append(Verdict("items that were seen", float(not any(score.unseen for score in every)), 1.0))
    for part in parts:
        ours = part.scores[OURS]
        if not part.rounds:
            told.append(Verdict(f"changed files, F1, {part.name}", min(score.files for score in ours), 1.0))
        if part.name in {"3,500 tokens", "1 window"}:
            told.append(Verdict(f"share from the cache, {part.name}", mean(score.cached for score in ours), 0.95))
        if part.name in _FACTS:
            told.append(Verdict(f"exact facts, {part.name}", mean(score.facts for score in ours), _FACTS[part.name]))
        theirs = part.scores.get(_RETOLD)
        if part.name == "3,500 tokens" and theirs:
            faster = median(other.seconds / score.seconds for score, other in zip(ours, theirs, strict=True))
            told.append(Verdict("times faster than as Ollama, 3,500 tokens", faster, 5))
        for rounds in (part.rounds[OURS],) if part.rounds else ():
            kept = _left(rounds, len(rounds[0])) / max(_left(rounds, 1), 1e-9)
            told.append(Verdict(f"of the facts of the first compaction, after {len(rounds[0])}", kept, 0.8))
    return told


def plotted(parts: Sequence[Part], ways: Sequence[str]) -> str:
    """Return the chart: facts by length, and facts by compactions in a row."""
    panels: list[Panel] = []
    if sized := [part for part in parts if "window" in part.name and not part.name.endswith(_QUIET)]:
        facts = {way: [_mean(part.scores[way], lambda score: score.facts) for part in sized] for way in ways}
        panels.append(Panel("exact facts left, by transcript", [part.name for part in sized], facts))
    if quiet := [part for part in parts if "window" in part.name and part.name.endswith(_QUIET)]:
        alone = {OURS: [_mean(part.scores[OURS], lambda score: score.facts) for part in quiet]}
        labels = [part.name.removesuffix(_QUIET) for part in quiet]
        panels.append(
            Panel("facts that code keeps, large window", labels, alone, [_FACTS[each.name] for each in quiet])
        )
    for part in parts:
        if part.rounds:
            counts = _counts(part.rounds[OURS])
            left = {way: [_left(rounds, count) for count in counts] for way, rounds in part.rounds.items()}
            where = "large window" if part.name.endswith(_QUIET) else "by compactions"
            panels.append(Panel(f"facts of the first stretch left, {where}", [f"{each}" for each in counts], left))
    quick = [part for part in parts if part.name in {"3,500 tokens", "1 window"}]
    if quick:
        cached = {way: [_mean(part.scores[way], lambda score: score.cached) for part in quick] for way in ways}
        panels.append(Panel("share of the prompt from the cache", [part.name for part in quick], cached))
    return chart(panels, ways)
