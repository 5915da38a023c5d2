"""Does things to a store in processes of their own, and kills each before a file operation of choice.

Run as a program: a line of JSON on standard input is what is to be done at the same time, a line on standard output what
came of each. A process is forked for each, so that a kill is one: nothing is cleaned up behind it. File operations are
seen by Python's own audit, and by standing in for those of `os` that it does not tell of. Not collected: started by
`Doer`.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from diglot.app import SystemClock
from diglot.core.digest import Digest
from diglot.core.errors import Fault
from diglot.core.model import ModelRef
from diglot.core.recipe import Recipe
from diglot.core.source import read_source
from diglot.store.local import LocalStore
from diglot.store.making import make
from diglot.store.supply import Reach, StoreSupply

DONE, KILLED = "done", "killed"
_SEEN: Final = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate")
_UNSEEN: Final = ("pwritev", "pwrite", "fsync", "fdatasync")


class Work(msgspec.Struct, frozen=True):
    """What is to be done: to the model `name`, with another one, a file or a text. `crash` counts the file operations that are still done."""

    do: str
    name: str = ""
    other: str = ""
    crash: int | None = None


class Doer:
    """The program, from outside."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, root: Path, works: Sequence[Work]) -> list[str]:
        """Do all of this at the same time. Returns `done`, `killed` or the name of a fault for each."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = json.dumps({"root": str(root), "works": msgspec.to_builtins(works)})
        self._process.stdin.write(f"{asked}\n")
        self._process.stdin.flush()
        return list(json.loads(self._process.stdout.readline()))


@contextmanager
def doer() -> Iterator[Doer]:
    """Run the program."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.store.doing"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Doer(process)
        finally:
            process.kill()


def _add(store: LocalStore, work: Work) -> None:
    store.add_file(Path(work.other), ModelRef.parse(work.name), licences=("x",))


def _make(store: LocalStore, work: Work) -> None:
    base = store.card(ModelRef.parse(work.other))
    recipe = Recipe(base=work.other, system="Be brief.", parameters={"seed": 3})
    make(store, ModelRef.parse(work.name), recipe, base=base, tell=lambda _: None)


def _copy(store: LocalStore, work: Work) -> None:
    store.copy(ModelRef.parse(work.other), ModelRef.parse(work.name))


def _remove(store: LocalStore, work: Work) -> None:
    store.remove(ModelRef.parse(work.name))


def _upload(store: LocalStore, work: Work) -> None:
    data = work.other.encode()
    intake = store.intake(Digest(hashlib.sha256(data).hexdigest()), size=len(data))
    try:
        intake.write(data)
        intake.settle()
    finally:
        intake.close()


def _tidy(store: LocalStore, work: Work) -> None:
    store.tidy()


def _pull(store: LocalStore, work: Work) -> None:
    reach = Reach(identity=Path("none"), connections=3, least=1 << 17)
    supply = StoreSupply(store, reach, clock=SystemClock())

    async def pulled() -> None:
        async for _ in supply.pull(read_source(work.name), insecure=True):
            pass

    asyncio.run(pulled())


DOING: Final[dict[str, Callable[[LocalStore, Work], None]]] = {
    "add": _add,
    "make": _make,
    "copy": _copy,
    "remove": _remove,
    "upload": _upload,
    "tidy": _tidy,
    "pull": _pull,
}


def _kill_before(operation: int, root: str) -> None:
    """Kill this process where it is about to do so many file operations and one more."""
    left = [operation]

    def count() -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def seen(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _SEEN and str(arguments[0]).startswith(root):
            count()

    def counting(real: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            count()
            return real(*arguments)

        return counted

    sys.addaudithook(seen)
    for name in _UNSEEN:
        setattr(os, name, counting(getattr(os, name)))


def _outcome(root: str, work: Work, told: int) -> None:
    """Do it, and tell what came of it."""
    if work.crash is not None:
        _kill_before(work.crash, root)
    try:
        DOING[work.do](LocalStore(Path(root)), work)
    except Fault as fault:
        os.write(told, type(fault).__name__.encode())
    else:
        os.write(told, DONE.encode())


def _forked(root: str, work: Work) -> tuple[int, int]:
    """Begin, and return the process and where it tells what came of it."""
    hear, told = os.pipe()
    if pid := os.fork():
        os.close(told)
        return pid, hear
    status = 1
    try:
        _outcome(root, work, told)
        status = 0
    finally:
        os._exit(status)


def _main() -> None:
    importlib.import_module("diglot.store.registry.pull")  # Once, and not in each of those that are forked.
    for line in sys.stdin:
        asked = json.loads(line)
        begun = [_forked(asked["root"], work) for work in msgspec.convert(asked["works"], list[Work])]
        outcomes = []
        for pid, hear in begun:
            with os.fdopen(hear) as said:
                words = said.read()
            _, status = os.waitpid(pid, 0)
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            outcomes.append(words or (KILLED if killed else f"exit {status}"))
        sys.stdout.write(f"{json.dumps(outcomes)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
