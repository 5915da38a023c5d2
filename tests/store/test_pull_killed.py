"""A pull whose process is killed anywhere leaves a whole store, and the next one goes on from there."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from diglot.core.model import ModelRef
from diglot.core.source import read_source
from diglot.store.local import LocalStore
from diglot.store.supply import StoreSupply
from tests.serving import until
from tests.store.arriving import WEIGHTS
from tests.store.registry import Registry, digest_of

PART = 1 << 17
WORK = """
import asyncio, sys
from pathlib import Path
from diglot.app import SystemClock
from diglot.core.source import read_source
from diglot.store.local import LocalStore
from diglot.store.supply import Reach, StoreSupply

async def work():
    reach = Reach(identity=Path("none"), connections=3, least=1 << 17)
    supply = StoreSupply(LocalStore(Path(sys.argv[1])), reach, clock=SystemClock())
    async for step in supply.pull(read_source(sys.argv[2]), insecure=True):
        print(step.stage, step.completed, flush=True)

asyncio.run(work())
"""


@pytest.mark.parametrize("permits", [0, 5, 11, 17, 40])
async def test_killed_in_the_middle(supply: StoreSupply, store: LocalStore, there: Registry, permits: int) -> None:
    there.put("me/tiny:1", ("model", WEIGHTS), ("license", b"MIT"))
    there.pace = threading.Semaphore(permits)
    name = f"{there.host}/me/tiny:1"
    _kill(store.root, name, lambda line: permits == 40 or line.startswith("receive"))
    listing = LocalStore(store.root).listing()
    assert listing.problems == ()
    assert not listing.models or listing.models[0].weights.read_bytes() == WEIGHTS
    there.pace.release(1 << 16)
    [_ async for _ in supply.pull(read_source(name), insecure=True)]
    assert store.resolve(ModelRef.parse(name)).weights.read_bytes() == WEIGHTS
    assert not [path.name for path in (store.root / "blobs").iterdir() if "partial" in path.name]


async def test_what_came_before_the_kill_is_not_fetched_again(
    supply: StoreSupply, store: LocalStore, there: Registry
) -> None:
    there.put("me/tiny:1", ("model", WEIGHTS))
    there.pace = threading.Semaphore(14)  # Three parts of three pieces, and some more.
    name = f"{there.host}/me/tiny:1"
    _kill(store.root, name, lambda _: until(lambda: _whole(store.root)))
    kept = _whole(store.root)
    there.seen.clear()
    there.pace.release(1 << 16)
    [_ async for _ in supply.pull(read_source(name), insecure=True)]
    assert store.resolve(ModelRef.parse(name)).weights.read_bytes() == WEIGHTS
    asked = [each.headers["range"] for each in there.asked(digest_of(WEIGHTS)) if "range" in each.headers]
    assert kept
    assert not kept & {int(each.removeprefix("bytes=").partition("-")[0]) for each in asked}


def _kill(root: Path, name: str, reached: Callable[[str], object]) -> None:
    """Let a process of its own pull, and kill it where it has reached something, after a line of its."""
    command = [sys.executable, "-c", WORK, str(root), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if reached(line):
                break
        child.kill()


def _whole(root: Path) -> set[int]:
    """Return where the parts begin of which it is remembered that they are whole."""
    states = [json.loads(path.read_bytes()) for path in root.glob("blobs/*-partial-parts")]
    return {place * PART for state in states for place, done in enumerate(state["done"]) if done == PART}
