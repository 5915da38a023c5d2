"""The events of a response: each kind in its order, numbered, one ending, and the same as the whole."""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core import errors
from diglot.core.errors import AnyFault
from diglot.core.events import Event, Progress, ReasoningDelta, TextDelta, ToolCallDone
from diglot.dialects.openai.responses import create
from tests.dialects.openai.material import STAMP, logprob
from tests.dialects.openai.responses.material import (
    OPEN,
    TERMINAL,
    VIEW,
    call,
    compacted,
    folded,
    read,
    run,
    runs,
    streamed,
    validated,
    whole,
)

ID: Final = STAMP.id
BEGUN: Final = ["response.created", "response.in_progress"]
DONE: Final = "response.output_item.done"
ADDED: Final = "response.output_item.added"
TEXT: Final = [
    ADDED,
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    DONE,
]


def kinds(events: Sequence[dict[str, Any]]) -> list[str]:
    """Return the kinds of events."""
    return [event["type"] for event in events]


def middle(*events: Event, view: Any = VIEW) -> list[dict[str, Any]]:
    """Return what stands between the beginning and the end."""
    read_events = read(streamed(run(*events), view))
    assert kinds(read_events)[:2] == BEGUN
    assert kinds(read_events)[-1] == "response.completed"
    validated(read_events)
    return read_events[2:-1]


