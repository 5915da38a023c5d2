"""The response object and what surrounds it: all keys, always; tools apart; stored, counted, compacted."""

import json
from typing import Any, Final

import pytest
from openai.types.responses import CompactedResponse, Response
from openai.types.responses.input_token_count_response import InputTokenCountResponse

from diglot.core import errors
from diglot.core.allowance import Allowance
from diglot.core.assemble import Assembly
from diglot.core.events import Event, ReasoningDelta, Started, TextDelta, Usage
from diglot.core.items import Message, Text, said
from diglot.core.request import Compacting, CountTokens, FetchResponse, ForgetResponse, Respond
from diglot.core.result import Stored
from diglot.dialects.openai.responses import SOCKETS, compact, count, create, stored
from diglot.dialects.openai.responses.reply import encode, response_reply
from diglot.dialects.openai.tools import UNHELD
from diglot.dialects.operation import Wire
from tests.dialects.openai.material import STAMP, refusal, wire
from tests.dialects.openai.responses.material import VIEW, compacted, read, result_of, run, streamed, whole

ID: Final = STAMP.id
BODY: Final[dict[str, Any]] = {
    "model": "tiny",
    "input": "hi",
    "instructions": "Be.",
    "temperature": 0.5,
    "top_p": 0.9,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.2,
    "max_output_tokens": 9,
    "max_tool_calls": 2,
    "metadata": {"a": "b"},
    "parallel_tool_calls": False,
    "previous_response_id": "resp_before",
    "prompt_cache_key": "key",
    "reasoning": {"effort": "low", "summary": "auto"},
    "safety_identifier": "me",
    "store": False,
    "text": {"format": {"type": "json_schema", "name": "it", "schema": {"type": "object"}}, "verbosity": "low"},
    "tool_choice": {"type": "function", "name": "look"},
    "tools": [{"type": "function", "name": "look"}, {"type": "web_search"}],
    "top_logprobs": 2,
    "truncation": "auto",
    "user": "me",
}


def answered(body: dict[str, Any]) -> dict[str, Any]:
    """Return the response to a body."""
    parsed = create.parse(wire(body))
    reply: dict[str, Any] = json.loads(create.whole(parsed.view, STAMP, result_of(run(TextDelta("Hello")))).body)
    Response.model_validate(reply)
    return reply


def test_what_was_chosen_is_told_back() -> None:
    reply = answered(BODY)
    told = {key: reply[key] for key in BODY.keys() - {"input", "text", "tools"}}
    assert told == {key: BODY[key] for key in told}
    schema = {"type": "json_schema", "schema": {"type": "object"}, "name": "it", "strict": True, "description": None}
    assert reply["text"] == {"format": schema, "verbosity": "low"}
    look = {"type": "function", "name": "look", "description": None, "parameters": None, "strict": None}
    assert reply["tools"] == [look, {"type": "web_search"}]


def test_what_was_not_chosen_is_told_all_the_same() -> None:
    assert answered({"input": "hi"}) == {
        "id": f"resp_{ID}",
        "object": "response",
        "created_at": 1_700_000_000,
        "completed_at": 1_700_000_000,
        "status": "completed",
        "model": "tiny:latest",
        "output": [
            {
                "type": "message",
                "id": f"msg_{ID}_0",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}],
            }
        ],
        "usage": {
            "input_tokens": 7,
            "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
            "output_tokens": 3,
            "output_tokens_details": {"reasoning_tokens": 1},
            "total_tokens": 10,
        },
        "error": None,
        "incomplete_details": None,
        "background": False,
        "frequency_penalty": 0.0,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "user": None,
    }


def test_a_choice_among_tools_is_told_back() -> None:
    tools = [{"type": "function", "name": "look"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "look"}]}
    assert answered({"input": "hi", "tools": tools, "tool_choice": choice})["tool_choice"] == choice


