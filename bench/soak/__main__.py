"""`python -m bench.soak --minutes 10`: soak a server, print what it held, and end with 1 if anything is not well."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.sides import MODELS, starter_models
from bench.soak.running import Run
from bench.soak.server import soaked
from bench.soak.verdict import faults, report

_STRETCH = 60.0
_LEAST = 3
"""Stretches: the first one warms up, and two points make a line."""


def lengths(minutes: float) -> Sequence[float]:
    """Return the seconds of each stretch."""
    count = max(_LEAST, round(minutes * 60 / _STRETCH))
    return [minutes * 60 / count] * count


async def soak(minutes: float, home: Path, *, seed: int) -> int:
    """Soak, print, and return the exit code."""
    flags = ("--models", str(MODELS), "--threads", "1", "--window", "2048", "--log", "info")
    with soaked(home, *flags) as server:
        await server.ready()
        run = Run(server, seed)
        for seconds in lengths(minutes):
            await run.stretch(seconds)
        log = server.log
    for line in report(run.tally, run.quiets, log):
        print(line)
    wrong = list(faults(run.tally, run.quiets, log))
    for fault in wrong:
        print(f"NOT WELL: {fault}")
    return 1 if wrong else 0


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for the home of the server, which is else thrown away")
    asked = parser.parse_args()
    starter_models()
    if asked.keep:
        asked.keep.mkdir(parents=True, exist_ok=True)
        return asyncio.run(soak(asked.minutes, asked.keep, seed=asked.seed))
    with tempfile.TemporaryDirectory(prefix="diglot-soak-") as folder:
        return asyncio.run(soak(asked.minutes, Path(folder), seed=asked.seed))


if __name__ == "__main__":
    sys.exit(main())
