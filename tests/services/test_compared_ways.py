"""The ways that ours is measured beside do their best: with a model that answers well, they succeed."""

from xml.dom import minidom

from bench.compaction.chart import Panel, chart
from bench.compaction.scores import HEAD, Part, plotted, rows, verdicts
from bench.compaction.sessions import make_session
from bench.compaction.trials import Round, asking, tried
from bench.compaction.watching import Watched
from bench.compaction.ways import WAYS
from diglot.core.compaction.window import is_shown_summary
from diglot.core.items import ToolResult
from diglot.engines.scripted.script import Call, Reply
from tests.services.compacting import odd_engine

SESSION = make_session(3, kind="codex", language="en", tokens=4000)
GOOD = Reply(call=(Call("create_summary", {"summary": "the port is 8123", "retain_item_ids": []}),))


async def test_a_model_that_calls_as_ollama_wants_succeeds_at_once_and_from_a_fresh_prompt() -> None:
    score = await tried(WAYS["as Ollama"], await odd_engine(32_000, GOOD), SESSION, answer=500)
    assert (score.success, score.valid, score.answers, score.rules) == (True, 1.0, 1, 1.0)
    assert score.cached < 0.2


async def test_its_answer_may_be_repaired_once() -> None:
    on = await odd_engine(32_000, Reply(say="x"), Reply(say="no"), GOOD)
    score = await tried(WAYS["as Ollama"], on, SESSION, answer=500)
    assert (score.success, score.valid, score.answers) == (True, 0.5, 2)
    on = await odd_engine(32_000, Reply(say="no"))
    score = await tried(WAYS["as Ollama"], on, SESSION, answer=500)
    assert (score.success, score.valid, score.answers, score.facts) == (False, 0.0, 2, 0.0)


async def test_it_leaves_out_the_oldest_fifth_once_if_it_is_too_long() -> None:
    on = await odd_engine(32_000, GOOD)
    request = asking(SESSION, SESSION.items)
    await tried(WAYS["as Ollama"], on, SESSION, answer=500)
    fresh = await on.count(on.asked[-1])
    assert fresh > await on.count(request)
    for share, succeeds in ((0.9, True), (0.6, False)):
        on = await odd_engine(32_000, GOOD)
        on.real_window = int(fresh * share)
        assert bool(await WAYS["as Ollama"](Watched(on), request, 500)) is succeeds


async def test_codexs_own_way_takes_the_text_and_drops_the_oldest_until_it_fits() -> None:
    for window in (32_000, 3000):
        on = await odd_engine(window, Reply(say="the port is 8123"))
        score = await tried(WAYS["as Codex"], on, SESSION, answer=500)
        assert (score.success, score.rules) == (True, 1.0)
        assert (score.unseen > 0) == (window < 4000)


async def test_ours_keeps_its_facts_whatever_the_model() -> None:
    on = await odd_engine(6000)
    score = await tried(WAYS["Diglot"], on, SESSION, answer=500)
    assert (score.success, score.files, score.rules, score.unseen) == (True, 1.0, 1.0, 0)
    assert score.facts >= 0.9
    assert not any(isinstance(item, ToolResult) and is_shown_summary(item) for item in SESSION.items)


def test_a_chart_is_whole_xml_and_shows_every_value() -> None:
    drawn = chart([Panel("a < b", ["x", "y"], {"one": [0.25, 1.0], "two": [0.0, 0.5]}, [0.9, None])], ["one", "two"])
    minidom.parseString(drawn)
    assert all(
        f">{text}</text>" in drawn for text in ("a &lt; b", "x", "y", "0.25", "1.00", "0.00", "0.50", "one", "two")
    )


async def test_scores_of_all_parts_are_told_and_drawn() -> None:
    score = await tried(WAYS["Diglot"], await odd_engine(6000), SESSION, answer=500)
    every = {way: [score] for way in WAYS}
    in_a_row = {way: [[Round(score, 0.9)] * 5] for way in WAYS}
    parts = [
        Part("3,500 tokens", every),
        Part("10 windows, quiet", {"Diglot": [score]}),
        Part("in a row", every, in_a_row),
        Part("in a row, quiet", {"Diglot": [score]}, {"Diglot": [[Round(score, 0.5)] * 5]}),
    ]
    told = {verdict.what: verdict for verdict in verdicts(parts)}
    assert not told["times faster than as Ollama, 3,500 tokens"].met
    assert told["exact facts, 10 windows, quiet"].met
    assert {len(row) for part in parts for row in rows(part)} == {len(HEAD)}
    minidom.parseString(plotted(parts, tuple(WAYS)))
