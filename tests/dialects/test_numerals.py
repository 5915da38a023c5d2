"""Whole numbers with a fraction of nothing, and numbers that are none, in every dialect."""

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.errors import InvalidField, MalformedBody
from diglot.core.request import Embedding, Generation, Respond
from diglot.dialects.numerals import with_whole_numbers
from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.openai import DIALECT as OPENAI
from diglot.dialects.operation import Wire

USER: Final = [{"role": "user", "content": '1.0 and \\"2.0\\" stay'}]
BODIES: Final[dict[str, dict[str, Any]]] = {
    "/v1/chat/completions": {"messages": USER},
    "/v1/completions": {"prompt": "hi"},
    "/v1/responses": {"input": USER},
    "/v1/embeddings": {"input": "hi"},
    "/api/chat": {"messages": USER},
    "/api/generate": {"prompt": "hi"},
    "/api/embed": {"input": "hi"},
}
JSON: Any = st.recursive(
    st.text(st.sampled_from('.0123"\\e-'), max_size=9)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.sampled_from('1.0"'), max_size=4), inner),
    max_leaves=12,
)


def parsed(path: str, body: bytes | dict[str, Any]) -> Any:
    (operation,) = [
        each
        for dialect in (OPENAI, OLLAMA)
        for each in dialect.operations
        if (each.path, each.method) == (path, "POST")
    ]
    sent = body if isinstance(body, bytes) else json.dumps({"model": "m", **BODIES[path], **body}).encode()
    request = operation.parse(Wire(sent)).request
    return request.generation if isinstance(request, Respond) else request


@given(JSON)
def test_no_value_changes_but_for_the_form_of_whole_numbers(value: Any) -> None:
    whole = json.loads(with_whole_numbers(json.dumps(value).encode()))
    assert whole == value

    def fractions(within: Any) -> bool:
        match within:
            case dict():
                return any(map(fractions, within.values()))
            case list():
                return any(map(fractions, within))
            case float():
                return within.is_integer() and "e" not in json.dumps(within)
            case _:
                return False

    assert not fractions(whole)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"max_tokens": 10.0}),
        ("/v1/chat/completions", {"max_completion_tokens": 10.0, "temperature": 1.0, "n": 1.0, "top_k": 3.0}),
        ("/v1/completions", {"max_tokens": 10.0}),
        ("/v1/responses", {"max_output_tokens": 10.0}),
        ("/v1/chat/completions", {"options": {"num_predict": 10.0}}),
        ("/api/chat", {"options": {"num_predict": 10.0}}),
        ("/api/chat", {"options": {"num_predict": 10.0}, "top_logprobs": 2.0, "logprobs": True}),
        ("/api/generate", {"options": {"num_predict": 10.0}}),
    ],
)
def test_a_whole_number_may_be_written_with_a_fraction_of_nothing(path: str, body: dict[str, Any]) -> None:
    request = parsed(path, body)
    assert isinstance(request, Generation)
    assert request.sampling.max_tokens == 10
    assert "1.0 and" in repr(request.prompt) or "messages" not in BODIES[path]


def test_so_may_a_number_of_dimensions() -> None:
    request = parsed("/v1/embeddings", {"dimensions": 3.0})
    assert isinstance(request, Embedding)
    assert request.dimensions == 3


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        ("/v1/chat/completions", "max_tokens", 10.5),
        ("/v1/chat/completions", "max_tokens", 2**31),
        ("/v1/chat/completions", "max_tokens", 10**40),
        ("/v1/chat/completions", "n", 129),
        ("/v1/chat/completions", "temperature", 2.1),
        ("/v1/chat/completions", "seed", 2**63),
        ("/v1/chat/completions", "repeat_penalty", 0),
        ("/v1/chat/completions", "options.temperature", 1e300),
        ("/v1/chat/completions", "options.num_thread", 1025),
        ("/v1/responses", "max_output_tokens", 2**31),
        ("/v1/embeddings", "dimensions", 0),
        ("/api/chat", "options.temperature", -0.1),
        ("/api/chat", "options.temperature", 1e300),
        ("/api/chat", "options.top_p", 1.1),
        ("/api/chat", "options.min_p", -1),
        ("/api/chat", "options.typical_p", 2),
        ("/api/chat", "options.repeat_penalty", 101),
        ("/api/chat", "options.presence_penalty", -1e9),
        ("/api/chat", "options.frequency_penalty", 1e9),
        ("/api/chat", "options.num_predict", 2**31),
        ("/api/chat", "options.num_predict", 10**40),
        ("/api/chat", "options.num_predict", 1e300),
        ("/api/chat", "options.top_k", -(2**31)),
        ("/api/chat", "options.seed", 2**64),
        ("/api/generate", "options.num_thread", 1025),
        ("/api/embed", "options.num_batch", 2**17),
        ("/api/embed", "options.num_ctx", -1),
    ],
)
def test_a_number_beyond_its_range_is_refused_by_name(path: str, field: str, value: float) -> None:
    outer, _, inner = field.partition(".")
    with pytest.raises(InvalidField) as refused:
        parsed(path, {outer: {inner: value} if inner else value})
    assert refused.value.field == field


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "0x10", "1_000", "01", "9" * 5000]
)
@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/v1/chat/completions", '{"messages": [{"role": "user", "content": "a"}], "temperature": %s}'),
        ("/v1/chat/completions", '{"messages": [{"role": "user", "content": "a"}], "max_tokens": %s}'),
        ("/v1/responses", '{"input": "a", "top_p": %s}'),
        ("/api/chat", '{"messages": [{"role": "user", "content": "a"}], "options": {"temperature": %s}}'),
        ("/api/chat", '{"messages": [{"role": "user", "content": "a"}], "options": {"num_predict": %s}}'),
        ("/api/chat", '{"messages": [{"role": "user", "content": "a"}], "keep_alive": %s}'),
    ],
)
def test_what_is_no_number_or_no_finite_one_is_refused(path: str, form: str, number: str) -> None:
    with pytest.raises((InvalidField, MalformedBody)):
        parsed(path, (form % number).encode())


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/api/chat", {"options": {"stop": ["a"] * 65}}, "options.stop"),
        ("/v1/chat/completions", {"stop": ["a"] * 65}, "stop"),
        ("/v1/chat/completions", {"options": {"stop": ["a"] * 65}}, "options.stop"),
        ("/v1/completions", {"logit_bias": {str(token): 1 for token in range(1025)}}, "logit_bias"),
        ("/v1/responses", {"logit_bias": {str(token): 1 for token in range(1025)}}, "logit_bias"),
    ],
)
def test_a_list_that_costs_each_token_is_bounded(path: str, body: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        parsed(path, body)
    assert refused.value.field == field
