"""Compaction on engines as they are: without schemas, with another idea of length, breaking in the middle."""

import pytest
from msgspec.structs import replace

from diglot.core.compaction.record import read_summary
from diglot.core.errors import CompactionFailed, ContextExceeded, EngineCrashed, InvalidField
from diglot.core.events import Event
from diglot.core.items import Item, Text, ToolCall, ToolResult
from diglot.core.request import JsonSchema, PlainText
from diglot.engines.scripted.script import Reply
from diglot.services.compact import Compact
from tests.services.compacting import OddEngine, items_of, odd_engine
from tests.services.test_compact import ENVELOPES, TOOLS, asking, compacted, opened, session

FREE = Reply(say='Here it is: {"summary": "the port is 8123", "retain_item_ids": []} Bye.')


async def test_an_engine_without_schemas_is_asked_in_words_and_its_prompt_stays_the_same() -> None:
    on = await odd_engine(8192, FREE)
    on.schemas = False
    items = session(12)
    assert opened(await compacted(on, items)).text.endswith("\n# Summary\nthe port is 8123")
    (asked,) = on.asked
    assert items_of(asked)[:-1] == items
    assert (asked.tools, asked.format) == (TOOLS, PlainText())


async def test_that_an_engine_takes_no_schema_is_learnt_once_and_told_in_our_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    on = await odd_engine(3000, FREE)
    on.schemas = False
    refused: list[Item] = []
    generate = on.generate

    def watched(request):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if isinstance(request.format, JsonSchema):
            refused.append(request)
        return generate(request)

    on.generate = watched  # type: ignore[method-assign]
    await compacted(on, session(30))
    assert len(on.asked) > 3
    assert len(refused) == 1
    assert caplog.messages[0] == "the engine takes no schema, so it is asked in words"


async def test_prose_is_taken_where_nothing_better_comes_in_three_attempts() -> None:
    on = await odd_engine(8192, Reply(say="We fixed the port."))
    on.schemas = False
    assert opened(await compacted(on, session(12))).text.endswith("We fixed the port.")
    assert len(on.asked) == 3


async def test_an_engine_that_says_nothing_fails_and_nothing_is_changed() -> None:
    on = await odd_engine(8192, Reply(say=" "))
    on.schemas = False
    with pytest.raises(CompactionFailed):
        await compacted(on, session(12))
    assert len(on.asked) == 3


async def test_a_refusal_that_has_nothing_to_do_with_the_schema_passes_through() -> None:
    on = await odd_engine(8192)

    async def refuse(request):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        nothing: tuple[Event, ...] = ()
        for event in nothing:
            yield event
        raise InvalidField("tools", "no")

    on.generate = refuse  # type: ignore[method-assign]
    with pytest.raises(InvalidField, match="tools"):
        await compacted(on, session(12))


@pytest.mark.parametrize("share", [0.9, 0.7, 0.5])
async def test_an_engine_with_less_room_than_it_says_gets_shorter_pieces(share: float) -> None:
    on = await odd_engine(4000)
    on.real_window = int(4000 * share)
    items = session(30)
    await compacted(on, items)
    seen = [item for request in on.asked for item in items_of(request)]
    assert all(item in seen for item in items)


async def test_an_engine_that_refuses_to_count_what_is_too_long_is_no_hindrance() -> None:
    on = await odd_engine(3000)
    on.counts_all = False
    done = await compacted(on, session(30))
    assert done.after < 3000 * 0.8


async def test_an_engine_that_takes_nothing_at_all_is_given_up() -> None:
    on = await odd_engine(4000)
    on.real_window = 10
    with pytest.raises(ContextExceeded):
        await compacted(on, session(30))


@pytest.mark.parametrize("after", range(-1, 4))
async def test_a_crash_at_any_event_passes_through_and_leaves_no_slot_busy(after: int) -> None:
    on = await odd_engine(3000, Reply(echo=True), Reply(echo=True), Reply(echo=True, fault="crash", after=after))
    items = session(30)
    with pytest.raises(EngineCrashed):
        await compacted(on, items)
    assert (items, on.busy) == (session(30), 0)


async def test_leaving_at_any_event_leaves_no_slot_busy() -> None:
    on = await odd_engine(3000, Reply(echo=True, prefill=3))
    total = len([event async for event in Compact(ENVELOPES)(on, asking(session(30)))])
    assert total > 9
    for leave in range(total):
        events = Compact(ENVELOPES)(on, asking(session(30)))
        for _ in range(leave + 1):
            await anext(events)
        await events.aclose()
        assert on.busy == 0


@pytest.mark.parametrize(
    ("think", "first", "second"), [(None, None, None), (True, False, False), ("high", "high", False)]
)
async def test_a_model_does_not_think_about_a_summary_but_an_effort_stays_for_the_sake_of_the_prefix(
    think: object, first: object, second: object
) -> None:
    on = await odd_engine(8192, Reply(say='{"no": 1}'), Reply(say='{"summary": "x", "retain_item_ids": []}'))
    request = replace(asking(session(12)), think=think)
    assert [event async for event in Compact(ENVELOPES)(on, request)]
    assert [each.think for each in on.asked] == [first, second]


async def counts(on: OddEngine, items: tuple[Item, ...]) -> tuple[int, int]:
    done = await compacted(on, items)
    tokens = sum(on.counted)
    assert opened(done).text
    return len(on.counted), tokens // done.before


async def test_little_is_counted_where_everything_fits() -> None:
    times, share = await counts(await odd_engine(16_000), session(12))
    assert times <= 6
    assert share <= 3


@pytest.mark.parametrize("windows", [3, 10, 20])
async def test_what_is_counted_grows_with_the_length_and_not_with_its_square(windows: int) -> None:
    on = await odd_engine(3000)
    times, share = await counts(on, session(windows * 9))
    assert times <= 4 * len(on.asked) + 8
    assert share <= 12


async def test_the_record_of_an_abridged_result_is_exact() -> None:
    lines = [f"def f{number}(): pass" for number in range(3000)]
    lines[1500] = "error: E7741 in src/deep.py:88"
    large = ToolResult("z", (Text("\n".join(lines)),))
    items = (*session(2), ToolCall("z", "shell", '{"command": "make"}'), large)
    summary = opened(await compacted(await odd_engine(4000), items))
    assert "E7741" in summary.text
    record, _ = read_summary(summary.text)
    assert record is not None
    assert [type(item) for item in summary.retained] == [ToolCall, ToolResult]
