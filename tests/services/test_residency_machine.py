"""Residency as a state machine: any order of what can happen to it keeps what its docstring promises."""

# ruff: noqa: D101, D102  rules and invariants are named as sentences

import asyncio
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from diglot.core.errors import Cancelled, LoadFailed
from diglot.core.request import LoadOptions
from tests.services.world import World, model, settle

NAMES = st.sampled_from(["a", "b", "c", "large"])
SIZES = {"a": 10, "b": 10, "c": 20, "large": 60}
BUDGET = 45
CHOICE = st.integers(0, 99)


class Lease:
    """Somebody who wants an engine, has one, or has had one."""

    def __init__(self, world: World, name: str, window: int | None, keep_alive: float | None) -> None:
        self.leave = asyncio.Event()
        self.engine: Any = None
        self.lending = world.residency.lease(model(name, size=SIZES[name]), LoadOptions(window=window), keep_alive)
        self.task = asyncio.create_task(self._stay())

    async def _stay(self) -> None:
        async with self.lending as engine:
            self.engine = engine
            try:
                await self.leave.wait()
            finally:
                self.engine = None


class ResidencyMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world = self._run(self._build())
        self.leases: list[Lease] = []
        self.closed = False

    async def _build(self) -> World:
        return World(budget=BUDGET, keep_alive=50)

    def _run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def _pick(self, choice: int) -> Lease:
        return self.leases[choice % len(self.leases)]

    @rule(
        name=NAMES, window=st.sampled_from([None, None, 1, 2]), keep_alive=st.sampled_from([None, 0, 5, float("inf")])
    )
    def want(self, name: str, window: int | None, keep_alive: float | None) -> None:
        async def begin() -> None:
            self.leases.append(Lease(self.world, name, window, keep_alive))

        self._run(begin())

    @precondition(lambda self: self.leases)
    @rule(choice=CHOICE)
    def leave(self, choice: int) -> None:
        self._pick(choice).leave.set()

    @precondition(lambda self: self.leases)
    @rule(choice=CHOICE)
    def cancel(self, choice: int) -> None:
        self._pick(choice).task.cancel()

    @rule(turns=st.integers(1, 3))
    def run_a_little(self, turns: int) -> None:
        async def little() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self._run(little())

    @rule()
    def run_all(self) -> None:
        self._run(settle())

    @rule(seconds=st.sampled_from([1, 5, 50]))
    def time_passes(self, seconds: int) -> None:
        self._run(self.world.clock.advance(seconds))

    @rule(works=st.booleans())
    def loads_take_time(self, works: bool) -> None:  # noqa: FBT001  hypothesis passes it by name
        self.world.loader.gate.clear()
        self.world.loader.fault = None if works else LoadFailed("x", reason="y")

    @rule()
    def loads_get_through(self) -> None:
        self.world.loader.gate.set()

    @precondition(lambda self: self.world.loader.open)
    @rule(choice=CHOICE)
    def crash(self, choice: int) -> None:
        engines = self.world.loader.open
        engines[choice % len(engines)].alive = False

    @rule(name=NAMES)
    def unload(self, name: str) -> None:
        self._run(self.world.residency.unload(model(name)))

    @rule()
    def close(self) -> None:
        self._run(self.world.residency.close())
        self.closed = True

    @invariant()
    def nobody_sees_a_closed_engine(self) -> None:
        if not self.closed:
            assert all(not lease.engine.closed for lease in self.leases if lease.engine)

    @invariant()
    def memory_is_within_the_budget_unless_one_alone_exceeds_it(self) -> None:
        sizes = [engine.model.size + (engine.options.window or 0) for engine in self.world.loader.open]
        assert len(sizes) <= 1 or sum(sizes) <= BUDGET

    @invariant()
    def a_model_is_in_memory_once(self) -> None:
        names = [engine.model.name for engine in self.world.loader.open]
        assert len(names) == len(set(names))

    @invariant()
    def after_close_nothing_is_left(self) -> None:
        if self.closed:
            assert not self.world.loader.open
            assert not self.world.names

    def teardown(self) -> None:
        """Whatever has happened, once all have left and time has passed, nobody waits and nothing is left."""
        self.world.loader.gate.set()
        self.world.loader.fault = None
        for lease in self.leases:
            lease.leave.set()
        for _ in range(len(self.leases) + 1):
            self._run(settle())
        assert all(lease.task.done() for lease in self.leases), "somebody waits for ever"
        for lease in self.leases:
            fault = None if lease.task.cancelled() else lease.task.exception()
            assert fault is None or isinstance(fault, LoadFailed | Cancelled)
        self._run(self.world.clock.advance(1000))
        assert all(each.expires_at == float("inf") for each in self.world.residency.running())
        self._run(self.world.residency.close())
        assert not self.world.loader.open
        self._run(settle())
        assert not asyncio.all_tasks(self.loop)
        self.loop.close()


ResidencyMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None, derandomize=True)
TestResidency = ResidencyMachine.TestCase
