"""A process that is killed in the middle of anything leaves a whole store."""

import subprocess
import sys
from pathlib import Path

import pytest

from diglot.store.local import LocalStore
from tests.store.on_disk import SHARED

WORK = """
import sys
from pathlib import Path
from diglot.core.model import ModelRef
from diglot.store.local import LocalStore

store, weights = LocalStore(Path(sys.argv[1])), Path(sys.argv[2])
a, b = ModelRef(model="a"), ModelRef(model="b")
while True:
    for step in (lambda: store.add_file(weights, a, licences=("x",)), lambda: store.copy(a, b), lambda: store.remove(a)):
        print(flush=True)
        step()
"""


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 20])
def test_killed_at_work(store: LocalStore, weights: Path, steps: int) -> None:
    command = [sys.executable, "-c", WORK, str(store.root), str(weights)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in range(steps):
            assert child.stdout.readline() == b"\n"
        child.kill()
    listing = store.listing()
    assert listing.problems == ()
    assert {model.name for model in listing.models} <= {"a:latest", "b:latest"}
    assert all(model.weights.read_bytes() == weights.read_bytes() for model in listing.models)
    store.add_file(weights, SHARED)
    assert not list((store.root / "blobs").glob(".*"))
