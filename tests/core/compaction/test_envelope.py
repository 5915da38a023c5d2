"""The envelope: the same as Ollama's, to the letter."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.compaction.envelope import Summary, open_envelope, write_envelope
from diglot.core.errors import BrokenCompaction
from diglot.core.items import Image, Item, Message, Reasoning, Text, ToolCall, ToolResult, said
from diglot.core.turns import turns_of
from tests.core.compaction.transcripts import PNG, transcripts

OLLAMA = {
    "type": "ollama_compaction",
    "version": 1,
    "summary": "The port is 8123.",
    "retained": [
        {"role": "user", "content": "look", "images": [base64.b64encode(PNG).decode()]},
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [{"id": "c1", "function": {"index": 0, "name": "shell", "arguments": {"command": ["ls"]}}}],
        },
        {"role": "tool", "content": "README.md", "tool_name": "shell", "tool_call_id": "c1"},
    ],
}
STRICT = {
    "message": {"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"},
    "payload": {"type", "version", "summary", "retained"},
}


def test_a_payload_written_by_ollamas_rules_is_read() -> None:
    summary = open_envelope(json.dumps(OLLAMA))
    assert summary.text == "The port is 8123."
    assert summary.retained == (
        Message("user", (Text("look"), Image(PNG, "image/png"))),
        Reasoning("hm"),
        ToolCall("c1", "shell", '{"command":["ls"]}'),
        ToolResult("c1", (Text("README.md"),), name="shell"),
    )


@given(st.text(min_size=1).filter(str.strip), transcripts())
def test_ours_has_no_key_that_ollamas_strict_reader_would_refuse(text: str, items: tuple[Item, ...]) -> None:
    payload = json.loads(write_envelope(Summary(text, items)))
    assert set(payload) == STRICT["payload"]
    for kept in payload["retained"]:
        assert set(kept) <= STRICT["message"]
        assert isinstance(kept.get("role"), str)
        for call in kept.get("tool_calls", []):
            assert set(call) <= {"id", "function"}
            assert set(call["function"]) <= {"index", "name", "arguments"}
            assert isinstance(call["function"]["arguments"], dict)


@given(st.text(min_size=1).filter(str.strip), transcripts())
def test_what_was_written_reads_the_same_to_a_model(text: str, items: tuple[Item, ...]) -> None:
    opened = open_envelope(write_envelope(Summary(text, items)))
    assert opened.text == text
    again = open_envelope(write_envelope(opened))
    assert turns_of(again.retained) == turns_of(opened.retained), "writing once more changes nothing"


def test_arguments_that_were_cut_off_stay_as_text() -> None:
    opened = open_envelope(write_envelope(Summary("x", (ToolCall("c", "f", '{"a": "b'),))))
    (call,) = opened.retained
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments) == {"input": '{"a": "b'}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gAAAAABm-opaque", "not written by this server"),
        ('{"type":"other","version":1,"summary":"x","retained":[]}', "'other'"),
        ('{"type":"ollama_compaction","version":2,"summary":"x","retained":[]}', "version 2"),
        ('{"type":"ollama_compaction","version":1,"summary":"  ","retained":[]}', "empty"),
        ('{"type":"ollama_compaction","version":1,"summary":"x","retained":[],"more":1}', "not written by"),
        ('{"type":"ollama_compaction","version":1,"summary":"x","retained":[]}{}', "not written by"),
        ('{"type":"ollama_compaction","version":1,"summary":"x","retained":[{"role":"boss"}]}', "'boss'"),
        ('{"type":"ollama_compaction","version":1,"summary":"x","retained":[{"role":"user","images":["%"]}]}', "image"),
        ('{"type":"ollama_compaction","version":1,"summary":"x","retained":[{"role":"user","images":["é"]}]}', "image"),
        ("[" * 100_000, "not written by"),
    ],
)
def test_a_foreign_or_broken_payload_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(BrokenCompaction, match=reason):
        open_envelope(text)


def test_later_additions_of_ollama_are_read_over() -> None:
    later = {**OLLAMA, "standalone_names": {"0": {"name": "x"}}, "custom_call_ids": {"c1": True}}
    assert open_envelope(json.dumps(later)) == open_envelope(json.dumps(OLLAMA))


def test_reasoning_and_messages_keep_their_order() -> None:
    items: tuple[Item, ...] = (Reasoning("first"), said("assistant", "second"), Reasoning("third"))
    assert open_envelope(write_envelope(Summary("x", items))).retained == items
