"""Whatever a server of models sends, it becomes events in their order, or a fault that blames that server."""

import itertools
import json
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.assemble import assemble
from diglot.core.errors import AnyFault, Fault
from diglot.core.events import Event, Finished, Progress, Started
from diglot.core.foreign import UNREADABLE
from diglot.core.items import said
from diglot.core.request import Conversation, Generation, Residence, ToolChoice, ToolMode, ToolSpec
from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.openai import DIALECT as OPENAI
from diglot.engines.peer.answer import Answer
from diglot.engines.peer.chunks import Chunk, decode_chunk
from diglot.engines.peer.faults import Blame, fault_of
from tests.fuzz.odd import nearly

BLAME: Final = Blame("m", window=9, where="http://there")
TOOL: Final = ToolSpec(name="look", description="", parameters={"type": "object"})
ASKED: Final = (
    Generation(residence=Residence(), prompt=Conversation((said("user", "hi"),))),
    Generation(residence=Residence(), prompt=Conversation((said("user", "hi"),)), tools=(TOOL,), logprobs=2),
    Generation(
        residence=Residence(),
        prompt=Conversation((said("user", "hi"),)),
        tools=(TOOL,),
        tool_choice=ToolChoice(mode=ToolMode.REQUIRED),
    ),
)


class Numbered:
    """Ids in their order."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def new(self) -> str:
        """Return the next."""
        return f"{next(self._numbers):024}"


_LOGPROB: Final = {
    "token": "a",
    "logprob": -0.5,
    "bytes": [97],
    "top_logprobs": [{"token": "b", "logprob": -1, "bytes": None}],
}
CHUNKS: Final[list[Any]] = [
    {"prompt_progress": {"total": 9, "processed": 3, "cache": 1}},
    {"choices": [{"delta": {"content": "hi"}, "logprobs": {"content": [_LOGPROB]}, "finish_reason": None}]},
    {"choices": [{"delta": {"reasoning_content": "hm", "content": None}}]},
    {
        "choices": [
            {"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "look", "arguments": "{}"}}]}}
        ]
    },
    {"choices": [{"text": "x", "logprobs": {"tokens": ["x"], "token_logprobs": [-1], "top_logprobs": [{"y": -2}]}}]},
    {"choices": [{"delta": {"content": "<think>"}}, {"delta": {"content": '<tool_call>{"name": "look"'}}]},
    {"choices": [{"delta": {}, "finish_reason": "stop"}], "timings": {"prompt_ms": 0.5, "predicted_ms": 1}},
    {
        "choices": [],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1}},
    },
    {"error": {"code": 500, "message": "no"}},
]
chunks = st.sampled_from(CHUNKS).flatmap(nearly) | st.sampled_from(CHUNKS)


@given(st.lists(chunks, max_size=8), st.sampled_from(ASKED))
def test_chunks_in_any_order_become_events_in_theirs(sent: list[Any], asked: Generation) -> None:
    answer = Answer(asked, model="m", ids=Numbered())
    events: list[Event] = []
    for chunk in sent:
        with suppress(*UNREADABLE):
            events += answer.feed(decode_chunk(json.dumps(chunk).encode()))
    events += answer.close()
    began = next(place for place, event in enumerate(events) if isinstance(event, Started))
    assert all(isinstance(event, Progress) for event in events[:began])
    assert [isinstance(event, Finished | Started) for event in events[began + 1 :]] == [
        place == len(events) - began - 2 for place in range(len(events) - began - 1)
    ]
    msgspec.json.encode(assemble(events))


@given(st.binary(max_size=60) | chunks.map(json.dumps).map(str.encode) | st.just(b"[" * 100_000))
def test_what_is_no_chunk_is_unreadable_and_nothing_worse(data: bytes) -> None:
    with suppress(*UNREADABLE):
        assert isinstance(decode_chunk(data), Chunk)


ERRORS: Final = st.fixed_dictionaries(
    {},
    optional={
        "message": st.sampled_from(["", "failed: no", "the model's maximum context length is 9"]) | st.text(max_size=9),
        "type": st.none() | st.sampled_from(["exceed_context_size_error", "invalid_request_error"]),
        "code": st.none() | st.integers() | st.sampled_from(["context_length_exceeded", "x"]),
        "param": st.none() | st.sampled_from(["messages", "input_tokens"]),
        "n_ctx": st.integers(),
        "n_prompt_tokens": st.integers() | st.text(),
    },
)


@pytest.mark.parametrize("asked", [None, *ASKED], ids=range(4))
@given(
    status=st.integers(100, 999),
    body=ERRORS.flatmap(lambda error: st.sampled_from([error, {"error": error}])).map(json.dumps).map(str.encode)
    | st.binary(max_size=40),
    headers=st.dictionaries(st.just("retry-after"), st.sampled_from(["", "3", "-1", "soon", "٣", "1e999", "9" * 400])),
)
def test_any_refusal_is_a_fault(asked: Generation | None, status: int, body: bytes, headers: dict[str, str]) -> None:
    fault = fault_of(status, body, blame=BLAME, headers=headers, request=asked)
    assert isinstance(fault, Fault)
    known: AnyFault = fault  # type: ignore[assignment]  # Every fault is one of them.
    for dialect in (OLLAMA, OPENAI):
        assert dialect.error(known).status >= HTTPStatus.BAD_REQUEST
