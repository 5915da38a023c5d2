"""Bodies that are no bodies: every one of them is a fault, and nothing else is ever raised."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.errors import Fault
from diglot.dialects.openai import chat, completions, embeddings
from diglot.dialects.operation import Parsed, Wire
from tests.dialects.openai.material import JSON_VALUES, refusal, wire

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
