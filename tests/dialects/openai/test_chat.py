"""Chats: bodies into requests, events into answers, whole and streamed."""

import json
from typing import Any

import pytest
from hypothesis import given
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from diglot.core.assemble import assemble
from diglot.core.errors import EngineCrashed, InvalidField, UnsupportedField
from diglot.core.events import Event, Finished, Progress, ReasoningDelta, Started, TextDelta, ToolCallDone, Usage
from diglot.core.items import Message, Text, ToolCall
from diglot.core.request import Conversation, Generation, Residence
from diglot.dialects.openai.chat import ChatStream, ChatView, error, parse, whole
from diglot.dialects.operation import Parsed
from tests.dialects.openai.material import (
    STAMP,
    chat,
    chunks_of,
    data_lines,
    folded,
    function,
    logprob,
    plain,
    refusal,
    runs,
    stream,
    wire,
)

HELLO: list[Event] = [
    Progress(1, 3),
    Started(input_tokens=3, model="tiny:latest"),
    ReasoningDelta("Hm."),
    TextDelta("Hé"),
    TextDelta("llo"),
    Finished("stop", usage=Usage(input=3, output=4, cached=2, reasoning=1)),
]
CALLS: list[Event] = [
    Started(input_tokens=3, model="tiny:latest"),
    ToolCallDone(ToolCall(call_id="call_a", name="look", arguments='{"at":"sky"}')),
    ToolCallDone(ToolCall(call_id="call_b", name="wait", arguments="")),
    Finished("stop", usage=Usage(input=3, output=9)),
]


def answered(view: ChatView, events: list[Event]) -> dict[str, Any]:
    rendered = whole(view, STAMP, assemble(events))
    assert rendered.status == 200
    reply: dict[str, Any] = json.loads(rendered.body)
    ChatCompletion.model_validate(reply, strict=True)
    return reply


def streamed(view: ChatView, events: list[Event]) -> list[dict[str, Any]]:
    chunks = chunks_of(stream(ChatStream(view, STAMP), events))
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
        assert isinstance(chunk["choices"], list)
    return chunks


def deltas(chunks: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str | None]]:
    return [(choice["delta"], choice["finish_reason"]) for chunk in chunks for choice in chunk["choices"]]


def test_the_smallest_chat_says_nothing_but_what_was_said() -> None:
    conversation = Conversation((Message(role="user", content=(Text("hi"),)),))
    request = Generation(residence=Residence(), prompt=conversation)
    assert parse(wire(chat())) == Parsed(request=request, view=ChatView(), stream=False)


def test_null_is_as_good_as_absent() -> None:
    names = ("model", "stream", "stream_options", "temperature", "stop", "n", "tools", "tool_choice", "logit_bias")
    assert parse(wire(chat(**dict.fromkeys(names)))) == parse(wire(chat()))


def test_a_name_of_no_letters_is_no_name() -> None:
    assert parse(wire(chat(model=""))) == parse(wire(chat()))


def test_a_whole_answer() -> None:
    assert answered(ChatView(model="tiny"), HELLO) == {
        "id": "chatcmpl-a1b2c3d4e5f6g7h8i9j0k1l2",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "tiny",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Héllo",
                    "refusal": None,
                    "reasoning_content": "Hm.",
                    "reasoning": "Hm.",
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 4,
            "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
    }


