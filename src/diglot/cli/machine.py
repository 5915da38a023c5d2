"""What this machine has: cores, memory, devices to compute on, room on the disk.

The engine is asked in a process of its own: loading it takes a hundred megabytes, and where it cannot be
loaded that is one of the things to find out. Neighbour: `checkup` judges.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import msgspec

ENGINE: Final = "xllamacpp"
_PATIENCE: Final = 60.0
_ASK: Final = """
import json, xllamacpp
known = ("name", "description", "memory_total", "memory_free")
print(json.dumps([{name: device[name] for name in known} for device in xllamacpp.get_device_info()]))
"""


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """Something to compute on, as the engine names it. Sizes are in bytes."""

    name: str
    description: str = ""
    memory_total: int = 0
    memory_free: int = 0


class Hardware(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to compute with. `error` says why the engine could not tell."""

    cores: int
    devices: tuple[Device, ...] = ()
    error: str = ""


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that is there or could be made. `free` is in bytes."""

    path: Path
    writable: bool
    free: int


def engine_version() -> str:
    """Return the version of the engine that is installed, empty if none is."""
    try:
        return version(ENGINE)
    except PackageNotFoundError:
        return ""


def hardware() -> Hardware:
    """Ask the engine for the devices it sees."""
    cores = os.cpu_count() or 1
    try:
        asked = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, check=True, timeout=_PATIENCE)  # noqa: S603  our own text
        devices = msgspec.json.decode(asked.stdout.splitlines()[-1], type=tuple[Device, ...])
    except subprocess.CalledProcessError as error:
        told = error.stderr.decode(errors="replace").strip().splitlines()
        return Hardware(cores=cores, error=told[-1] if told else f"it ended with status {error.returncode}")
    except subprocess.TimeoutExpired:
        return Hardware(cores=cores, error=f"it did not answer within {_PATIENCE:.0f} seconds")
    except (IndexError, msgspec.DecodeError) as error:
        return Hardware(cores=cores, error=f"it gave no list of devices: {error}")
    return Hardware(cores=cores, devices=devices)


def folder(path: Path) -> Folder:
    """Look at a folder, or at the first of its parents that is there."""
    there = next(each for each in (path, *path.parents) if each.exists())
    writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    return Folder(path=path, writable=writable, free=shutil.disk_usage(there).free)
