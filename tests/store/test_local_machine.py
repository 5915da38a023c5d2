"""The store as a state machine: whatever is added, copied, removed and broken off, it stays whole."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from diglot.core.digest import digests_in
from diglot.core.errors import ModelNotFound
from diglot.core.model import ModelRef
from diglot.store import files
from diglot.store.local import LocalStore
from tests.store.gguf_bytes import BERT, LLAMA, gguf

NAMES = st.sampled_from([ModelRef.parse(text) for text in ("a", "A", "a:2", "ns/a", "B", "hf.co/x/b:Q4")])
CONTENTS = st.sampled_from([gguf(LLAMA), gguf(BERT), gguf({**LLAMA, "general.name": "Other"})])


SETTLE = files.settle


class Crash(BaseException):
    """The process dies here."""


@contextmanager
def crashing_after(steps: int) -> Iterator[list[str]]:
    """Let the process die at the rename that follows `steps` of them; yields a list that tells if it came to that."""
    crashed: list[str] = []
    left = iter(range(steps))

    def step(temporary: Path, path: Path, *, lasting: bool = True) -> None:
        if next(left, None) is None:
            raise Crash
        SETTLE(temporary, path, lasting=lasting)

    with pytest.MonkeyPatch.context() as patch:
        for module in ("files", "local"):
            patch.setattr(f"diglot.store.{module}.settle", step)
        try:
            yield crashed
        except Crash:
            crashed.append("crashed")


class StoreMachine(RuleBasedStateMachine):
    """A store beside what it should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store = LocalStore(self.folder / "models")
        self.expected: dict[ModelRef, bytes] = {}

    def teardown(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self.folder)

    @rule(ref=NAMES, data=CONTENTS, licences=st.sampled_from([(), ("one",), ("one", "two")]))
    def add(self, ref: ModelRef, data: bytes, licences: tuple[str, ...]) -> None:
        """An addition."""
        self.put(ref, data, licences)
        self.expected[ref] = data

    @rule(ref=NAMES, data=CONTENTS, steps=st.integers(0, 5))
    def crash_while_adding(self, ref: ModelRef, data: bytes, steps: int) -> None:
        """An addition that is broken off anywhere."""
        with crashing_after(steps) as crashed:
            self.put(ref, data, ("one",))
        if not crashed:
            self.expected[ref] = data
        else:  # Then the name stands for the old content or for the new one.
            content = self.content(ref)
            assert content in {data, self.expected.get(ref)}
            if content is not None:
                self.expected[ref] = content

    @rule(ref=NAMES, new=NAMES)
    def copy(self, ref: ModelRef, new: ModelRef) -> None:
        """A second name."""
        if ref in self.expected:
            self.store.copy(ref, new)
            self.expected[new] = self.expected[ref]
        else:
            with pytest.raises(ModelNotFound):
                self.store.copy(ref, new)

    @rule(ref=NAMES)
    def remove(self, ref: ModelRef) -> None:
        """A removal."""
        if ref in self.expected:
            self.store.remove(ref)
            del self.expected[ref]
        else:
            with pytest.raises(ModelNotFound):
                self.store.remove(ref)

    @rule()
    def open_anew(self) -> None:
        """Another process."""
        self.store = LocalStore(self.store.root)

    @invariant()
    def holds_what_it_should(self) -> None:
        """Every name stands for its content, in any case of letters."""
        listing = self.store.listing()
        assert listing.problems == ()
        assert {model.ref: model.weights.read_bytes() for model in listing.models} == self.expected
        for ref in self.expected:
            assert self.store.resolve(ref).ref == ref

    @invariant()
    def names_nothing_that_is_missing(self) -> None:
        """No manifest names a content that is not there."""
        root = self.store.root
        named = {
            d.hex for path in (root / "manifests").rglob("*") if path.is_file() for d in digests_in(path.read_bytes())
        }
        there = {path.name.removeprefix("sha256-") for path in (root / "blobs").glob("sha256-*")}
        assert named <= there

    def content(self, ref: ModelRef) -> bytes | None:
        """What a name stands for on disk."""
        try:
            return LocalStore(self.store.root).resolve(ref).weights.read_bytes()
        except ModelNotFound:
            return None

    def put(self, ref: ModelRef, data: bytes, licences: tuple[str, ...]) -> None:
        """Add a content."""
        source = self.folder / "source.gguf"
        source.write_bytes(data)
        self.store.add_file(source, ref, licences=licences)


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=25, stateful_step_count=20)
