"""How many planted facts stand in the record, counted without any model: `python -m bench.compaction.facts`.

Rows are the kinds of client, columns the lengths in windows; then five compactions in a row, each after one more
window. `--held-out` takes the seeds, client and language that the record was not looked at with.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from bench.compaction.sessions import KINDS, LANGUAGES, Fact, Session, length, make_session
from diglot.core.compaction.record import Record, read_summary, record_of, write_record
from diglot.core.items import Item, ToolResult

WINDOW = 8192
ROOM = 11_500
LENGTHS = (1, 3, 10)
ROUNDS = 5
HELD_KIND, HELD_LANGUAGE, HELD_SEEDS = "workbench", "fr", 9000


class Score(msgspec.Struct, frozen=True):
    """What one compaction kept, as shares; `places` by where the fact was planted."""

    facts: float
    files: float
    places: dict[str, tuple[int, int]]


def recall(facts: Sequence[Fact], text: str) -> float:
    """Return the share of the facts that stand in the text."""
    return sum(fact.text in text for fact in facts) / len(facts) if facts else 1.0


def f1(found: Iterable[str], expected: Iterable[str]) -> float:
    """Return the harmonic mean of precision and recall of two sets."""
    found, expected = set(found), set(expected)
    return 2 * len(found & expected) / (len(found) + len(expected)) if found or expected else 1.0


def compacted(items: tuple[Item, ...], previous: Record | None = None) -> tuple[str, Record]:
    """Compact once as the server does: write, and read back what was written."""
    text = write_record(record_of(items, previous), characters=ROOM)
    record, _ = read_summary(text)
    if record is None:
        raise AssertionError("a record did not read back")
    return text, record


def scored(session: Session) -> Score:
    """Compact a session at once."""
    text, record = compacted(session.items)
    places: dict[str, tuple[int, int]] = {}
    for place in ("output", "buried", "statement", "call"):
        planted = [fact for fact in session.facts if fact.place == place]
        places[place] = (sum(fact.text in text for fact in planted), len(planted))
    return Score(
        recall(session.facts, text), f1([each.path for each in record.ledger.files], session.changed_files), places
    )


def survival(seed: int, *, kind: str, language: str) -> list[float]:
    """Return what share of the facts that the first compaction kept is left after each round; last, of all facts."""
    session = make_session(seed, kind=kind, language=language, tokens=WINDOW * ROUNDS)
    kept: list[Fact] = []
    record: Record | None = None
    left: list[float] = []
    text = ""
    for part in windows(session.items, ROUNDS):
        text, record = compacted(part, record)
        if not left:
            kept = [fact for fact in session.facts if fact.text in text]
        left.append(recall(kept, text))
    return [*left, recall(session.facts, text)]


def windows(items: tuple[Item, ...], count: int) -> list[tuple[Item, ...]]:
    """Cut a session into parts of the same length, never between a call and its result."""
    size = length(items) / count
    parts: list[list[Item]] = [[]]
    done = 0
    for item in items:
        if done >= size * len(parts) and len(parts) < count and not isinstance(item, ToolResult):
            parts.append([])
        parts[-1].append(item)
        done += length([item])
    return [tuple(part) for part in parts]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--held-out", action="store_true")
    options = parser.parse_args()
    kinds = [HELD_KIND] if options.held_out else [kind for kind in KINDS if kind != HELD_KIND]
    languages = [HELD_LANGUAGE] if options.held_out else [each for each in LANGUAGES if each != HELD_LANGUAGE]
    seeds = range(HELD_SEEDS, HELD_SEEDS + options.seeds) if options.held_out else range(options.seeds)
    started = time.perf_counter()
    cases = [(seed, kind, languages[seed % len(languages)]) for kind in kinds for seed in seeds]
    print(f"{'windows':10}", *(f"{size:>6}" for size in LENGTHS), " (facts; files F1)")
    places: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    table: dict[tuple[str, int], list[Score]] = defaultdict(list)
    for seed, kind, language in cases:
        for size in LENGTHS:
            score = scored(make_session(seed, kind=kind, language=language, tokens=WINDOW * size))
            table[kind, size].append(score)
            for place, counts in score.places.items():
                places[size, place].append(counts)
    for kind in kinds:
        rows = [table[kind, size] for size in LENGTHS]
        shown = [statistics.mean(each.facts for each in row) for row in rows]
        files = [min(each.files for each in row) for row in rows]
        print(f"{kind:10}", *(f"{each:6.2f}" for each in shown), "  worst F1", *(f"{each:.2f}" for each in files))
    for place in ("output", "buried", "statement", "call"):
        sums = [[sum(column) for column in zip(*places[size, place], strict=True)] for size in LENGTHS]
        print(f"  {place:10}", *(f"{kept / max(1, all_):6.2f} of {all_:<4}" for kept, all_ in sums))
    overall = [statistics.mean(each.facts for kind in kinds for each in table[kind, size]) for size in LENGTHS]
    print(f"{'all':10}", *(f"{each:6.2f}" for each in overall))
    rounds = [survival(seed, kind=kind, language=language) for seed, kind, language in cases]
    means = [f"{statistics.mean(column):6.2f}" for column in zip(*rounds, strict=True)]
    print("left after rounds", *means[:-1], " of all facts", means[-1])
    print(f"{time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
