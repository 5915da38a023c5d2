"""The line before a turnstile: who is served when, exactly."""

# ruff: noqa: D102  methods are the steps of a scenario

import asyncio
from collections import Counter
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from diglot.services.waiting import Line, Place

STEPS = st.lists(
    st.tuples(st.sampled_from(["join", "join", "spared", "serve", "drop", "yield"]), st.integers(0, 9)),
    max_size=80,
)


class Watched:
    """A line, and for each place how many of each other caller were served while it waited."""

    def __init__(self) -> None:
        self.line = Line()
        self.waiting: list[Place] = []
        self.ahead: dict[Place, int] = {}
        self.passed: dict[Place, Counter[str]] = {}

    def join(self, choice: int, *, spared: bool = False) -> None:
        caller = "abc"[choice % 3]
        place = self.line.join(caller, spared=spared)
        self.ahead[place] = sum(each.caller == caller for each in self.waiting)
        self.passed[place] = Counter()
        self.waiting.append(place)

    def serve(self) -> None:
        place = self.line.serve()
        live = [each for each in self.waiting if not each.ready.done()]
        if place is None:
            assert not live
            return
        assert place is next(each for each in live if each.caller == place.caller), (
            "those of one caller keep their order"
        )
        self.waiting.remove(place)
        for each in live:
            self.passed[each][place.caller] += each.caller != place.caller
            assert max(self.passed[each].values()) <= self.ahead[each] + 1, "each other caller comes once in between"

    def remove(self, place: Place) -> None:
        self.line.drop(place)
        self.waiting.remove(place)

    def yield_place(self, choice: int) -> None:
        caller = "abc"[choice % 3]
        counts = Counter(each.caller for each in self.waiting if not each.spared)
        place = self.line.yielded_to(caller)
        if place is None:
            assert max(counts.values(), default=0) <= counts[caller] + 1
        else:
            assert counts[place.caller] == max(counts.values()) > counts[caller] + 1
            assert place is [each for each in self.waiting if each.caller == place.caller and not each.spared][-1]
            self.waiting.remove(place)

    def check(self) -> None:
        assert self.line.counted == sum(not each.spared for each in self.waiting)
        assert len(self.line) == len(self.waiting)


@given(steps=STEPS)
def test_callers_are_served_in_rounds_and_each_in_his_order(steps: Iterable[tuple[str, int]]) -> None:
    async def play() -> None:
        watched = Watched()
        for step, choice in steps:
            place = watched.waiting[choice % len(watched.waiting)] if watched.waiting else None
            match step:
                case "join":
                    watched.join(choice)
                case "spared":
                    watched.join(choice, spared=True)
                case "serve":
                    watched.serve()
                case "yield":
                    watched.yield_place(choice)
                case "drop" if place:
                    watched.remove(place)
                case _:
                    pass
            watched.check()

    asyncio.run(play())


@given(places=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12))
def test_who_has_given_up_is_passed_over(places: list[tuple[str, bool]]) -> None:
    async def play() -> None:
        line = Line()
        joined = [(line.join(caller), gone) for caller, gone in places]
        for place, gone in joined:
            if gone:
                place.ready.cancel()
        served = []
        while (turn := line.serve()) is not None:
            served.append(turn)
        assert {id(each) for each in served} == {id(each) for each, gone in joined if not gone}
        assert not len(line)

    asyncio.run(play())
