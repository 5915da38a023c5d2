"""Keeping: people's words outlive a compaction as they were written, as far as there is room."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from diglot.core.items import Item, Message, said
from diglot.services.keeping import kept_within
from diglot.services.tally import Tally
from tests.services.test_compact import asking, engine


async def kept(items: tuple[Item, ...], window: int = 1000) -> tuple[Item, ...]:
    return await kept_within(Tally(await engine(window), asking(())), items)


async def test_what_fits_is_kept_as_it_is() -> None:
    items = (said("system", "rules"), *(said("user", f"request {number}") for number in range(9)))
    assert await kept(items) == items


async def test_the_oldest_go_first_but_the_first_of_all_and_the_system_text_stay() -> None:
    users = [said("user", f"request {number} " + "word " * 90) for number in range(9)]
    items = (said("system", "rules"), *users, said("developer", "more rules"))
    left = await kept(items)
    assert left[0] == items[0]
    assert left[1] == users[0]
    assert left[-1] == items[-1]
    assert users[1] not in left
    assert users[-1] in left
    assert [item for item in items if item in left] == list(left)


async def test_a_single_long_message_that_the_window_holds_is_not_touched() -> None:
    items = (said("user", "word " * 600),)
    assert await kept(items) == items


async def test_a_message_larger_than_the_window_is_abridged_as_the_last_resort() -> None:
    (short,) = await kept((said("user", "BEGIN " + "word " * 5000 + "END"),))
    assert isinstance(short, Message)
    assert short.text.startswith("BEGIN")
    assert short.text.endswith("END")


async def test_the_choice_is_the_same_at_every_request_so_that_the_cache_holds() -> None:
    items = tuple(said("user", f"{number} " + "word " * 60) for number in range(30))
    assert await kept(items) == await kept(items)


@given(st.lists(st.integers(0, 900), max_size=12), st.integers(200, 2000))
def test_it_always_fits_and_never_invents(sizes: list[int], window: int) -> None:
    items = tuple(said("user", f"{index} " + "word " * size) for index, size in enumerate(sizes))

    async def play() -> None:
        on = await engine(window)
        left = await kept_within(Tally(on, asking(())), items)
        assert not left or await on.count(asking(left)) < window + 100
        starts = [item.text.split()[0] for item in left if isinstance(item, Message)]
        assert starts == sorted(starts, key=int)
        assert not items or starts[0] == "0"

    asyncio.run(play())
