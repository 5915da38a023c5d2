"""`/api/chat`: requests in, whole answers and lines out."""

from typing import Any

import pytest

from diglot.core.events import Alternative, Finished, ReasoningDelta, Started, TextDelta, Timings, TokenLogprob, Usage
from diglot.core.events import ToolCallDone as Called
from diglot.core.items import ToolCall, said
from diglot.core.request import Conversation, Generation, Load, Residence, Unload
from tests.dialects.ollama.asking import CHAT, USER, parse, refusal, streamed, whole

END = Finished("stop", Usage(input=11, output=2, cached=4), Timings(total=90, load=10, prefill=20, decode=60))
METRICS = {
    "total_duration": 90,
    "load_duration": 10,
    "prompt_eval_count": 11,
    "prompt_eval_cached_count": 4,
    "prompt_eval_duration": 20,
    "eval_count": 2,
    "eval_duration": 60,
}
AT = "2026-11-30T00:53:20.250000Z"


def asked(**body: Any) -> Any:
    return parse(CHAT, {"model": "m", "messages": [USER], **body})


def test_the_least_request_says_nothing_but_the_conversation() -> None:
    parsed = asked()
    assert parsed.request == Generation(residence=Residence(model="m"), prompt=Conversation((said("user", "hi"),)))
    assert parsed.stream


def test_what_the_go_client_sends_is_the_least_request() -> None:
    message = {"role": "user", "content": "hi"}
    assert asked(messages=[message], options=None, format=None).request == asked().request


@pytest.mark.parametrize("messages", [{}, {"messages": None}, {"messages": []}])
@pytest.mark.parametrize(
    ("keep_alive", "kind", "reason"), [(None, Load, "load"), ("5m", Load, "load"), (0, Unload, "unload")]
)
def test_no_messages_load_or_unload_the_model_in_one_object(
    messages: Any, keep_alive: Any, kind: type, reason: Any
) -> None:
    parsed = parse(CHAT, {"model": "m", **messages, "keep_alive": keep_alive, "stream": True})
    assert isinstance(parsed.request, kind)
    assert not parsed.stream
    assert whole(CHAT, parsed, [Started(0, "m:latest"), Finished(reason)]) == {
        "model": "m",
        "created_at": AT,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": reason,
    }


def test_an_answer_comes_line_by_line() -> None:
    events = [Started(11, "m:latest"), ReasoningDelta("hm"), TextDelta("Hel"), TextDelta("lo\n"), END]
    start = {"model": "m", "created_at": AT}
    assert streamed(CHAT, asked(), events) == [
        {**start, "message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False},
        {**start, "message": {"role": "assistant", "content": "Hel"}, "done": False},
        {**start, "message": {"role": "assistant", "content": "lo\n"}, "done": False},
        {**start, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop", **METRICS},
    ]


def test_an_answer_comes_whole() -> None:
    events = [Started(11, "m:latest"), ReasoningDelta("hm"), TextDelta("Hel"), TextDelta("lo\n"), END]
    assert whole(CHAT, asked(stream=False), events) == {
        "model": "m",
        "created_at": AT,
        "message": {"role": "assistant", "content": "Hello\n", "thinking": "hm"},
        "done": True,
        "done_reason": "stop",
        **METRICS,
    }


CALLS = [
    Called(ToolCall("call_1", "weather", '{"city": "Köln",\n "days": 2}')),
    Called(ToolCall("call_2", "clock", "")),
]
ON_THE_WIRE = [
    {"id": "call_1", "function": {"index": 0, "name": "weather", "arguments": {"city": "Köln", "days": 2}}},
    {"id": "call_2", "function": {"index": 1, "name": "clock", "arguments": {}}},
]


def test_each_call_is_a_line_of_its_own_with_its_own_index() -> None:
    lines = streamed(CHAT, asked(), [Started(1), TextDelta("so "), *CALLS, Finished("tool_calls")])
    assert [line["message"].get("tool_calls") for line in lines] == [None, [ON_THE_WIRE[0]], [ON_THE_WIRE[1]], None]
    assert [line["message"]["content"] for line in lines] == ["so ", "", "", ""]
    assert [line["done"] for line in lines] == [False, False, False, True]
    assert lines[-1]["done_reason"] == "stop"


def test_all_calls_stand_in_the_whole_answer() -> None:
    answer = whole(CHAT, asked(), [Started(1), *CALLS, Finished("tool_calls")])
    assert answer["message"] == {"role": "assistant", "content": "", "tool_calls": ON_THE_WIRE}
    assert answer["done_reason"] == "stop"


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("c", "f", '{"cut": "o'),
        ToolCall("c", "f", "[1]"),
        ToolCall("c", "f", "a patch", kind="freeform"),
        ToolCall("c", "f", '{"a": 1}', kind="freeform"),
    ],
)
def test_arguments_that_are_no_object_are_kept_under_input(call: ToolCall) -> None:
    answer = whole(CHAT, asked(), [Started(1), Called(call), Finished("stop")])
    assert answer["message"]["tool_calls"][0]["function"]["arguments"] == {"input": call.arguments}


def test_log_probabilities_stand_beside_their_text() -> None:
    token = TokenLogprob("é", -0.5, "é".encode(), (Alternative("a", -1.5, b"a"),))
    expected = [
        {
            "token": "é",
            "logprob": -0.5,
            "bytes": [195, 169],
            "top_logprobs": [{"token": "a", "logprob": -1.5, "bytes": [97]}],
        }
    ]
    events = [Started(1), TextDelta("é", (token,)), Finished("stop")]
    lines = streamed(CHAT, asked(), events)
    assert [line.get("logprobs") for line in lines] == [expected, None]
    assert lines[0]["message"]["content"] == "é"
    assert whole(CHAT, asked(), events)["logprobs"] == expected


def test_an_answer_cut_by_num_predict_says_so() -> None:
    assert whole(CHAT, asked(), [Started(1), TextDelta("a"), Finished("length")])["done_reason"] == "length"


def test_durations_are_never_zero_for_the_cli_divides_by_them() -> None:
    end = streamed(CHAT, asked(), [Started(1), Finished("stop")])[-1]
    assert {name: value for name, value in end.items() if name.endswith("_duration")} == dict.fromkeys(
        ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"], 1
    )


def test_without_a_name_the_model_is_called_by_its_own() -> None:
    parsed = parse(CHAT, {"messages": [USER]})
    events = [Started(1, "smollm2:135m"), TextDelta("a"), Finished("stop")]
    assert {line["model"] for line in streamed(CHAT, parsed, events)} == {"smollm2:135m"}
    assert whole(CHAT, parsed, events)["model"] == "smollm2:135m"


@pytest.mark.shows("POST /api/chat", "_debug_render_only")
def test_rendering_only_is_refused_by_its_name() -> None:
    body = {"messages": [USER], "_debug_render_only": True}
    assert refusal(CHAT, body) == (400, "_debug_render_only: the rendered prompt is not shown")
    assert parse(CHAT, {**body, "_debug_render_only": False}) == parse(CHAT, {"messages": [USER]})
