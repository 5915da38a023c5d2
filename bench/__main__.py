"""`python -m bench [--quick] [--only beside|itself|shelf|cold|pulling]`: measure, and print one line a measurement.

Exit code 1 when a target is not met.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from bench.beside import beside
from bench.cold import cold
from bench.itself import itself
from bench.pulling import pulling
from bench.report import HEAD, Line, table
from bench.shelf import shelf
from bench.sides import starter_models
from diglot import __version__


def machine() -> str:
    """Return what this runs on, in a line."""
    try:
        names = [
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ]
    except OSError:
        names = []
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"Diglot {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores {names[0] if names else platform.processor()}, {memory:.0f} GiB, load {load:.1f} at the start"
    )


async def _gathered(measured: AsyncIterator[Line], lines: list[Line]) -> None:
    async for line in measured:
        _say(line)
        lines.append(line)


def _say(line: Line) -> None:
    print("...", *line.cells(), file=sys.stderr, flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench", description="Measure Diglot beside the engine alone, and by itself.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: two minutes instead of twelve")
    parser.add_argument("--only", choices=("beside", "itself", "shelf", "cold", "pulling"), help="one part of it")
    arguments = parser.parse_args()
    scale = 0.2 if arguments.quick else 1.0
    about = machine()
    lines: list[Line] = []
    if arguments.only in {None, "itself"}:
        lines += _told(itself(scale))
    if arguments.only in {None, "shelf"}:
        lines += _told(shelf(scale))
    if arguments.only in {None, "pulling"}:
        lines += _told(pulling(scale))
    if arguments.only in {None, "cold", "beside"}:
        starter_models()
    if arguments.only in {None, "cold"}:
        asyncio.run(_gathered(cold(scale), lines))
    if arguments.only in {None, "beside"}:
        asyncio.run(_gathered(beside(scale), lines))
    print(about, "", table([HEAD, *(line.cells() for line in lines)]), sep="\n")
    sys.exit(any(line.met is False for line in lines))


def _told(lines: Iterator[Line]) -> Iterator[Line]:
    for line in lines:
        _say(line)
        yield line


if __name__ == "__main__":
    main()
