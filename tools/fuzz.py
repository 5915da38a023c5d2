"""Fuzzing for as long as one likes: `make fuzz MINUTES=10`.

Half of the time goes to the readers of `tests/fuzz` under a fuzzer that follows coverage, where there is one for this
Python; what it finds worth going on from is kept in `.fuzz/` for the next time, and so is what breaks a reader. The
rest goes to every test of the house that hypothesis feeds, file by file in an order that chance gives, with new and
many more examples. It prints how many inputs were tried, and ends with 1 if anything broke.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
KEPT: Final = ROOT / ".fuzz"
_DONE: Final = re.compile(r"^Done (\d+) runs", re.MULTILINE)
_TRIED: Final = re.compile(r"(\d+) (?:passing|failing|invalid)\b")
_LONGEST: Final = 3600
"""Seconds that one test may take."""


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def follow(reader: str, seconds: float) -> tuple[int, str]:
    """Fuzz one reader; return how many inputs were tried, and what broke."""
    found = KEPT / "found"
    found.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={max(1, round(seconds))}", f"-artifact_prefix={found}/{reader}-", "-rss_limit_mb=2048"]
    command = [sys.executable, "-m", "tests.fuzz.follow", reader, str(KEPT / reader), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    tried = _DONE.search(done.stderr)
    return int(tried[1]) if tried else 0, done.stdout + done.stderr if done.returncode else ""


def test(path: Path, seed: int) -> tuple[int, str]:
    """Run the tests of a file that hypothesis feeds; return how many inputs were tried, and what broke."""
    fed = ["-m", "hypothesis", "--hypothesis-profile=fuzz", f"--hypothesis-seed={seed}", "--hypothesis-show-statistics"]
    command = [sys.executable, "-m", "pytest", "-q", "-n0", f"--timeout={_LONGEST}", *fed, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    tried = sum(map(int, _TRIED.findall(done.stdout)))
    wrong = done.returncode or not tried  # Without a count, hypothesis tells of it in other words than before.
    return tried, done.stdout + done.stderr if wrong else ""


def fed_by_hypothesis() -> list[Path]:
    """Return the files with such tests, not those of packages that lie in their folders."""
    own = (path for path in (ROOT / "tests").rglob("test_*.py") if "node_modules" not in path.parts)
    return sorted(path for path in own if "@given" in path.read_text(encoding="utf-8"))


def readers(seconds: float) -> tuple[int, list[str]]:
    """Fuzz all readers for so long together; return how many inputs were tried, and what broke."""
    from tests.fuzz.readers import READERS  # noqa: PLC0415  Not needed where there is no fuzzer.

    total = 0
    broken: list[str] = []
    for reader in READERS:
        tried, wrong = follow(reader.name, seconds / len(READERS))
        total += tried
        broken += [wrong] if wrong else []
        say(f"{reader.name:50}{tried:>12,} inputs{'   BROKEN' if wrong else ''}")
    return total, broken


def tests(until: float) -> tuple[int, list[str]]:
    """Run the tests until a time of the monotonic clock; return how many inputs were tried, and what broke."""
    total = 0
    broken: list[str] = []
    while time.monotonic() < until:
        files = fed_by_hypothesis()
        random.shuffle(files)
        for path in files:
            tried, wrong = test(path, random.randrange(1 << 32))  # noqa: S311  any will do
            total += tried
            broken += [wrong] if wrong else []
            say(f"{path.relative_to(ROOT).as_posix():50}{tried:>12,} inputs{'   BROKEN' if wrong else ''}")
            if time.monotonic() >= until:
                break
    return total, broken


def main() -> int:
    """Read the arguments, fuzz, and print."""
    parser = argparse.ArgumentParser(prog="tools.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    until = time.monotonic() + 60 * (minutes := parser.parse_args().minutes)
    total = 0
    broken: list[str] = []
    if importlib.util.find_spec("atheris"):
        total, broken = readers(30 * minutes)
    else:
        say("atheris has no wheel for this Python or machine: hypothesis alone feeds the readers")
    tried, wrong = tests(until)
    for each in (*broken, *wrong):
        say(each)
    say(f"{total:,} inputs to readers, {tried:,} to tests, {len(broken) + len(wrong)} broken")
    return 1 if broken or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