def test_what_is_left_out_is_noted_for_the_log() -> None:
    tools = [{"type": "web_search"}, {"type": "tool_search", "execution": "server"}, {"type": "web_search"}]
    notes = create.parse(wire({"input": "hi", "tools": tools})).notes
    assert notes == tuple(
        f"a tool of the kind {kind!r} was left out: nothing here runs it" for kind in ("web_search", "tool_search")
    )
    held = {"type": "custom", "name": "a", "format": {"type": "grammar", "definition": "a", "syntax": "regex"}}
    space = {"type": "namespace", "name": "n", "tools": [held]}
    found = [{"type": "additional_tools", "tools": [held]}, {"role": "user", "content": "hi"}]
    for body in ({"input": "hi", "tools": [held]}, {"input": "hi", "tools": [space]}, {"input": found}):
        assert create.parse(wire(body)).notes == (UNHELD,)


def test_no_word_of_a_client_is_in_a_note_and_there_are_few_of_them() -> None:
    kinds = ["mcp", "web_search_2025_08_26", "web_search_preview", *(f"s3cret{number}" for number in range(100))]
    notes = create.parse(wire({"input": "hi", "tools": [{"type": kind} for kind in kinds]})).notes
    assert notes == tuple(
        f"a tool of the kind {kind!r} was left out: nothing here runs it" for kind in ("mcp", "web_search", "unknown")
    )


