"""`python -m bench.compaction`: our compaction beside Ollama's way and Codex's own, on one engine, by what is left.

Prints a table and whether the targets are met, and draws docs/compaction.svg. What code keeps of long sessions is
measured without asking the model ("quiet"), with its tokens counted: that takes minutes instead of hours. `--quick` is a short run, `--only` one
part of it, `--ours` leaves the other ways out. Progress goes to stderr. Exit code 1 when a target is not met.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bench.__main__ import machine
from bench.compaction.scores import HEAD, OURS, Part, plotted, rows, verdicts
from bench.compaction.sessions import KINDS, LANGUAGES
from bench.compaction.trials import FULL, Round, Score, chained, sized, tried
from bench.compaction.watching import Quiet
from bench.compaction.ways import WAYS
from bench.report import table
from bench.sides import CHAT, starter_models
from diglot.app import RandomIds
from diglot.core.compaction.budget import budget_of
from diglot.core.model import ModelRef
from diglot.core.ports import Engine
from diglot.core.request import LoadOptions
from diglot.engines.llamacpp.loader import LlamaLoader
from diglot.engines.llamacpp.sizing import Limits

PLOT = Path(__file__).parent.parent.parent / "docs/compaction.svg"
PARTS = ("3,500 tokens", "1 window", "3 windows", "10 windows", "in a row", "quiet")
_SPEED = 3500
_ROUNDS = 5


class Options(msgspec.Struct, frozen=True):
    """What is measured: the sizes are in tokens; `ways` and `parts` by name."""

    model: str
    window: int
    long_window: int
    sessions: int
    quiet: int
    rounds: int
    ways: tuple[str, ...]
    parts: tuple[str, ...]


@asynccontextmanager
async def loaded(name: str, window: int) -> AsyncIterator[Engine]:
    """Run a model in a child, on one thread, which other programs stall least."""
    model = starter_models().resolve(ModelRef.parse(name))
    loader = LlamaLoader(ids=RandomIds(), limits=Limits(slots=1, cores=1))
    engine = await loader.load(model, LoadOptions(window=window, threads=1), lambda _done, _total: None)
    try:
        yield engine
    finally:
        await engine.close()


async def measured(options: Options) -> list[Part]:
    """Measure all parts."""
    parts: list[Part] = []
    lengths = {"3,500 tokens": _SPEED, "1 window": int(options.window * FULL)}
    if wanted := [each for each in options.parts if each in lengths]:
        async with loaded(options.model, options.window) as engine:
            parts += [await _sized_part(engine, name, lengths[name], options) for name in wanted]
    if "quiet" in options.parts:
        async with loaded(options.model, options.window) as engine:
            quiet, alone = Quiet(engine), replace(options, ways=(OURS,), sessions=options.quiet)
            for name, share in (("1 window, quiet", FULL), ("3 windows, quiet", 3), ("10 windows, quiet", 10)):
                parts.append(await _sized_part(quiet, name, int(options.window * share), alone))
            parts.append(await _rows_part(quiet, "in a row, quiet", alone))
    lengths = {"3 windows": 3 * options.long_window, "10 windows": 10 * options.long_window}
    if wanted := [each for each in options.parts if each in lengths or each == "in a row"]:
        async with loaded(options.model, options.long_window) as engine:
            for name in wanted:
                if name in lengths:
                    parts.append(await _sized_part(engine, name, lengths[name], options))
                else:
                    parts.append(await _rows_part(engine, name, options))
    return parts


async def _sized_part(engine: Engine, name: str, tokens: int, options: Options) -> Part:
    """Compact sessions of a length, each in every way, one way after the other."""
    scores: dict[str, list[Score]] = {way: [] for way in options.ways}
    answer = budget_of(window=engine.window, fixed=0, before=tokens).answer
    for seed, kind, language in _cases(options.sessions):
        session = await sized(engine, seed, kind=kind, language=language, tokens=tokens)
        for way in options.ways:
            score = await tried(WAYS[way], engine, session, answer=answer)
            _say(name, seed, way, score)
            scores[way].append(score)
    return Part(name, scores)


async def _rows_part(engine: Engine, name: str, options: Options) -> Part:
    """Compact sessions several times in a row."""
    rounds: dict[str, list[list[Round]]] = {way: [] for way in options.ways}
    answer = budget_of(window=engine.window, fixed=0, before=engine.window).answer
    for seed, kind, language in _cases(options.sessions):
        tokens = engine.window * (1 + options.rounds)
        session = await sized(engine, seed, kind=kind, language=language, tokens=tokens)
        for way in options.ways:
            done = await chained(WAYS[way], engine, session, answer=answer, rounds=options.rounds)
            _say(name, seed, way, done)
            rounds[way].append(done)
    scores = {way: [each.score for done in all_ for each in done] for way, all_ in rounds.items()}
    return Part(name, scores, rounds)


def _cases(count: int) -> list[tuple[int, str, str]]:
    return [(seed, KINDS[seed % len(KINDS)], LANGUAGES[seed % len(LANGUAGES)]) for seed in range(count)]


def _say(part: str, seed: int, way: str, what: object) -> None:
    print(time.strftime("%H:%M:%S"), part, f"session {seed}", way, what, file=sys.stderr, flush=True)


def _options(arguments: Sequence[str] | None = None) -> tuple[Options, Path | None]:
    parser = argparse.ArgumentParser(prog="bench.compaction", description=__doc__)
    parser.add_argument("--model", default=CHAT, help="a model of the store that chats")
    parser.add_argument("--quick", action="store_true", help="one session of each length, small windows")
    parser.add_argument("--only", choices=PARTS, action="append", help="one part; can be given several times")
    parser.add_argument("--ours", action="store_true", help="leave the other ways out")
    parser.add_argument("--sessions", type=int, default=0, help="sessions of each length")
    parser.add_argument("--quiet-sessions", type=int, default=0, help="the same, where the model is not asked")
    parser.add_argument("--window", type=int, default=8192, help="for up to one window of transcript")
    parser.add_argument("--long-window", type=int, default=2048, help="for several windows, and compactions in a row")
    parser.add_argument("--plot", type=Path, help="where the chart goes; docs/compaction.svg for a run of everything")
    given = parser.parse_args(arguments)
    whole = not (given.quick or given.only or given.ours)
    options = Options(
        model=given.model,
        window=min(given.window, 4096) if given.quick else given.window,
        long_window=given.long_window,
        sessions=given.sessions or (1 if given.quick else 3),
        quiet=given.quiet_sessions or (5 if given.quick else 15),
        rounds=_ROUNDS,
        ways=tuple(WAYS)[:1] if given.ours else tuple(WAYS),
        parts=tuple(given.only or [part for part in PARTS if not given.quick or part != "10 windows"]),
    )
    return options, given.plot or (PLOT if whole else None)


def main() -> None:
    """Measure, print and draw."""
    options, plot = _options()
    about, begun = machine(), time.perf_counter()
    parts = asyncio.run(measured(options))
    print(about)
    print(
        f"{options.model}, one thread, {options.sessions} sessions of each length ({options.quiet} quiet), windows of "
        f"{options.window} tokens ({options.long_window} for several windows), "
        f"{(time.perf_counter() - begun) / 60:.0f} minutes\n"
    )
    print(table([HEAD, *(row for part in parts for row in rows(part))]), "", sep="\n")
    told = verdicts(parts)
    print(table([each.cells() for each in told]))
    if plot is not None:
        plot.write_text(plotted(parts, options.ways), encoding="utf-8")
    sys.exit(any(not each.met for each in told))


if __name__ == "__main__":
    main()
