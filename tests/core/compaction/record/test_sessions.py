"""What the record keeps of scripted agent sessions, as shares of the facts that were planted in them."""

from statistics import mean

import pytest

from bench.compaction.facts import ROOM, WINDOW, compacted, recall, scored, survival, windows
from bench.compaction.sessions import KINDS, LANGUAGES, length, make_session
from diglot.core.items import Message, ToolCall, ToolResult

CASES = [(seed, kind, LANGUAGES[seed % len(LANGUAGES)]) for seed, kind in enumerate(KINDS)]


@pytest.mark.parametrize(("size", "least"), [(1, 0.95), (3, 0.8), (10, 0.5)])
def test_the_record_keeps_the_facts_and_all_changed_files(size: int, least: float) -> None:
    scores = [scored(make_session(seed, kind=kind, language=lang, tokens=WINDOW * size)) for seed, kind, lang in CASES]
    assert mean(each.facts for each in scores) >= least
    assert [each.files for each in scores] == [1.0] * len(CASES)


def test_what_the_first_compaction_kept_outlives_five() -> None:
    left = [survival(seed, kind=kind, language=language) for seed, kind, language in CASES]
    assert mean(rounds[-2] for rounds in left) >= 0.8


def test_the_same_seed_gives_the_same_session_and_another_one_another() -> None:
    def session(seed: int) -> object:
        return make_session(seed, kind="mcp", language="ja", tokens=2000)

    assert session(1) == session(1)
    assert session(1) != session(2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_is_as_long_as_asked_and_holds_what_it_says(kind: str) -> None:
    session = make_session(5, kind=kind, language="de", tokens=WINDOW)
    assert WINDOW * 3.3 <= length(session.items) <= WINDOW * 3.3 * 1.3
    calls = [item.call_id for item in session.items if isinstance(item, ToolCall)]
    assert calls == [item.call_id for item in session.items if isinstance(item, ToolResult)]
    assert len(session.facts) >= 15
    spoken = "\n".join(item.text for item in session.items if isinstance(item, Message))
    assert all(rule in spoken for rule in session.rules)
    everything = "\n".join(
        item.arguments if isinstance(item, ToolCall) else getattr(item, "text", "") for item in session.items
    )
    assert recall(session.facts, everything.replace("\\n", "\n").replace('\\"', '"')) == 1.0


def test_windows_cut_no_call_from_its_result() -> None:
    parts = windows(make_session(3, kind="codex", language="cs", tokens=WINDOW * 3).items, 3)
    assert len(parts) == 3
    assert not any(isinstance(part[0], ToolResult) for part in parts)


def test_files_are_told_apart_from_what_an_output_claims() -> None:
    session = make_session(4, kind="shell", language="en", tokens=WINDOW * 3)
    text, record = compacted(session.items)
    assert {each.path for each in record.ledger.files} == set(session.changed_files)
    assert len(text) <= ROOM
