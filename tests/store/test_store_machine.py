"""The store as a state machine: pulls, models made, copies, removals, uploads and tidying, several at a time, each maybe killed.

Every piece of work is a process of its own, which is killed before a file operation of choice, or not at all. What has to
hold afterwards: every name stands for a whole model; a name that nobody touched stands for what it did; one that was
touched stands for what it did before, or for what one of those who touched it could make of it. At the end nothing is left
over, and what was killed succeeds.
"""

# ruff: noqa: D101, D102  rules and invariants are named as sentences

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from diglot.core.model import ModelRef
from tests.store.arriving import WEIGHTS
from tests.store.doing import DONE, KILLED, Doer, Work, doer
from tests.store.gguf_bytes import LLAMA, gguf
from tests.store.registry import Registry, registry
from tests.store.wholeness import Identity, require_tidy, require_whole

OWN: Final = ("a", "b", "c")
OFFERED: Final = ("one", "two", "three")
"""The models of the registry: two with the same weights, and one with those that are also added from a file."""
OTHER: Final = gguf({**LLAMA, "general.name": "Other"})
_HARMLESS: Final = {"ModelNotFound", "ModelBroken"}
"""What may come of work whose source somebody else removes meanwhile."""

NAME = st.sampled_from([*OWN, *OFFERED])
CRASH = st.none() | st.integers(0, 60)
WORK = st.one_of(
    st.builds(Work, st.just("add"), st.sampled_from(OWN), st.sampled_from(["tiny", "other"]), CRASH),
    st.builds(Work, st.just("make"), st.sampled_from(OWN), NAME, CRASH),
    st.builds(Work, st.just("copy"), st.sampled_from(OWN), NAME, CRASH),
    st.builds(Work, st.just("remove"), NAME, st.just(""), CRASH),
    st.builds(Work, st.just("upload"), st.just(""), st.sampled_from(["x", "y"]), CRASH),
    st.builds(Work, st.just("tidy"), st.just(""), st.just(""), CRASH),
    st.builds(Work, st.just("pull"), st.sampled_from(OFFERED), st.just(""), CRASH),
)
MAKING: Final = frozenset({"add", "make", "copy", "pull"})

State = dict[ModelRef, Identity]
Possible = dict[ModelRef, set[Identity | None]]


def identity(data: bytes, system: str = "") -> Identity:
    return hashlib.sha256(data).hexdigest(), system


class StoreMachine(RuleBasedStateMachine):
    doing: Doer
    there: Registry

    def __init__(self) -> None:
        super().__init__()
        self._open = ExitStack()
        self._folder = Path(self._open.enter_context(tempfile.TemporaryDirectory()))
        self._files = {"tiny": WEIGHTS, "other": OTHER}
        for name, data in self._files.items():
            (self._folder / name).write_bytes(data)
        self._root = self._folder / "store"
        self._root.mkdir()
        self._before: State = {}

    def teardown(self) -> None:
        try:
            self._end()
        finally:
            self._open.close()

    @rule(works=st.lists(WORK, min_size=1, max_size=3))
    def work_is_done_at_the_same_time(self, works: list[Work]) -> None:
        possible = self._possible(works)
        outcomes = self.doing.do(self._root, [self._told(work) for work in works])
        assert set(outcomes) <= {DONE, KILLED} | _HARMLESS
        after = require_whole(self._root)
        for ref in possible.keys() | after.keys():
            assert after.get(ref) in possible.get(ref, {None}), (ref, outcomes)
        if len(works) == 1:
            self._require_done(works[0], outcomes[0], after, possible)
        self._before = after

    def _require_done(self, work: Work, outcome: str, after: State, possible: Possible) -> None:
        """Show that work that was done by itself is done, and that work that failed changed nothing."""
        ref = self._ref(work.name) if work.name else None
        if outcome == DONE and ref is not None:
            [wanted] = possible[ref] - {self._before.get(ref)} or {self._before.get(ref)}
            assert after.get(ref) == wanted
        elif outcome in _HARMLESS:
            assert outcome == "ModelNotFound"
            assert after == self._before

    def _possible(self, works: Sequence[Work]) -> Possible:
        """Return what each name may stand for once all of this was done in any order and killed anywhere."""
        possible: Possible = {ref: {found} for ref, found in self._before.items()}
        for _ in works:  # One can build on the other.
            for work in works:
                if work.name:
                    ref = self._ref(work.name)
                    possible.setdefault(ref, {None}).update(self._made(work, possible))
        return possible

    def _made(self, work: Work, possible: Possible) -> set[Identity | None]:
        """Return what a name can stand for once this was done."""
        match work.do:
            case "add":
                return {identity(self._files[work.other])}
            case "pull":
                return {self._offered(work.name)}
            case "remove":
                return {None}
            case _:
                sources = possible.get(self._ref(work.other), {None}) - {None}
                return {(found[0], "Be brief." if work.do == "make" else found[1]) for found in sources if found}

    def _offered(self, name: str) -> Identity:
        return identity(OTHER if name == "three" else WEIGHTS, name)

    def _name(self, name: str) -> str:
        return f"{self.there.host}/me/{name}:1" if name in OFFERED else name

    def _ref(self, name: str) -> ModelRef:
        return ModelRef.parse(self._name(name))

    def _told(self, work: Work) -> Work:
        other = str(self._folder / work.other) if work.do == "add" else work.other
        return Work(work.do, self._name(work.name), self._name(other), work.crash)

    def _end(self) -> None:
        """Show that everything can be had that was tried before, and that nothing is left over."""
        works = [Work("pull", name) for name in OFFERED] + [Work("add", "a", "tiny")]
        assert self.doing.do(self._root, [self._told(work) for work in works]) == [DONE] * len(works)
        after = require_whole(self._root)
        for work in works:
            assert {after[self._ref(work.name)]} == self._made(work, {})
        require_tidy(self._root)
        assert require_whole(self._root) == after


@pytest.mark.timeout(240)
def test_a_store_stays_whole_whatever_is_done_to_it() -> None:
    with doer() as program, registry() as there:
        there.put("me/one:1", ("model", WEIGHTS), ("system", b"one"))
        there.put("me/two:1", ("model", WEIGHTS), ("system", b"two"))
        there.put("me/three:1", ("model", OTHER), ("system", b"three"))
        machine = type("Bound", (StoreMachine,), {"doing": program, "there": there})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=12, stateful_step_count=6, deadline=None, suppress_health_check=list(HealthCheck)
            ),
        )
