"""Codex in a session that outgrows its window: it compacts on the server's side, and the task goes on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.codex.agent import Codex, asked
from tests.codex.app_server import AppServer
from tests.codex.relay import relaying
from tests.serving import serving_script

pytestmark = pytest.mark.timeout(300)  # Codex is large, and the machine may be busy.
WINDOW = 12_000  # Codex's own prompt takes a third of it, and an output of LOG an eighth.
ASKED = "Write the summary"
SUMMARY = {"when": ASKED, "say": '{"summary": "Reading the log; the port is 8123.", "retain_item_ids": []}'}
COMMAND = "seq -f 'line %03g of the log' 1 400"
LOG = {"name": "exec_command", "arguments": {"cmd": COMMAND}}


def reading(times: int) -> list[dict[str, Any]]:
    """Return answers that read the log so many times, and then one that says so."""
    steps: list[dict[str, Any]] = [{"say": f"Step {step}.", "call": [LOG]} for step in range(times)]
    return [SUMMARY, *steps, {"say": "Done reading."}]


def said(times: int) -> list[str]:
    """Return what Codex shows then."""
    return [*(f"Step {step}." for step in range(times)), "Done reading."]


def compactions(prompts: list[str]) -> list[int]:
    """Return which of the prompts ask for a summary."""
    return [place for place, prompt in enumerate(prompts) if ASKED in prompt]


@pytest.mark.parametrize("flags", [(), ("--sealed",)], ids=["plain", "sealed"])
def test_a_turn_is_compacted_in_its_middle_and_goes_on_and_so_does_the_session_after_a_restart(
    codex: Codex, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    with serving_script(tmp_path / "home", {"window": WINDOW, "replies": reading(3)}, *flags) as served:
        first = codex.exec(served.url, "read the log")
        prompts = asked(served)
    assert first.code == 0, first.shown()
    assert first.said == said(3)
    (place,) = compactions(prompts)
    assert prompts[place].startswith(prompts[place - 1])  # What is cached is used.
    after = prompts[place + 1]
    assert len(after) < len(prompts[place]) * 0.7
    assert "read the log" in after
    assert "the port is 8123" in after
    assert after.count("ollama_compaction_summary") == 1
    with serving_script(tmp_path / "home", {"window": WINDOW, "replies": [{"say": "It was 8123."}]}, *flags) as served:
        second = codex.exec(served.url, "resume", first.thread, "which port was it?")
        prompts = asked(served)
    assert second.said == ["It was 8123."], second.shown()
    (prompt,) = prompts
    assert "read the log" in prompt
    assert "the port is 8123" in prompt
    assert COMMAND in prompt
    assert "which port was it?" in prompt
    (line,) = (line for line in codex.written() if line["type"] == "compacted")
    assert ("8123" in json.dumps(line)) is (not flags)


def test_a_compaction_after_a_compaction_takes_the_first_one_in(codex: Codex, tmp_path: Path) -> None:
    with serving_script(tmp_path / "home", {"window": WINDOW, "replies": reading(5)}) as served:
        run = codex.exec(served.url, "read the log")
        prompts = asked(served)
        sizes = [int(size) for size in re.findall(r"compacted \d+ tokens to (\d+)", "".join(served.log))]
    assert run.code == 0, run.shown()
    assert run.said == said(5)
    first, second = compactions(prompts)
    assert "the port is 8123" not in prompts[first]
    assert "the port is 8123" in prompts[second]
    last = prompts[second + 1]
    assert last.count("ollama_compaction_summary") == 1
    assert last.count("the port is 8123") == 1
    assert "Step 0." in last  # The record of the first has come through the second.
    assert max(sizes) < WINDOW * 0.62  # Well below the 70 % at which Codex would begin again.
    assert len(last) < len(prompts[second]) * 0.7


def test_a_session_is_compacted_when_the_user_asks_for_it(codex: Codex, tmp_path: Path) -> None:
    replies = [SUMMARY, {"say": "Good day."}, {"say": "I remember."}]
    with (
        serving_script(tmp_path / "home", {"window": WINDOW, "replies": replies}) as served,
        AppServer(*codex.command(served.url), cwd=codex.workspace) as app,
    ):
        thread = app.start()
        assert app.turn(thread, "good day") == ["Good day."]
        app.compact(thread)
        assert app.turn(thread, "do you remember?") == ["I remember."]
        prompts = asked(served)
    assert compactions(prompts) == [1]
    assert "good day" in prompts[2]
    assert "the port is 8123" in prompts[2]
    assert "do you remember?" in prompts[2]


def test_the_older_door_gives_back_what_the_user_said_and_one_item(older_codex: Codex, tmp_path: Path) -> None:
    settings = {"features.remote_compaction_v2": "false", "model_auto_compact_token_limit": "14000"}
    with (
        serving_script(tmp_path / "home", {"window": 32_000, "replies": reading(3)}) as served,
        relaying(served.url) as relay,
    ):
        run = older_codex.exec(relay.url, "read the log", settings=settings)
        prompts = asked(served)
    assert run.code == 0, run.shown()
    assert run.said == said(3)
    assert "POST /v1/responses/compact" in relay.requests
    (place,) = compactions(prompts)
    after = prompts[place + 1]
    assert "read the log" in after
    assert "the port is 8123" in after
    assert after.count("ollama_compaction_summary") == 1
