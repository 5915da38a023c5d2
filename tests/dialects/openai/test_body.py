"""Bodies that are no bodies: every one of them is a fault, and nothing else is ever raised."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diglot.core.errors import Fault
from diglot.dialects.openai import chat, completions, embeddings
from diglot.dialects.operation import Parsed, Wire
from tests.dialects.openai.material import JSON_VALUES, data_url, png, refusal, wire

Parse = Callable[[Wire], Parsed]
PARSERS = [chat.parse, completions.parse, embeddings.parse]
NAMES = sorted({name for body in (chat.ChatBody, completions.CompletionBody) for name in body.__struct_fields__})


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"x"',
        b"3",
        b"null",
        b"{",
        b'{"messages": [{"role": "user"}], "prompt": "a", "input": "a"} {}',
        b'{"model": "\\ud800"}',
        b'{"model": "\\udc00 and more"}',
        b'{"model": "\\ud800\\u0041 and more"}',
        b'{"model": "\xed\xa0\x80"}',
        b'{"model": "\xff"}',
        b'{"model": NaN}',
        b'{"unheard_of": ' + b"[" * 100_000,
        b'{"unheard_of": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"unheard_of": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    ],
    ids=range(16),
)
def test_what_is_no_json_object_is_malformed(parse: Parse, body: bytes) -> None:
    error = refusal(parse, Wire(body=body))
    assert (error["status"], error["code"]) == (400, "malformed_body")
    assert error["message"]


def test_a_long_wrong_value_is_not_sent_back_whole() -> None:
    assert len(refusal(chat.parse, {"messages": [{"role": "x" * 10_000, "content": ""}]})["message"]) < 400


def test_numbers_out_of_range_are_refused_with_their_path() -> None:
    error = refusal(chat.parse, Wire(body=b'{"messages": [{"role": "user"}], "temperature": 1e999}'))
    assert (error["status"], error["param"]) == (400, "temperature")


@given(st.sampled_from(PARSERS), JSON_VALUES | st.dictionaries(st.sampled_from(NAMES), JSON_VALUES, max_size=5))
def test_any_json_value_is_read_or_refused(parse: Parse, value: Any) -> None:
    with suppress(Fault):
        parse(wire(value))


@given(st.sampled_from(NAMES), JSON_VALUES)
def test_any_value_of_any_field_is_read_or_refused(name: str, value: Any) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "prompt": "hi", "input": "hi", name: value}
    for parse in PARSERS:
        with suppress(Fault):
            parse(wire(body))


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with pytest.raises(Fault):
        chat.parse(Wire(body=data))


RICH: dict[str, Any] = {
    "model": "tiny",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": data_url(png())}}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning": "Hm.",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            "function_call": {"name": "look", "arguments": "{}"},
        },
        {"role": "tool", "tool_call_id": "a", "content": "blue"},
        {"role": "function", "name": "look", "content": "blue"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "look", "parameters": {"properties": {"at": {"pattern": "^a{2}$"}}}}},
        {"type": "custom", "custom": {"name": "b", "format": {"type": "grammar", "grammar": {"definition": "a", "syntax": "regex"}}}},
    ],
    "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "look"}}]}},
    "response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "string"}]}}}}},
    "stream_options": {"include_usage": True},
    "options": {"num_ctx": 5, "stop": ["a"]},
    "logit_bias": {"3": 1},
    "chat_template_kwargs": {"enable_thinking": True},
    "prompt": [[1, 2]],
    "input": ["a"],
}  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))


@pytest.mark.parametrize("parse", PARSERS)
def test_the_rich_body_is_read(parse: Parse) -> None:
    parse(wire(RICH))


@settings(max_examples=400)
@given(st.sampled_from(list(places(RICH))), JSON_VALUES)
def test_one_odd_value_anywhere_in_a_rich_body_is_read_or_refused(place: tuple[Any, ...], odd: Any) -> None:
    body = deepcopy(RICH)
    around = body
    for key in place[:-1]:
        around = around[key]
    around[place[-1]] = odd
    for parse in PARSERS:
        with suppress(Fault):
            parse(wire(body))