def test_a_streamed_answer() -> None:
    chunks = streamed(ChatView(model="tiny"), HELLO)
    assert {(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks} == {
        ("chatcmpl-a1b2c3d4e5f6g7h8i9j0k1l2", 1_700_000_000, "tiny")
    }
    assert deltas(chunks) == [
        ({"role": "assistant"}, None),
        ({"reasoning_content": "Hm.", "reasoning": "Hm."}, None),
        ({"content": "Hé"}, None),
        ({"content": "llo"}, None),
        ({}, "stop"),
    ]


def test_a_model_that_was_not_named_is_named_in_the_answer() -> None:
    assert answered(ChatView(), HELLO)["model"] == "tiny:latest"
    assert {chunk["model"] for chunk in streamed(ChatView(), HELLO)} == {"tiny:latest"}


def test_usage_is_streamed_only_where_it_was_asked_for() -> None:
    assert all("usage" not in chunk for chunk in streamed(ChatView(), HELLO))


def test_usage_is_streamed_once_after_the_end() -> None:
    *chunks, last = streamed(ChatView(include_usage=True), HELLO)
    assert all(chunk["usage"] is None and chunk["choices"] for chunk in chunks)
    assert last["choices"] == []
    assert last["usage"]["prompt_tokens"] == 3
    assert last["usage"]["completion_tokens"] == 4


def test_several_calls_have_their_own_index_and_are_whole() -> None:
    *_, first, second, end = deltas(streamed(ChatView(), CALLS))
    look = {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": '{"at":"sky"}'}}
    wait = {"id": "call_b", "type": "function", "function": {"name": "wait", "arguments": "{}"}}
    assert first == ({"tool_calls": [{"index": 0, **look}]}, None)
    assert second == ({"tool_calls": [{"index": 1, **wait}]}, None)
    assert end == ({}, "tool_calls")
    (choice,) = answered(ChatView(), CALLS)["choices"]
    assert choice["message"] == {"role": "assistant", "content": None, "refusal": None, "tool_calls": [look, wait]}
    assert choice["finish_reason"] == "tool_calls"


def test_a_cut_answer_ends_for_its_length_even_after_a_call() -> None:
    events = [*CALLS[:2], Finished("length")]
    assert answered(ChatView(), events)["choices"][0]["finish_reason"] == "length"
    assert deltas(streamed(ChatView(), events))[-1] == ({}, "length")


def test_a_call_of_a_custom_tool_carries_its_text() -> None:
    call = ToolCall(call_id="call_a", name="patch", arguments="*** Begin", kind="freeform")
    events: list[Event] = [Started(input_tokens=1), ToolCallDone(call), Finished("tool_calls")]
    written = {"id": "call_a", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    assert answered(ChatView(), events)["choices"][0]["message"]["tool_calls"] == [written]
    chunks = chunks_of(stream(ChatStream(ChatView(), STAMP), events))
    assert deltas(chunks)[1][0] == {"tool_calls": [{"index": 0, **written}]}


def test_a_client_of_functions_gets_one_function_call() -> None:
    view = ChatView(old_calls=True)
    (choice,) = answered(view, CALLS)["choices"]
    assert choice["message"]["function_call"] == {"name": "look", "arguments": '{"at":"sky"}'}
    assert choice["finish_reason"] == "function_call"
    assert folded(stream(ChatStream(view, STAMP), CALLS))["choices"][0]["message"] == {
        "role": "assistant",
        "function_call": {"name": "look", "arguments": '{"at":"sky"}'},
    }


def test_an_answer_of_no_words_is_empty_and_not_null() -> None:
    events: list[Event] = [Started(input_tokens=1), Finished("stop")]
    assert answered(ChatView(), events)["choices"][0]["message"]["content"] == ""
    assert folded(stream(ChatStream(ChatView(), STAMP), events))["choices"][0]["message"]["content"] == ""


def test_log_probabilities_have_tokens_bytes_and_alternatives() -> None:
    tokens = (logprob("é", -0.25, [("é", -0.25), ("e", float("-inf"))]),)
    events: list[Event] = [Started(input_tokens=1), TextDelta("é", logprobs=tokens), Finished("stop")]
    (entry,) = answered(ChatView(), events)["choices"][0]["logprobs"]["content"]
    assert entry == {
        "token": "é",
        "logprob": -0.25,
        "bytes": [0xC3, 0xA9],
        "top_logprobs": [
            {"token": "é", "logprob": -0.25, "bytes": [0xC3, 0xA9]},
            {"token": "e", "logprob": -9999.0, "bytes": [0x65]},
        ],
    }
    assert streamed(ChatView(), events)[1]["choices"][0]["logprobs"]["content"] == [entry]


@given(runs())
def test_the_stream_folded_by_openais_package_is_the_whole_answer(run: tuple[int, list[Event]]) -> None:
    count, events = run
    view = ChatView(choices=count, include_usage=True)
    reply = ChatCompletion.model_validate_json(whole(view, STAMP, assemble(events)).body)
    assert folded(stream(ChatStream(view, STAMP), events)) == plain(reply)


def test_a_stream_that_breaks_says_why_and_is_not_done() -> None:
    renderer = ChatStream(ChatView(), STAMP)
    body = b"".join(renderer.feed(event, STAMP.now) for event in HELLO[:4]) + renderer.fail(EngineCrashed("tiny"))
    error = json.loads(data_lines(body)[-1])["error"]
    assert error["type"] == "server_error"
    assert "tiny" in error["message"]


def test_a_sign_of_life_is_no_event() -> None:
    assert ChatStream(ChatView(), STAMP).beat() == b":\n\n"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (chat(messages=[]), "messages"),
        ({}, "messages"),
        (chat(messages=[{"content": "hi"}]), "messages[0].role"),
        (chat(messages=[{"role": "robot", "content": "hi"}]), "messages[0].role"),
        (chat(messages=[{"role": "user", "content": 3}]), "messages[0].content"),
        (chat(messages=[{"role": "user", "content": [{"type": "smell"}]}]), "messages[0].content[0].type"),
        (chat(messages=[{"role": "tool", "content": "x"}]), "messages[0].tool_call_id"),
        (chat(messages=[{"role": "function", "content": "x"}]), "messages[0].name"),
        (chat(messages=[{"role": "assistant", "tool_calls": [{"id": "a"}]}]), "messages[0].tool_calls[0].function"),
        (chat(temperature="hot"), "temperature"),
        (chat(temperature=-1), "temperature"),
        (chat(top_p=2), "top_p"),
        (chat(n=0), "n"),
        (chat(n=129), "n"),
        (chat(max_tokens=0), "max_tokens"),
        (chat(max_tokens=5, max_completion_tokens=0), "max_completion_tokens"),
        (chat(max_tokens=True), "max_tokens"),
        (chat(stop=["x"] * 65), "stop"),
        (chat(logit_bias={"a": 1}), "logit_bias.a"),
        (chat(logit_bias={"1": 101}), "logit_bias[...]"),
        (chat(top_logprobs=3), "top_logprobs"),
        (chat(logprobs=True, top_logprobs=21), "top_logprobs"),
        (chat(keep_alive="soon"), "keep_alive"),
        (chat(reasoning_effort="extreme"), "reasoning_effort"),
        (chat(response_format={"type": "yaml"}), "response_format.type"),
        (chat(response_format={"type": "json_schema"}), "response_format.json_schema"),
        (chat(response_format={"type": "json_schema", "json_schema": {}}), "response_format.json_schema.schema"),
        (chat(tools=[{"type": "web_search"}]), "tools[0].type"),
        (chat(tools=[function(""), function("b")]), "tools[0].function.name"),
        (chat(tools=[function("a"), function("a")]), "tools"),
        (chat(tools=[function(parameters={"type": "array"})]), "tools[0].function.parameters.type"),
        (chat(tools=[function(parameters={"properties": 3})]), "tools[0].function.parameters.properties"),
        (chat(tool_choice="required"), "tool_choice"),
        (chat(tool_choice="any"), "tool_choice"),
        (chat(tool_choice=function("nope")), "tool_choice.function.name"),
        (chat(tool_choice={"type": "custom", "custom": {"name": "nope"}}), "tool_choice.custom.name"),
        (chat(functions=[{"name": "a"}], function_call={"name": "b"}), "function_call.name"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_wrong_value_is_refused_with_its_path(body: dict[str, Any], field: str) -> None:
    error = refusal(parse, body)
    assert (error["status"], error["param"]) == (400, field)
    assert error["type"] == "invalid_request_error"


def test_a_schema_that_the_engine_refuses_is_named_as_the_body_has_it() -> None:
    for fault in (InvalidField("format", "no"), UnsupportedField("format", "no")):
        refused = json.loads(error(fault).body)["error"]
        assert (refused["param"], refused["message"]) == ("response_format", "response_format: no")
