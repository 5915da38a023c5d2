"""Packages from the package index, downloaded by pip and not installed.

pip does it, not a client of our own and not uv, because pip is what a machine's index, certificates and
proxy are configured for. An environment made by uv has no pip, so this looks further: the Python that the
environment was made from, and last a throw-away environment. Neighbour: `starter`, which opens what comes.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from diglot.core.errors import UpstreamFailed

_WHERE: Final = "package index"
_TICK: Final = 0.2
"""Seconds between looks at how much has come."""

_PROGRAM: Final = "import runpy,sys,tempfile;tempfile.tempdir=sys.argv.pop(1);runpy.run_module('pip',run_name='__main__',alter_sys=True)"
"""Runs pip with its temporary files in a folder of ours, where their growth can be seen and nothing is left."""


def download(
    package: str, version: str, folder: Path, *, size: int, progress: Callable[[int, int], None] = lambda *_: None
) -> Path:
    """Download the wheel of a package to `folder` and return its path.

    `size` is about how many bytes it has; `progress` is called with bytes done and `size`. An exception out
    of `progress` ends the download. Raises UpstreamFailed.
    """
    with tempfile.TemporaryDirectory(prefix="pip-", dir=folder) as name, _pip() as python:
        scratch = Path(name)
        options = ["--quiet", "--no-deps", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:"]
        command = [str(python), "-P", "-c", _PROGRAM, name, "download", *options]
        command += ["--dest", str(folder), f"{package}=={version}"]
        log = scratch / "log"
        with log.open("wb") as output, _running(command, output) as process:
            done = 0
            while _waits(process):
                done = max(done, min(size, _bytes_in(scratch)))  # It shrinks when pip tidies up.
                progress(done, size)
        if process.returncode:
            detail = log.read_text(encoding="utf-8", errors="replace")[-4000:]
            raise UpstreamFailed(_WHERE, reason=f"{package} {version} could not be downloaded", detail=detail)
    found = sorted(folder.glob(f"{package.replace('-', '_')}-{version}-*.whl"))
    if not found:
        raise UpstreamFailed(_WHERE, reason=f"it has no wheel of {package} {version}")
    progress(size, size)
    return found[0]


@contextmanager
def _pip() -> Iterator[Path]:
    """Give a Python that has pip."""
    if importlib.util.find_spec("pip"):
        yield Path(sys.executable)
    elif parent := next(filter(_has_pip, _parents()), None):
        yield parent
    elif importlib.util.find_spec("ensurepip"):
        with tempfile.TemporaryDirectory(prefix="diglot-pip-") as folder:
            venv.create(folder, with_pip=True)
            yield Path(folder) / "bin" / "python"
    else:
        raise UpstreamFailed(_WHERE, reason="this Python has neither pip nor venv to reach it with")


def _parents() -> Iterator[Path]:
    """Yield what the Python that this environment was made from may be called."""
    if sys.prefix != sys.base_prefix:
        for name in (f"python3.{sys.version_info.minor}", "python3", "python"):
            yield Path(sys.base_prefix) / "bin" / name


def _has_pip(python: Path) -> bool:
    try:
        asked = subprocess.run([python, "-P", "-m", "pip", "--version"], capture_output=True, check=False)  # noqa: S603
    except OSError:
        return False
    return asked.returncode == 0


@contextmanager
def _running(command: list[str], output: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command, and end it when we are ended."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)  # noqa: S603 (ours)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _waits(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=_TICK)
    except subprocess.TimeoutExpired:
        return True
    return False


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue  # Moved on meanwhile.
    return total
