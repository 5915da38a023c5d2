"""The record knows what was run, how it ended, what tests said and what was planned."""

import json

import pytest

from diglot.core.compaction.record import Record, record_of
from diglot.core.compaction.record.calls import read_outcome
from diglot.core.compaction.record.values import Check, Problem, Run, Step
from diglot.core.items import Item, Message, Text, ToolCall, ToolResult, said


def shell(command: str, code: int, output: str = "", *, call_id: str = "c") -> tuple[Item, ...]:
    return (
        ToolCall(call_id=call_id, name="exec_command", arguments=json.dumps({"cmd": command})),
        ToolResult(call_id=call_id, content=(Text(f"Process exited with code {code}\nOutput:\n{output}"),)),
    )


@pytest.mark.parametrize(
    ("text", "code", "body"),
    [
        ("Chunk ID: a1\nWall time: 0.5 seconds\nProcess exited with code 7\nOutput:\nhi\n", 7, "hi\n"),
        ("Exit code: 2\nWall time: 1 seconds\nTotal output lines: 9\nOutput:\nhi", 2, "hi"),
        ('{"output":"hi","metadata":{"exit_code":3,"duration_seconds":0.1}}', 3, "hi"),
        ('{"stdout":"hi","stderr":"ho","exitCode":1}', 1, "hi\nho"),
        (
            '[{"stdout":"a","outcome":{"type":"exit","exit_code":9}},{"stdout":"b","outcome":{"exit_code":0}}]',
            9,
            "a\nb",
        ),
        ("hi\n<exit_code>4</exit_code>", 4, "hi\n<exit_code>4</exit_code>"),
        ("hi\n[exit code: 5]", 5, "hi\n[exit code: 5]"),
        ("hi\nCommand failed with exit code 6", 6, "hi\nCommand failed with exit code 6"),
        ("hi\nexit status 8", 8, "hi\nexit status 8"),
        ("the status 404 was code 12 to us", None, "the status 404 was code 12 to us"),
        ("hi", None, "hi"),
    ],
)
def test_an_exit_status_is_found_where_agents_put_it(text: str, code: int | None, body: str) -> None:
    outcome = read_outcome(text)
    assert (outcome.code, outcome.body) == (code, body)


def test_a_process_that_goes_on_ends_under_its_own_command() -> None:
    started = (
        ToolCall(call_id="1", name="exec_command", arguments='{"cmd": "make check"}'),
        ToolResult(call_id="1", content=(Text("Process running with session ID 77\nOutput:\nbuilding"),)),
        ToolCall(call_id="2", name="write_stdin", arguments='{"session_id": 77, "chars": ""}'),
        ToolResult(call_id="2", content=(Text("Process exited with code 2\nOutput:\nerror: stop"),)),
    )
    ledger = record_of(started, None).ledger
    assert ledger.runs == (Run("make check", 2, 1),)
    assert ledger.problems == (Problem("make check", "error: stop"),)


def test_runs_of_one_command_are_joined_also_over_a_compaction() -> None:
    first = record_of((*shell("make", 2), *shell("ls", 0)), None)
    second = record_of(shell("make", 0), first)
    assert second.ledger.runs == (Run("ls", 0, 1), Run("make", 0, 2))


def test_an_error_is_open_until_its_command_passes() -> None:
    broken = record_of(shell("make", 2, "cc -c a.c\na.c:3: error: no semicolon\n"), None)
    assert broken.ledger.problems == (Problem("make", "a.c:3: error: no semicolon"),)
    other = record_of(shell("make docs", 0), broken)
    assert not other.ledger.problems[0].passed
    assert record_of(shell("make", 0), other).ledger.problems[0].passed


@pytest.mark.parametrize(
    "line",
    [
        "===== 1 failed, 12 passed in 3.21s =====",
        "12 passed in 0.31s",
        "test result: FAILED. 12 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s",
        "FAIL\texample.org/store\t0.412s",
        "Tests:       1 failed, 12 passed, 13 total",
        "      Tests  1 failed | 12 passed (13)",
        "92% tests passed, 1 tests failed out of 13",
        "  12 passing (3s)",
        "13 examples, 1 failure",
        "[ERROR] Tests run: 13, Failures: 1, Errors: 0, Skipped: 0",
        "13 tests completed, 1 failed",
        "Failed!  - Failed:     1, Passed:    12, Skipped:     0, Total:    13",
        "FAILED (failures=1)",
        "# pass 12",
        "13 tests, 1 failure",
        "FAILED | 12 passed | 1 failed (2s)",
    ],
)
def test_test_results_of_many_programs_are_known(line: str) -> None:
    ledger = record_of(shell("run the tests", 1, f"noise\n{line}\nmore noise"), None).ledger
    assert ledger.checks == (Check("run the tests", line.strip("= ").strip().replace("\t", " ")),)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("update_plan", {"plan": [{"step": "a", "status": "completed"}, {"step": "b", "status": "in_progress"}]}),
        ("TodoWrite", {"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]}),
        ("todo", {"items": [{"title": "a", "state": "done"}, {"title": "b", "state": "doing"}]}),
    ],
)
def test_the_last_plan_stands(name: str, arguments: object) -> None:
    def planned(given: object, before: Record | None = None) -> Record:
        call = ToolCall(call_id="p", name=name, arguments=json.dumps(given))
        return record_of((call, ToolResult(call_id="p", content=(Text("ok"),))), before)

    old = planned({"plan": [{"step": "old", "status": "pending"}]})
    assert planned(arguments, old).ledger.plan == (Step("a", "done"), Step("b", "active"))
    assert record_of((said("user", "go on"), Message("assistant", (Text("Yes."),))), old).ledger.plan == old.ledger.plan