def test_text_is_an_item_with_one_part() -> None:
    events = middle(TextDelta("Hel"), TextDelta("lo"))
    assert kinds(events) == [*TEXT[:3], *TEXT[2:]]
    assert [event["item_id"] for event in events[1:-1]] == [f"msg_{ID}_0"] * 5
    assert events[0]["item"] == {
        "type": "message",
        "id": f"msg_{ID}_0",
        "status": "in_progress",
        "role": "assistant",
        "content": [],
    }
    part = {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
    assert events[-2]["part"] == part
    assert events[-1]["item"] == events[0]["item"] | {"status": "completed", "content": [part]}


def test_reasoning_is_shown_as_a_summary_where_one_was_asked_for() -> None:
    events = middle(ReasoningDelta("h"), ReasoningDelta("m"))
    kind = "response.reasoning_summary"
    expected = [ADDED, f"{kind}_part.added", f"{kind}_text.delta", f"{kind}_text.delta", f"{kind}_text.done"]
    assert kinds(events) == [*expected, f"{kind}_part.done", DONE]
    item = events[-1]["item"]
    assert item["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert "content" not in item
    assert "encrypted_content" not in item  # Null is no text, and validators say so.


def test_reasoning_is_shown_as_it_was_where_none_was() -> None:
    events = middle(ReasoningDelta("h"), ReasoningDelta("m"), view=OPEN)
    kind = "response.reasoning_text"
    text = [f"{kind}.delta", f"{kind}.delta", f"{kind}.done"]
    assert kinds(events) == [ADDED, "response.content_part.added", *text, "response.content_part.done", DONE]
    assert events[1]["part"] == {"type": "reasoning_text", "text": ""}
    assert events[-2]["part"] == {"type": "reasoning_text", "text": "hm"}
    assert events[-1]["item"]["content"] == [{"type": "reasoning_text", "text": "hm"}]
    assert events[-1]["item"]["summary"] == []


def test_a_function_is_called_with_its_namespace_apart() -> None:
    events = middle(ToolCallDone(call(namespace="mcp__lab")))
    kind = "response.function_call_arguments"
    assert kinds(events) == [ADDED, f"{kind}.delta", f"{kind}.done", DONE]
    assert (events[0]["item"]["arguments"], events[0]["item"]["status"]) == ("", "in_progress")
    assert events[-1]["item"] == {
        "type": "function_call",
        "id": f"fc_{ID}_0",
        "call_id": "call_1",
        "name": "look",
        "arguments": '{"a":1}',
        "status": "completed",
        "namespace": "mcp__lab",
    }


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert middle(ToolCallDone(call(arguments="")))[-1]["item"]["arguments"] == "{}"


def test_a_custom_tool_is_called_with_bare_text() -> None:
    events = middle(ToolCallDone(call("freeform", "*** Begin Patch")))
    kind = "response.custom_tool_call_input"
    assert kinds(events) == [ADDED, f"{kind}.delta", f"{kind}.done", DONE]
    assert events[-1]["item"]["input"] == "*** Begin Patch"
    assert events[-1]["item"]["type"] == "custom_tool_call"


def test_commands_for_a_shell_are_told_one_by_one() -> None:
    events = middle(ToolCallDone(call("shell", '{"commands":["ls","pwd"],"timeout_ms":5}')))
    one = [f"response.shell_call_command.{step}" for step in ("added", "delta", "done")]
    assert kinds(events) == [ADDED, *one, *one, DONE]
    assert events[0]["item"]["action"]["commands"] == []
    assert events[-1]["item"]["action"] == {"commands": ["ls", "pwd"], "timeout_ms": 5, "max_output_length": None}


@pytest.mark.parametrize(
    ("kind", "arguments", "field", "value"),
    [
        ("search", '{"query":"add"}', "arguments", {"query": "add"}),
        ("search", "no json", "arguments", {}),
        ("local_shell", '{"command":["ls","-l"]}', "action.command", ["ls", "-l"]),
        ("local_shell", '{"command":"ls -l"}', "action.command", ["bash", "-lc", "ls -l"]),
        ("local_shell", '{"command":["ls"],"env":{"A":1}}', "action.env", {"A": "1"}),
        ("shell", '{"commands":"ls"}', "action.commands", ["ls"]),
        ("shell", '{"commands":["ls"],"timeout_ms":true}', "action.timeout_ms", None),
        ("patch", '{"type":"create_file","path":"a","diff":"+b"}', "operation.diff", "+b"),
        ("patch", '{"path":"a","diff":"+b"}', "operation.type", "update_file"),
    ],
)
def test_a_call_has_the_form_of_its_kind_whatever_the_model_wrote(
    kind: Any, arguments: str, field: str, value: Any
) -> None:
    found = middle(ToolCallDone(call(kind, arguments)))[-1]["item"]
    for name in field.split("."):
        found = found[name]
    assert found == value


def test_a_deletion_has_no_diff() -> None:
    item = middle(ToolCallDone(call("patch", '{"type":"delete_file","path":"a","diff":"x"}')))[-1]["item"]
    assert item["operation"] == {"type": "delete_file", "path": "a"}


def test_an_open_item_is_closed_before_the_next_one() -> None:
    events = middle(ReasoningDelta("hm"), TextDelta("I look."), ToolCallDone(call()), TextDelta("Done."))
    opened: list[int] = []
    for event in events:
        if event["type"] == ADDED:
            assert not opened
            opened.append(event["output_index"])
        elif event["type"] == DONE:
            assert opened.pop() == event["output_index"]
        else:
            assert opened == [event["output_index"]]
    assert [event["output_index"] for event in events if event["type"] == DONE] == [0, 1, 2, 3]


def test_a_compaction_comes_first_and_the_answer_goes_on() -> None:
    events = read(streamed([Progress(), compacted(), *run(TextDelta("Hi"))[1:]]))
    validated(events)
    assert kinds(events) == [*BEGUN, ADDED, DONE, *TEXT, "response.completed"]
    assert events[3]["item"] == {"type": "compaction", "id": f"cmp_{ID}_0", "encrypted_content": "folded"}
    assert events[-1]["response"]["usage"]["total_tokens"] == 10


def test_a_compaction_alone_is_the_only_item() -> None:
    events = read(streamed([compacted(), *run()[1:]]))
    assert [event["item"]["type"] for event in events if event["type"] == DONE] == ["compaction"]
    assert len(events[-1]["response"]["output"]) == 1


def test_log_probabilities_go_with_their_text() -> None:
    events = middle(TextDelta("a", logprobs=(logprob("a", top=[("b", -1.0)]),)))
    told = [
        {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [{"token": "b", "logprob": -1.0, "bytes": [98]}]}
    ]
    assert [event["logprobs"] for event in events if "logprobs" in event] == [told, told]
    assert events[-1]["item"]["content"][0]["logprobs"] == told


def test_an_answer_that_was_cut_is_incomplete() -> None:
    events = read(streamed(run(TextDelta("Hel"), reason="length")))
    assert kinds(events)[-1] == "response.incomplete"
    response = events[-1]["response"]
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert response["completed_at"] is None
    assert response["output"][0]["status"] == "incomplete"


def test_usage_is_told_in_the_end_with_its_details() -> None:
    assert read(streamed(run()))[-1]["response"]["usage"] == {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 10,
    }


def test_nothing_goes_out_while_a_status_can_still_be_told() -> None:
    assert create.stream(VIEW, STAMP).feed(Progress(), STAMP.now) == b""


def test_a_sign_of_life_is_an_event_also_before_the_answer_begins() -> None:
    renderer = create.stream(VIEW, STAMP)
    first, second = renderer.beat(), renderer.beat()
    rest = b"".join(renderer.feed(event, STAMP.now) for event in run(TextDelta("Hi"))) + renderer.close()
    events = read(first + second + rest)
    assert kinds(events) == [*BEGUN, "response.in_progress", *TEXT, "response.completed"]
    assert folded(events)["output"] == whole(run(TextDelta("Hi")))["output"]


def test_nothing_follows_the_end() -> None:
    renderer = create.stream(VIEW, STAMP)
    renderer.close()
    assert renderer.beat() == renderer.close() == renderer.fail(errors.EngineFailed()) == b""


FAILURES: Final = (
    (errors.ContextExceeded(tokens=9, window=4), "context_length_exceeded"),
    (errors.InvalidField("input", "no"), "invalid_prompt"),
    (errors.NothingGained(before=1, after=2), "invalid_prompt"),
    (errors.EngineCrashed("m"), "server_error"),
    (errors.CompactionFailed("no"), "server_error"),
    (errors.Busy(retry_after=1.5), "rate_limit_exceeded"),
)


@pytest.mark.parametrize(("fault", "code"), FAILURES, ids=[type(fault).__name__ for fault, _ in FAILURES])
def test_a_fault_ends_the_response_in_words_that_clients_act_on(fault: AnyFault, code: str) -> None:
    renderer = create.stream(VIEW, STAMP)
    begun = [*run(ReasoningDelta("hm"), TextDelta("Hel"))[:-1]]
    events = read(b"".join(renderer.feed(event, STAMP.now) for event in begun) + renderer.fail(fault))
    assert kinds(events)[-1] == "response.failed"
    response = events[-1]["response"]
    assert (response["status"], response["error"]["code"]) == ("failed", code)
    assert [(item["type"], item["status"]) for item in response["output"]] == [
        ("reasoning", "completed"),
        ("message", "incomplete"),
    ]
    assert response["output"][1]["content"][0]["text"] == "Hel"
    assert [event["item"]["type"] for event in events if event["type"] == DONE] == ["reasoning"]


def test_when_to_come_back_is_said_in_the_words_that_clients_look_for() -> None:
    renderer = create.stream(VIEW, STAMP)
    event = read(renderer.fail(errors.Busy(retry_after=1.5)))[-1]
    assert "try again in 1.5s" in event["response"]["error"]["message"]


def test_over_a_socket_each_line_is_an_event() -> None:
    renderer = create.stream_lines(VIEW, STAMP)
    lines = (
        b"".join(renderer.feed(event, STAMP.now) for event in run(TextDelta("a\nb"))) + renderer.close()
    ).splitlines()
    assert [json.loads(line) for line in lines] == read(streamed(run(TextDelta("a\nb"))))


@given(events=runs(), open_text=st.booleans())
def test_any_run_folded_by_openais_package_is_the_whole(events: list[Event], open_text: bool) -> None:  # noqa: FBT001
    view = OPEN if open_text else VIEW
    told = read(streamed(events, view))
    assert [event["type"] for event in told if event["type"] in TERMINAL] == [told[-1]["type"]]
    assert kinds(told)[:2] == BEGUN
    expected = whole(events, view)
    assert told[-1]["response"] == expected
    assert folded(told) == expected


@given(events=runs(), where=st.integers(0, 12), beats=st.booleans())
def test_a_stream_that_breaks_anywhere_has_one_end(events: list[Event], where: int, beats: bool) -> None:  # noqa: FBT001
    renderer = create.stream(VIEW, STAMP)
    out = [renderer.beat()] if beats else []
    out += [renderer.feed(event, STAMP.now) for event in events[:where]]
    out.append(renderer.fail(errors.EngineCrashed("m")))
    told = read(b"".join(out))
    validated(told)
    assert [kind for kind in kinds(told) if kind in TERMINAL] == ["response.failed"]
    assert kinds(told)[-1] == "response.failed"
    done = [event["item"] for event in told if event["type"] == DONE]
    begun = [event["item"]["id"] for event in told if event["type"] == "response.output_item.added"]
    output = told[-1]["response"]["output"]
    assert output[: len(done)] == done
    assert [item["id"] for item in output] == begun
    assert [item["status"] for item in output[len(done) :]] in ([], ["incomplete"])
