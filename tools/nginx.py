"""nginx, where this machine has it or `tools/setup` has brought it: for a proxy in the tests, and a registry in the bench.

It says what to run and how; what nginx is to do is up to whoever runs it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

_UNPACKED: Final = Path(__file__).parent.parent / ".tools/nginx"


def nginx() -> Path | None:
    """Return the program, None on a machine that cannot have it."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", str(_UNPACKED / "usr/sbin")])
    found = shutil.which("nginx", path=places)
    return Path(found) if found else None


def libraries(program: Path) -> dict[str, str]:
    """Return the environment in which it finds the libraries that were unpacked beside it."""
    beside = [str(each) for each in _UNPACKED.glob("usr/lib/*-linux-*")] if _UNPACKED in program.parents else []
    return {"LD_LIBRARY_PATH": os.pathsep.join(beside)} if beside else {}
