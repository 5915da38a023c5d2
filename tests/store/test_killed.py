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
from diglot.core.recipe import Recipe
from diglot.store.local import LocalStore
from diglot.store.making import make

store, weights = LocalStore(Path(sys.argv[1])), Path(sys.argv[2])
a, b, c = ModelRef(model="a"), ModelRef(model="b"), ModelRef(model="c")
recipe = Recipe(base="a", system="Be brief.", parameters={"seed": 3})
steps = (
    lambda: store.add_file(weights, a, licences=("x",)),
    lambda: store.copy(a, b),
    lambda: make(store, c, recipe, base=store.card(a), tell=lambda _: print(flush=True)),
    lambda: store.remove(a),
    lambda: store.remove(c),
)
while True:
    for step in steps:
        print(flush=True)
        step()
"""


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 11, 30])
def test_killed_at_work(store: LocalStore, weights: Path, steps: int) -> None:
    command = [sys.executable, "-c", WORK, str(store.root), str(weights)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in range(steps):
            assert child.stdout.readline() == b"\n"
        child.kill()
    listing = store.listing()
    assert listing.problems == ()
    assert {model.name for model in listing.models} <= {"a:latest", "b:latest", "c:latest"}
    assert all(model.weights.read_bytes() == weights.read_bytes() for model in listing.models)
    assert all(model.defaults.system == "Be brief." for model in listing.models if model.name == "c:latest")
    store.add_file(weights, SHARED)
    assert not list((store.root / "blobs").glob(".*"))