REFUSED: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({"tools": [{"name": "look"}]}, "tools[0].type"),
    ({"tools": [{"type": "function"}]}, "tools[0].name"),
    ({"tools": [{"type": "function", "name": "a"}] * 2}, "tools"),
    ({"tools": [{"type": "shell"}, {"type": "function", "name": "shell"}]}, "tools"),
    ({"tools": [{"type": "custom", "name": "a", "format": {"type": "grammar"}}]}, "tools[0].format.definition"),
    ({"tools": [{"type": "namespace", "name": "a", "tools": [{"type": "shell"}]}]}, "tools[0].tools[0].type"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tool_choice": "required", "tools": [{"type": "web_search"}]}, "tool_choice"),
    ({"tool_choice": {"type": "web_search"}}, "tool_choice.type"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
    ({"tool_choice": {"type": "function", "name": "gone"}}, "tool_choice.name"),
    ({"tool_choice": {"type": "allowed_tools", "tools": []}}, "tool_choice.tools"),
    (
        {"context_management": [{"type": "compaction", "compact_threshold": 999}]},
        "context_management[0].compact_threshold",
    ),
    ({"context_management": [{"type": "forgetting"}]}, "context_management[0].type"),
    ({"context_management": [{"type": "compaction"}, {"type": "compaction"}]}, "context_management[1]"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"top_logprobs": 21}, "top_logprobs"),
    ({"background": True, "stream": True}, "background"),
    ({"background": True, "store": False}, "background"),
    ({"metadata": {"a": 1}}, "metadata[...]"),
    ({"text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "foo"}}}}, "text.format.schema.type"),
    ({"keep_alive": "soon"}, "keep_alive"),
)


@pytest.mark.parametrize(
    ("body", "field"), REFUSED, ids=[f"{field} {number}" for number, (_, field) in enumerate(REFUSED)]
)
def test_what_is_wrong_is_named(body: dict[str, Any], field: str) -> None:
    error = refusal(create.parse, {"input": "hi", **body})
    assert (error["status"], error["param"]) == (400, field)


@pytest.mark.parametrize("stream", [True, False])
def test_a_trigger_asks_for_a_compaction_instead_of_an_answer(stream: bool) -> None:  # noqa: FBT001
    body = {"input": [{"role": "user", "content": "hi"}, {"type": "compaction_trigger"}], "stream": stream}
    request = create.parse(wire(body)).request
    assert isinstance(request, Respond)
    assert request.generation.compacting == Compacting(instead=True)
    assert request.generation.prompt.items == (said("user", "hi"),)  # type: ignore[union-attr]
    reply = whole([compacted(), *run()[1:]])
    assert [item["type"] for item in reply["output"]] == ["compaction"]


def _record(**more: Any) -> Stored:
    echo = encode(create.parse(wire({"input": "hi", "model": "tiny", "reasoning": {"summary": "auto"}})).view)
    return Stored(id=ID, status="completed", created=1_700_000_000.0, input=(said("user", "hi"),), echo=echo, **more)


def test_a_stored_response_is_shown_as_it_was_answered() -> None:
    events = run(ReasoningDelta("hm"), TextDelta("Hello"))
    parsed = create.parse(wire({"input": "hi", "model": "tiny", "reasoning": {"summary": "auto"}}))
    answer = json.loads(create.whole(parsed.view, STAMP, result_of(events)).body)
    record = _record(result=result_of(events), finished=1_700_000_000.5)
    shown = json.loads(stored.whole_one(None, STAMP, record).body)
    assert shown == answer == read(streamed(events, parsed.view))[-1]["response"]


def test_a_response_in_the_background_is_shown_while_it_is_not_there_yet() -> None:
    reply = json.loads(create.whole(VIEW, STAMP, Stored(id=ID, status="queued", created=1.0, input=())).body)
    Response.model_validate(reply)
    assert (reply["status"], reply["output"], reply["usage"], reply["completed_at"]) == ("queued", [], None, None)


def test_a_response_that_failed_says_why() -> None:
    record = Stored(id=ID, status="failed", created=1.0, input=(), fault=("EngineCrashed", "it ended"))
    reply = json.loads(stored.whole_one(None, STAMP, record).body)
    assert (reply["status"], reply["error"]) == ("failed", {"code": "server_error", "message": "it ended"})


def test_a_response_that_failed_is_shown_as_far_as_it_came_and_as_its_stream_showed_it() -> None:
    begun: list[Event] = [Started(3, model="tiny"), ReasoningDelta("hm"), TextDelta("Hel")]
    assembly = Assembly()
    renderer = create.stream(VIEW, STAMP)
    told = b""
    for event in begun:
        assembly.feed(event)
        told += renderer.feed(event, STAMP.now)
    fault = errors.EngineCrashed("tiny")
    told += renderer.fail(fault)
    record = Stored(
        id=ID,
        status="failed",
        created=STAMP.now,
        input=(),
        result=assembly.result(),
        fault=("EngineCrashed", fault.message),
        echo=encode(VIEW),
    )
    shown = json.loads(stored.whole_one(None, STAMP, record).body)
    assert [item["status"] for item in shown["output"]] == ["completed", "incomplete"]
    assert shown == read(told)[-1]["response"]


def test_a_clock_that_goes_back_leaves_no_response_that_ended_before_it_began() -> None:
    reply = response_reply(VIEW, STAMP, status="completed", finished=STAMP.now - 3600)
    assert reply.completed_at == reply.created_at


def test_a_stored_response_is_named_with_and_without_its_prefix() -> None:
    for name in (f"resp_{ID}", ID):
        assert stored.parse_one(Wire(path={"id": name})).request == FetchResponse(ID)
    parsed = stored.parse_delete(Wire(path={"id": f"resp_{ID}"}))
    assert parsed.request == ForgetResponse(ID)
    reply = json.loads(stored.whole_deleted(parsed.view, STAMP, None).body)
    assert reply == {"id": f"resp_{ID}", "object": "response", "deleted": True}


def test_a_stored_response_is_not_streamed() -> None:
    error = refusal(stored.parse_one, Wire(path={"id": f"resp_{ID}"}, query={"stream": "true"}))
    assert (error["status"], error["param"]) == (400, "stream")


@pytest.mark.parametrize(
    ("field", "status", "code"),
    [(None, 404, "response_not_found"), ("previous_response_id", 400, "previous_response_not_found")],
)
def test_an_unknown_response_is_named_as_the_client_knows_it(field: str | None, status: int, code: str) -> None:
    def gone(_: Wire) -> Any:
        raise errors.UnknownResponse("a1", field=field)

    error = refusal(gone, Wire())
    assert (error["status"], error["code"], error["param"]) == (status, code, field)
    assert "resp_a1" in error["message"]


def test_a_count_is_told() -> None:
    assert isinstance(count.parse(wire({"input": "hi"})).request, CountTokens)
    reply = json.loads(count.whole(None, STAMP, 7).body)
    InputTokenCountResponse.model_validate(reply)
    assert reply == {"input_tokens": 7, "object": "response.input_tokens"}


@pytest.mark.parametrize("parse", [count.parse, compact.parse])
def test_a_trigger_belongs_to_a_response(parse: Any) -> None:
    error = refusal(parse, {"model": "m", "input": [{"role": "user", "content": "hi"}, {"type": "compaction_trigger"}]})
    assert (error["status"], error["param"]) == (400, "input")


def test_a_compaction_wants_a_model_and_a_conversation() -> None:
    assert refusal(compact.parse, {"input": "hi"})["param"] == "model"
    assert refusal(compact.parse, {"model": "m", "input": []})["param"] == "input"
    assert compact.parse(wire({"model": "m", "previous_response_id": "resp_a1"})).request.previous == "a1"  # type: ignore[union-attr]


def test_a_compacted_conversation_is_what_the_user_said_and_one_item() -> None:
    kept = (Message(role="user", content=(Text("one"),), id="msg_1"), said("user", "two"))
    event = compacted()
    result = result_of([type(event)(item=event.item, kept=kept, before=9, after=3, usage=Usage(9, 2)), *run()[1:]])
    reply = json.loads(compact.whole(None, STAMP, result).body)
    CompactedResponse.model_validate({**reply, "output": reply["output"][-1:]})  # Its type knows no user messages.
    assert (reply["object"], reply["id"], reply["usage"]["total_tokens"]) == ("response.compaction", f"resp_{ID}", 11)
    assert [(item["type"], item["id"]) for item in reply["output"]] == [
        ("message", "msg_1"),
        ("message", f"msg_{ID}_in1"),
        ("compaction", f"cmp_{ID}_0"),
    ]
    again = create.parse(wire({"input": reply["output"]})).request
    assert isinstance(again, Respond)
    assert [type(item).__name__ for item in again.generation.prompt.items] == ["Message", "Message", "Compaction"]  # type: ignore[union-attr]


def test_a_message_of_a_socket_is_a_request_and_always_streamed() -> None:
    parsed = create.parse_message(wire({"type": "response.create", "input": "hi", "generate": False}))
    assert isinstance(parsed.request, Respond)
    assert (parsed.request.prime, parsed.stream) == (True, True)
    assert refusal(create.parse_message, {"type": "response.steer", "input": "hi"})["param"] == "type"
    body = {"type": "response.create", "input": "hi", "background": True}
    assert refusal(create.parse_message, body)["param"] == "background"


def test_a_fault_on_a_socket_holds_what_http_would_say_beside_it() -> None:
    event = json.loads(SOCKETS[0].error(errors.Busy(retry_after=1.5)))
    assert (event["type"], event["status"], event["headers"]) == ("error", 503, {"Retry-After": "2"})
    assert event["error"]["code"] == "server_busy"


@pytest.mark.parametrize(("most", "fits"), [(3, True), (2, False)])
def test_tools_count_together_wherever_they_stand(most: int, fits: bool) -> None:  # noqa: FBT001  a row of a table
    def tools(*names: str) -> list[dict[str, Any]]:
        return [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in names]

    body = {"input": [{"role": "user", "content": "hi"}, {"type": "additional_tools", "tools": tools("a", "b")}]}
    sent = Wire(json.dumps({"model": "tiny", "tools": tools("c"), **body}).encode(), allowance=Allowance(tools=most))
    if fits:
        assert isinstance(create.parse(sent).request, Respond)
    else:
        with pytest.raises(errors.TooMany, match="tools: 3 tools are more than the limit of 2"):
            create.parse(sent)
