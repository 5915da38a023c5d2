"""The report of the benchmark: medians, spreads and verdicts. What it measures is not asked here: tests assert no times."""

import asyncio
import json
from pathlib import Path

import pytest

from bench.flood import Counting
from bench.itself import long_chat
from bench.report import Line, at_least, at_most, differences, ratios, table
from bench.weights import weights
from diglot.dialects.ollama import chat as ollama_chat
from diglot.dialects.openai import chat as openai_chat
from diglot.dialects.operation import Wire
from diglot.store.facts import read_facts


def test_a_line_tells_median_spread_and_verdict() -> None:
    line = Line("ratio", (0.5, 1.25, 0.99), "{:.2f}", target=at_least(0.97), note="alone 10")
    assert line.cells() == ("ratio", "0.99", "0.50..1.25", ">= 0.97", "met", "alone 10")


def test_a_target_that_is_missed_is_shouted() -> None:
    assert Line("time", (5.1, 9.0, 5.2), "{:.1f}", unit="ms", target=at_most(5)).cells()[3:5] == (
        "<= 5.0 ms",
        "NOT MET",
    )


def test_a_line_without_a_target_has_no_verdict() -> None:
    line = Line("cost", (1.0,), "{:.0f}")
    assert line.met is None
    assert line.cells() == ("cost", "1", "1..1", "", "", "")


def test_the_bound_itself_is_good_enough() -> None:
    assert at_least(0.97).met(0.97)
    assert at_most(5).met(5)


def test_pairs_are_compared_one_by_one() -> None:
    assert ratios([2, 3], [1, 6]) == (2, 0.5)
    assert differences([2, 3], [1, 6]) == (1, -3)
    with pytest.raises(ValueError, match="longer"):
        ratios([1], [1, 2])


def test_columns_stand_below_one_another() -> None:
    assert table([("a", "b"), ("long", "c")]) == "a     b\nlong  c"


def test_a_long_chat_is_one_that_the_dialects_take() -> None:
    for parse, as_text in ((openai_chat.parse, True), (ollama_chat.parse, False)):
        body = long_chat(20_000, arguments_as_text=as_text)
        assert 20_000 < len(body) < 60_000
        assert json.loads(body)["messages"][2]["tool_calls"]
        parse(Wire(body=body))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
async def test_events_are_counted_under_any_cutting(size: int) -> None:
    ended = asyncio.get_running_loop().create_future()
    counting = Counting(b"", b"\n\n", ended)
    text = b"data: a\n\ndata: b\n\n\r\ndata: [DONE]\n\n"
    counting.data_received(b"HTTP/1.1 200 OK\r\n\r\n")
    for at in range(0, len(text), size):
        counting.data_received(text[at : at + size])
    counting.connection_lost(None)
    assert await ended == 3


def test_made_up_weights_are_sound(tmp_path: Path) -> None:
    file = tmp_path / "weights.gguf"
    file.write_bytes(weights(64, name="n", vocabulary=3) + bytes(64))
    facts = read_facts(file)
    assert (facts.purpose, facts.anatomy.vocabulary, facts.details.family) == ("model", 3, "llama")
