"""The ledger never lends more than there is, and forgets nobody."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.model import Anatomy, Capabilities, Model, ModelDetails, ModelRef
from diglot.core.request import LoadOptions
from diglot.engines.llamacpp.ledger import Ledger
from diglot.engines.llamacpp.sizing import Limits, sizes_of


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(0, 3), st.booleans()), max_size=12))
def test_no_more_is_held_than_there_is_and_everybody_gets_a_turn(wants: list[tuple[int, int, bool]]) -> None:
    async def run() -> None:
        ledger, held, served = Ledger(10), [0], [0]

        async def one(tokens: int, turns: int) -> None:
            async with ledger.hold(tokens):
                held[0] += tokens
                try:
                    assert held[0] <= 10
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    served[0] += 1
                finally:
                    held[0] -= tokens

        tasks = [asyncio.create_task(one(tokens, turns)) for tokens, turns, _ in wants]
        await asyncio.sleep(0)
        gone = [task for task, (_, _, leaves) in zip(tasks, wants, strict=True) if leaves and task.cancel()]
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [error for error in done if error and not isinstance(error, asyncio.CancelledError)] == []
        assert served[0] >= len(tasks) - len(gone)
        assert ledger.fits(10)

    asyncio.run(run())


async def test_those_who_wait_are_served_in_order() -> None:
    ledger, order = Ledger(4), list[int]()

    async def one(number: int, tokens: int) -> None:
        async with ledger.hold(tokens):
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(one(0, 3), one(1, 4), one(2, 1), one(3, 1))
    assert order == [0, 1, 2, 3]


def model(*, window: int = 8192, token: int = 1000, embeds: bool = False) -> Model:
    return Model(
        ref=ModelRef("m"),
        digest="0" * 64,
        size=10_000_000,
        modified_at=0,
        weights=None,  # type: ignore[arg-type]
        details=ModelDetails(),
        capabilities=Capabilities(embedding=embeds, completion=not embeds),
        anatomy=Anatomy(architecture="x", context_length=window, kv_bytes_per_token=token),
    )


@pytest.mark.parametrize(
    ("cache", "asked", "window", "pool"),
    [
        (10**9, None, 8192, 32768),  # A full window for each slot.
        (16_000_000, None, 8192, 16128),  # Not all of them.
        (5_000_000, None, 5000, 5120),  # As much of one window as there is.
        (1_000_000, None, 4096, 4096),  # But a usable one.
        (1_000_000, 8000, 8000, 8192),  # What was asked for is given.
        (10**9, 100_000, 8192, 32768),  # Not more than was trained.
    ],
)
def test_sizes_fit_the_allowance(cache: int, asked: int | None, window: int, pool: int) -> None:
    sizes = sizes_of(model(), LoadOptions(window=asked), Limits(slots=4, cache=cache))
    assert (sizes.window, sizes.pool) == (window, pool)
    assert sizes.memory > 10_000_000 + pool * 1000


def test_an_encoder_reads_a_text_in_one_batch() -> None:
    sizes = sizes_of(model(window=512, token=0, embeds=True), LoadOptions(), Limits(slots=4))
    assert (sizes.window, sizes.batch, sizes.pool) == (512, 512, 2048)
