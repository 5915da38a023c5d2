"""Vitals: what the system says of the process that holds a model. Only Linux says all of it.

Reads `/proc` and decides nothing. Neighbours: `process` asks.

Invariant: a process that is gone, or a system that does not say, gives zeros.
"""

from __future__ import annotations

import os
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident(child: int) -> int:
    """Return the resident bytes of a child, or of the program that it hosts."""
    return sum(_number(host, "statm", 1) for host in _hosts(child)) * _PAGE


def computed(child: int) -> int:
    """Return the processor time that a child, or the program that it hosts, has taken, in ticks."""
    # proc_pid_stat(5): utime and stime, the 14th and the 15th field; the second one ends with the only bracket.
    return sum(_number(host, "stat", field) for host in _hosts(child) for field in (11, 12))


def ended(child: int) -> bool:
    """Say whether a child of this process has ended, also where nobody has been told yet. False where none can say."""
    if not hasattr(os, "waitid"):
        return False
    try:  # Without WNOWAIT the end would be taken from whoever waits for it.
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # It was waited for.
        return True


def _hosts(child: int) -> list[int]:
    try:
        found = Path(f"/proc/{child}/task/{child}/children").read_bytes().split()
    except OSError:
        return [child]
    return [int(pid) for pid in found] or [child]


def _number(pid: int, name: str, field: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/{name}").read_bytes().rpartition(b")")[2].split()[field])
    except (OSError, IndexError, ValueError):
        return 0
