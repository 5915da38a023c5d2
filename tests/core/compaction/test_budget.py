"""The budget: no part of a compaction may take what the others need."""

from hypothesis import given
from hypothesis import strategies as st

from diglot.core.compaction.budget import budget_of, shorter


@given(st.integers(512, 1_000_000), st.floats(0, 2), st.floats(0, 20))
def test_the_whole_takes_at_most_45_percent_of_the_window_and_60_of_what_it_stands_for(
    window: int, fixed: float, more: float
) -> None:
    stays = int(window * fixed)
    before = stays + int(window * more)
    budget = budget_of(window=window, fixed=stays, before=before)
    assert 0 <= budget.whole <= max(int(window * 0.45), int(window * 0.12))
    assert budget.small or budget.whole <= int((before - stays) * 0.6) + 1
    assert not budget.small or before <= window * 0.5
    assert budget.chosen <= budget.retained <= min(budget.whole, int(window * 0.4))


@given(st.integers(2048, 200_000), st.floats(0.2, 1))
def test_a_threshold_below_the_window_is_what_the_shares_are_taken_of(window: int, share: float) -> None:
    threshold = int(window * share)
    budget = budget_of(window=window, fixed=0, before=window * 2, threshold=threshold)
    assert budget == budget_of(window=threshold, fixed=0, before=window * 2)


def test_what_stays_anyway_takes_from_the_rest() -> None:
    free = budget_of(window=10_000, fixed=0, before=20_000)
    tight = budget_of(window=10_000, fixed=4_000, before=20_000)
    assert (free.whole, tight.whole) == (4500, 2000)


def test_where_nearly_all_of_the_window_is_free_a_summary_may_be_longer_than_what_it_stands_for() -> None:
    assert budget_of(window=10_000, fixed=20, before=40).whole == 800
    assert budget_of(window=10_000, fixed=40, before=40).whole == 0


def test_an_answer_may_always_have_a_token_for_each_of_its_characters() -> None:
    budget = budget_of(window=8192, fixed=500, before=8000)
    assert budget.answer >= budget.prose + 128
    assert [shorter(budget.prose, attempt) for attempt in range(3)] == [819, 204, 64]


def test_offers_are_few_where_the_conversation_is_short() -> None:
    assert [budget_of(window=9000, fixed=0, before=n).offers for n in (900, 3500, 90_000)] == [0, 1, 16]


def test_what_the_last_summary_took_may_be_written_again() -> None:
    once = budget_of(window=10_000, fixed=500, before=6000)
    again = budget_of(window=10_000, fixed=500, before=500 + once.whole, stood=once.whole)
    assert again.whole == once.whole
    assert budget_of(window=10_000, fixed=500, before=9000, stood=8000).whole == 4500
