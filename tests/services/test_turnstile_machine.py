"""The turnstile as a state machine: callers who come, go, give up and give way in any order keep what it promises."""

# ruff: noqa: D101, D102  rules and invariants are named as sentences

import asyncio
from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from diglot.core.errors import Busy
from diglot.services.admission import Turnstile
from tests.services.world import Clock, settle

CALLERS = st.sampled_from("abcd")
CHOICE = st.integers(0, 99)
PATIENCE = 8


class Guest:
    """Somebody of a caller's who wants in. `served` counts the others who were let in while he waited, by caller."""

    def __init__(self, crowd: "TurnstileMachine", caller: str, *, background: bool) -> None:
        self.crowd = crowd
        self.number = len(crowd.guests)
        self.caller = caller
        self.background = background
        self.ahead = 0
        self.overtaken: Counter[tuple[str, bool]] = Counter()
        self.waits = self.inside = False
        self.entries = 0
        self.leaves = self.aside = False
        self.moved = asyncio.Event()
        self.task = asyncio.create_task(self._visit())

    def begin_to_wait(self) -> None:
        self.waits = True
        self.ahead = sum(each.waits and each.is_of(self) for each in self.crowd.guests if each is not self)
        self.overtaken.clear()

    def is_of(self, other: "Guest") -> bool:
        return (self.caller, self.background) == (other.caller, other.background)

    def come_in(self) -> None:
        self.waits, self.inside = False, True
        self.entries += 1
        for each in self.crowd.guests:
            if each.waits:
                each.overtaken[(self.caller, self.background)] += 1
        self.crowd.entered.append(self)

    async def _visit(self) -> None:
        self.begin_to_wait()
        try:
            async with self.crowd.turnstile.turn(self.caller, background=self.background) as turn:
                self.come_in()
                while not self.leaves:
                    await self.moved.wait()
                    self.moved.clear()
                    if self.aside:
                        self.aside = self.inside = False
                        self.begin_to_wait()
                        await turn.give_way()
                        self.come_in()
                self.inside = False
        except Busy:
            pass
        finally:
            self.waits = self.inside = False

    def move(self, *, away: bool) -> None:
        self.leaves, self.aside = self.leaves or away, not away
        self.moved.set()


class TurnstileMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.guests: list[Guest] = []
        self.entered: list[Guest] = []

    @initialize(slots=st.integers(1, 3), queue=st.integers(0, 12))
    def open(self, slots: int, queue: int) -> None:
        self.slots, self.queue = slots, queue
        self.turnstile = Turnstile(slots=slots, queue=queue, clock=Clock())

    def _run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def _waiting(self) -> list[Guest]:
        return [each for each in self.guests if each.waits]

    def _inside(self) -> list[Guest]:
        return [each for each in self.guests if each.inside]

    @rule(caller=CALLERS, background=st.sampled_from([False, False, True]), number=st.integers(1, 6))
    def come(self, caller: str, background: bool, number: int) -> None:  # noqa: FBT001  hypothesis passes it by name
        async def come() -> None:
            for _ in range(number):
                self.guests.append(Guest(self, caller, background=background))

        self._run(come())

    @precondition(lambda self: self._inside())
    @rule(choice=CHOICE)
    def go(self, choice: int) -> None:
        self._inside()[choice % len(self._inside())].move(away=True)

    @precondition(lambda self: self._inside())
    @rule(choice=CHOICE)
    def give_way(self, choice: int) -> None:
        self._inside()[choice % len(self._inside())].move(away=False)

    @precondition(lambda self: self.guests)
    @rule(choice=CHOICE)
    def cancel(self, choice: int) -> None:
        those = self._waiting() or self.guests
        those[choice % len(those)].task.cancel()

    @precondition(lambda self: self._inside() and self._waiting())
    @rule(choice=CHOICE, turns=st.integers(1, 3))
    def cancel_whoever_was_handed_a_slot(self, choice: int, turns: int) -> None:
        self.go(choice)
        self.run_a_little(turns)
        self.cancel(choice)

    @rule(turns=st.integers(1, 4))
    def run_a_little(self, turns: int) -> None:
        async def little() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self._run(little())

    @rule()
    def run_all(self) -> None:
        self._run(settle())
        waiting = self._waiting()
        assert not waiting or len(self._inside()) == self.slots, "a slot is lost while somebody waits"
        assert sum(not each.background and not each.entries for each in waiting) <= self.queue

    @invariant()
    def no_more_are_inside_than_there_are_slots(self) -> None:
        assert len(self._inside()) <= self.slots

    @invariant()
    def nothing_happens_to_a_guest_but_what_was_done_to_him(self) -> None:
        for guest in self.guests:
            if guest.task.done() and not guest.task.cancelled():
                assert guest.task.exception() is None

    @invariant()
    def nobody_is_overtaken_by_another_caller_more_often_than_he_has_places_ahead(self) -> None:
        for guest in self._waiting():
            front = sum(count for (_, background), count in guest.overtaken.items() if not background)
            behind = sum(count for (_, background), count in guest.overtaken.items() if background)
            for (caller, background), count in guest.overtaken.items():
                if background == guest.background and caller != guest.caller:
                    assert count <= guest.ahead + 1 + self.slots  # Some were served before, and come in only now.
            if guest.background:
                assert front <= PATIENCE * (behind + 1) + self.slots
            else:
                assert behind <= front // PATIENCE + 1 + self.slots

    @invariant()
    def the_places_of_one_caller_are_served_in_order(self) -> None:
        for caller in "abcd":
            for background in (False, True):
                first = [each for each in self.entered if (each.caller, each.background) == (caller, background)]
                numbers = [each.number for each in dict.fromkeys(first)]
                assert numbers == sorted(numbers)

    def teardown(self) -> None:
        """Whatever has happened, once all leave in turn, everybody was served or sent away, and all slots are free."""
        self._run(settle())
        while any(not guest.task.done() for guest in self.guests):
            before = len(self._inside())
            assert before, "somebody waits for ever"
            for guest in self._inside():
                guest.move(away=True)
            self._run(settle())
        if self.guests:
            assert self.turnstile.idle
        self.loop.close()


TurnstileMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None, derandomize=True)
TestTurnstile = TurnstileMachine.TestCase
