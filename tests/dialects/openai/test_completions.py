"""Completions: a bare prompt into a request, events into its continuation, whole and streamed."""

import json
from typing import Any

import pytest
from hypothesis import given
from openai.types import Completion

from diglot.core.assemble import assemble
from diglot.core.errors import EngineCrashed
from diglot.core.events import Event, Finished, Started, TextDelta, Usage
from diglot.core.request import Generation, RawPrompt, Residence
from diglot.dialects.openai.completions import CompletionStream, CompletionView, parse, whole
from diglot.dialects.operation import Parsed
from tests.dialects.openai.material import STAMP, chunks_of, data_lines, logprob, refusal, runs, stream, wire

TALE: list[Event] = [
    Started(input_tokens=1, model="tiny:latest"),
    TextDelta(" upon"),
    TextDelta(" a time"),
    Finished("length", usage=Usage(input=1, output=3)),
]


def answered(view: CompletionView, events: list[Event]) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(whole(view, STAMP, assemble(events)).body)
    Completion.model_validate(reply, strict=True)
    return reply


def streamed(view: CompletionView, events: list[Event]) -> list[dict[str, Any]]:
    chunks = chunks_of(stream(CompletionStream(view, STAMP), events))
    for chunk in chunks:  # The package's type knows no reason that is not there yet, though its own server sends it so.
        choices = [{**choice, "finish_reason": choice["finish_reason"] or "stop"} for choice in chunk["choices"]]
        Completion.model_validate({**chunk, "choices": choices}, strict=True)
    return chunks


def folded(chunks: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Put the chunks together by hand: OpenAI's package has no fold for these."""
    answers: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            answer = answers.setdefault(choice["index"], {"text": "", "logprobs": None, "finish_reason": None})
            answer["text"] += choice["text"]
            answer["finish_reason"] = answer["finish_reason"] or choice["finish_reason"]
            for name, values in (choice["logprobs"] or {}).items():
                answer["logprobs"] = answer["logprobs"] or {}
                answer["logprobs"].setdefault(name, []).extend(values)
    return answers


def test_the_smallest_prompt_says_nothing_but_what_was_said() -> None:
    request = Generation(residence=Residence(), prompt=RawPrompt(content="Once"))
    assert parse(wire({"prompt": "Once"})) == Parsed(request=request, view=CompletionView(), stream=False)


def test_a_whole_continuation() -> None:
    assert answered(CompletionView(model="tiny"), TALE) == {
        "id": "cmpl-a1b2c3d4e5f6g7h8i9j0k1l2",
        "object": "text_completion",
        "created": 1_700_000_000,
        "model": "tiny",
        "choices": [{"index": 0, "text": " upon a time", "logprobs": None, "finish_reason": "length"}],
        "usage": {
            "prompt_tokens": 1,
            "completion_tokens": 3,
            "total_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def test_a_streamed_continuation() -> None:
    *chunks, usage = streamed(CompletionView(include_usage=True), TALE)
    assert {(chunk["id"], chunk["created"], chunk["object"]) for chunk in chunks} == {
        ("cmpl-a1b2c3d4e5f6g7h8i9j0k1l2", 1_700_000_000, "text_completion")
    }
    assert [chunk["choices"][0]["text"] for chunk in chunks] == [" upon", " a time", ""]
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 3


def test_an_echo_stands_before_every_answer() -> None:
    events: list[Event] = [*TALE, TextDelta(" more", choice=1), Finished("stop", choice=1)]
    view = CompletionView(choices=2, echo="Once")
    assert [choice["text"] for choice in answered(view, events)["choices"]] == ["Once upon a time", "Once more"]
    assert {index: answer["text"] for index, answer in folded(streamed(view, events)).items()} == {
        0: "Once upon a time",
        1: "Once more",
    }


def test_log_probabilities_are_parallel_lists_with_places_in_the_text() -> None:
    first, second = logprob("né", -0.5, [("né", -0.5), ("no", -1.0)]), logprob("e", -0.1)
    events: list[Event] = [
        Started(input_tokens=1),
        TextDelta("né", logprobs=(first,)),
        TextDelta("e", logprobs=(second,)),
        Finished("stop"),
    ]
    table = {
        "tokens": ["né", "e"],
        "token_logprobs": [-0.5, -0.1],
        "top_logprobs": [{"né": -0.5, "no": -1.0}, {"e": -0.1}],
        "text_offset": [0, 2],
    }
    assert answered(CompletionView(), events)["choices"][0]["logprobs"] == table
    assert folded(streamed(CompletionView(), events))[0]["logprobs"] == table


@given(runs(raw=True))
def test_the_stream_put_together_is_the_whole_answer(run: tuple[int, list[Event]]) -> None:
    count, events = run
    view = CompletionView(choices=count, include_usage=True)
    reply, chunks = answered(view, events), streamed(view, events)
    answers = {choice.pop("index"): choice for choice in reply["choices"]}
    assert folded(chunks) == answers
    assert chunks[-1]["usage"] == reply["usage"]


def test_a_stream_that_breaks_says_why_and_is_not_done() -> None:
    renderer = CompletionStream(CompletionView(), STAMP)
    body = renderer.feed(TALE[0], STAMP.now) + renderer.feed(TALE[1], STAMP.now) + renderer.fail(EngineCrashed("tiny"))
    assert json.loads(data_lines(body)[-1])["error"]["code"] == "engine_crashed"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt[0]"),
        ({"prompt": ["a", 1]}, "prompt[1]"),
        ({"prompt": [-1]}, "prompt[0]"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": {}}, "prompt"),
        ({"prompt": "a", "max_tokens": 0}, "max_tokens"),
        ({"prompt": "a", "n": 3, "best_of": 2}, "best_of"),
        ({"prompt": [1], "echo": True}, "echo"),
        ({"prompt": "a", "echo": True, "logprobs": 1}, "echo"),
        ({"prompt": [1], "suffix": "a"}, "suffix"),
        ({"prompt": "a", "logprobs": 21}, "logprobs"),
        ({"prompt": "a", "logprobs": True}, "logprobs"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(body: dict[str, Any], field: str) -> None:
    error = refusal(parse, body)
    assert (error["status"], error["param"]) == (400, field)


def test_as_many_candidates_as_answers_need_no_ranking() -> None:
    assert parse(wire({"prompt": "a", "n": 2, "best_of": 2})) == parse(wire({"prompt": "a", "n": 2}))
