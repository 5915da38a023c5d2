"""Codex at work: its tools, in its own forms, on a model that says what stands in a script."""

import json
import sys
from pathlib import Path

import pytest

from tests.codex.agent import Codex, asked
from tests.serving import serving_script

pytestmark = pytest.mark.timeout(300)  # Codex is large, and the machine may be busy.
WINDOW = 32_000
PATCH = """*** Begin Patch
*** Update File: greeting.txt
@@
-Hello.
+Good morning.
*** Add File: more/names.txt
+Ada
*** End Patch
"""


def test_commands_follow_one_another_and_the_model_reads_what_they_print(codex: Codex, tmp_path: Path) -> None:
    replies = [
        {"say": "I write it first.", "call": [{"name": "exec_command", "arguments": {"cmd": "echo one > a.txt"}}]},
        {
            "call": [
                {"name": "exec_command", "arguments": {"cmd": "cat a.txt; echo $((6 * 7))"}},
                {"name": "exec_command", "arguments": {"cmd": "exit 3"}},
            ]
        },
        {"say": "Both are done."},
    ]
    with serving_script(tmp_path / "home", {"window": WINDOW, "replies": replies}) as served:
        run = codex.exec(served.url, "write one into a.txt")
        prompts = asked(served)
    assert run.code == 0, run.shown()
    assert run.said == ["I write it first.", "Both are done."]
    commands = run.items("command_execution")
    assert sorted(item["exit_code"] for item in commands) == [0, 0, 3]  # Two ran beside each other.
    assert [item["aggregated_output"] for item in commands if item["aggregated_output"]] == ["one\n42\n"]
    assert (codex.workspace / "a.txt").read_text() == "one\n"
    assert len(prompts) == 3
    assert "write one into a.txt" in prompts[0]
    assert prompts[1].startswith(prompts[0])  # So that the cache holds.
    assert prompts[2].startswith(prompts[1])
    assert "one\n42\n" in prompts[2]
    assert "code 3" in prompts[2]


def test_a_patch_is_called_as_free_text_and_changes_files(codex: Codex, tmp_path: Path) -> None:
    (codex.workspace / "greeting.txt").write_text("Hello.\n")
    replies = [{"call": [{"name": "apply_patch", "arguments": {"input": PATCH}}]}, {"say": "Patched."}]
    with serving_script(tmp_path / "home", {"window": WINDOW, "replies": replies}) as served:
        run = codex.exec(served.url, "greet in the morning")
        prompts = asked(served)
    assert run.code == 0, run.shown()
    assert (codex.workspace / "greeting.txt").read_text() == "Good morning.\n"
    assert (codex.workspace / "more/names.txt").read_text() == "Ada\n"
    (change,) = run.items("file_change")
    assert {each["kind"] for each in change["changes"]} == {"update", "add"}
    assert run.said == ["Patched."]
    assert "Success" in prompts[1]


def test_a_tool_of_an_mcp_server_is_called_through_its_namespace(codex: Codex, tmp_path: Path) -> None:
    replies = [{"call": [{"name": "mcp__sums__add", "arguments": {"a": 19, "b": 23}}]}, {"say": "It is 42."}]
    settings = {
        "mcp_servers.sums.command": json.dumps(sys.executable),
        "mcp_servers.sums.args": json.dumps([str(Path(__file__).with_name("sums.py"))]),
    }
    with serving_script(tmp_path / "home", {"window": WINDOW, "replies": replies}) as served:
        run = codex.exec(served.url, "add 19 and 23", settings=settings)
        prompts = asked(served)
    assert run.code == 0, run.shown()
    (call,) = run.items("mcp_tool_call")
    assert (call["server"], call["tool"], call["status"]) == ("sums", "add", "completed")
    assert run.said == ["It is 42."]
    assert "the sum is 42" in prompts[1]
