"""Options, and the other fields that chat, generate and embed share."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.errors import Fault
from diglot.core.request import AnyJson, Generation, JsonSchema, LoadOptions, Overflow, PlainText, Sampling
from diglot.dialects.ollama.compat import TRAITS
from diglot.dialects.ollama.options import DEAD
from tests.dialects.ollama.asking import CHAT, GENERATE, generation, parse, refusal

SAMPLING: list[tuple[str, Any, Sampling]] = [
    ("temperature", 0.5, Sampling(temperature=0.5)),
    ("temperature", 1, Sampling(temperature=1)),
    ("top_p", 0.7, Sampling(top_p=0.7)),
    ("top_k", 12, Sampling(top_k=12)),
    ("min_p", 0.1, Sampling(min_p=0.1)),
    ("typical_p", 0.9, Sampling(typical_p=0.9)),
    ("repeat_penalty", 1.3, Sampling(repeat_penalty=1.3)),
    ("repeat_last_n", -1, Sampling(repeat_last_n=-1)),
    ("presence_penalty", 0.2, Sampling(presence_penalty=0.2)),
    ("frequency_penalty", 0.4, Sampling(frequency_penalty=0.4)),
    ("seed", 42, Sampling(seed=42)),
    ("num_predict", -2, Sampling(max_tokens=-2)),
    ("stop", ["\n", "END"], Sampling(stop=("\n", "END"))),
]
LOADING: list[tuple[str, Any, LoadOptions]] = [
    ("num_ctx", 2048, LoadOptions(window=2048)),
    ("num_batch", 256, LoadOptions(batch=256)),
    ("num_gpu", -1, LoadOptions(gpu_layers=-1)),
    ("main_gpu", 0, LoadOptions(main_gpu=0)),
    ("use_mmap", False, LoadOptions(use_mmap=False)),
    ("num_thread", 3, LoadOptions(threads=3)),
]
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}]},
    GENERATE: {"prompt": "hi"},
    "/api/embed": {"input": "hi"},
    "/api/embeddings": {"prompt": "hi"},
}


def request_of(path: str, **body: Any) -> Any:
    return parse(path, {"model": "m", **BODIES[path], **body}).request


@pytest.mark.parametrize(
    ("path", "option", "value", "expected"),
    [
        pytest.param(path, *case, marks=pytest.mark.shows(f"POST {path}", f"options.{case[0]}"))
        for path in (CHAT, GENERATE)
        for case in SAMPLING
    ],
)
def test_an_option_says_how_tokens_are_drawn(path: str, option: str, value: Any, expected: Sampling) -> None:
    assert generation(path, options={option: value}).sampling == expected


@pytest.mark.parametrize(
    ("path", "option", "value", "expected"),
    [
        pytest.param(path, *case, marks=pytest.mark.shows(f"POST {path}", "options", f"options.{case[0]}"))
        for path in BODIES
        for case in LOADING
    ],
)
def test_an_option_says_how_the_model_is_loaded(path: str, option: str, value: Any, expected: LoadOptions) -> None:
    assert request_of(path, options={option: value}).residence.load == expected


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("options", [None, {}, {"num_ctx": None}, {"nonsense": {}}, {key: {"any": 1} for key in DEAD}])
def test_null_unknown_and_dead_options_are_read_over(path: str, options: Any) -> None:
    assert request_of(path, options=options) == request_of(path)


def test_a_fraction_is_cut_off_where_a_whole_number_is_meant() -> None:
    assert generation(CHAT, options={"top_k": 12.9, "num_predict": -1.5}).sampling == Sampling(top_k=12, max_tokens=-1)


def test_a_size_of_zero_leaves_the_choice_to_the_server() -> None:
    sizes = {"num_ctx": 0, "num_batch": 0, "num_thread": 0}
    assert generation(CHAT, options=sizes).residence.load == LoadOptions()


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("temperature", "hot", 'option "temperature" must be of type float32'),
        ("top_k", [], 'option "top_k" must be of type integer'),
        ("top_k", True, 'option "top_k" must be of type integer'),
        ("use_mmap", 1, 'option "use_mmap" must be of type boolean'),
        ("stop", "END", 'option "stop" must be of type array'),
        ("stop", ["a", 1], 'option "stop" must be of an array of strings'),
        ("stop", ["a", ""], 'option "stop" must not hold an empty string'),
        ("seed", 1e30, 'option "seed" is too large'),
        ("num_ctx", 1 << 40, 'option "num_ctx" is too large'),
        ("num_ctx", -1, 'option "num_ctx" must not be negative'),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it(option: str, value: Any, text: str) -> None:
    assert refusal(CHAT, {"messages": BODIES[CHAT]["messages"], "options": {option: value}}) == (400, text)


def test_options_that_are_no_object_are_an_error() -> None:
    assert refusal(CHAT, {"options": 1}) == (400, "options: expected object | null, got int")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
NAMES = st.sampled_from(sorted({trait.field.removeprefix("options.") for trait in TRAITS if "options." in trait.field}))


@given(options=st.dictionaries(NAMES, ANYTHING))
def test_any_options_are_read_or_refused(options: dict[str, Any]) -> None:
    try:
        request = request_of(CHAT, options=options)
    except Fault:
        return
    assert isinstance(request, Generation)


# keep_alive


@pytest.mark.parametrize(
    ("path", "value", "seconds"),
    [
        pytest.param(path, *case, marks=pytest.mark.shows(f"POST {path}", "keep_alive"))
        for path in BODIES
        for case in (
            (None, None),
            (0, 0),
            (2.5, 2.5),
            (-1, math.inf),
            ("0", 0),
            ("0s", 0),
            ("5m0s", 300),
            ("300ms", 0.3),
            ("1.5h", 5400),
            ("2h45m", 9900),
            ("-1m", math.inf),
            ("24h", 86400),
        )
    ],
)
def test_keep_alive_is_a_number_of_seconds_or_a_duration(path: str, value: Any, seconds: float | None) -> None:
    assert request_of(path, keep_alive=value).residence.keep_alive == (
        seconds if seconds is None else pytest.approx(seconds)
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1m30", 'keep_alive: time: missing unit in duration "1m30"'),
        ("soon", 'keep_alive: time: invalid duration "soon"'),
        ("", 'keep_alive: time: invalid duration ""'),
        (True, "keep_alive: Unsupported type: 'bool'"),
        ([], "keep_alive: Unsupported type: 'array'"),
    ],
)
def test_a_keep_alive_that_is_no_duration_is_an_error(value: Any, text: str) -> None:
    assert refusal(CHAT, {"keep_alive": value}) == (400, text)


@given(text=st.text(alphabet="0123456789.-+nsumhµ ", max_size=12))
def test_any_text_is_a_duration_or_an_error(text: str) -> None:
    try:
        seconds = request_of(CHAT, keep_alive=text).residence.keep_alive
    except Fault:
        return
    assert seconds >= 0


# format, think, truncate, logprobs, stream

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        pytest.param(path, *case, marks=pytest.mark.shows(f"POST {path}", "format"))
        for path in (CHAT, GENERATE)
        for case in ((None, PlainText()), ("", PlainText()), ("json", AnyJson()), (SCHEMA, JsonSchema(SCHEMA)))
    ],
)
def test_format_is_nothing_json_or_a_schema(path: str, value: Any, expected: Any) -> None:
    assert generation(path, format=value).format == expected


@pytest.mark.parametrize(("value", "shown"), [("xml", "xml"), (3, "int"), ([], "list")])
def test_another_format_is_an_error(value: Any, shown: str) -> None:
    text = f'invalid format: "{shown}"; expected "json" or a valid JSON Schema object'
    assert refusal(CHAT, {"format": value}) == (400, text)


def test_a_schema_that_cannot_be_enforced_is_an_error_with_its_path() -> None:
    status, text = refusal(GENERATE, {"format": {"type": "object", "properties": {"a": {"type": "nonsense"}}}})
    assert status == 400
    assert "format.properties.a" in text


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(path, value, marks=pytest.mark.shows(f"POST {path}", "think"))
        for path in (CHAT, GENERATE)
        for value in (None, True, False, "low", "medium", "high", "max")
    ],
)
def test_think_is_a_bool_or_an_effort_and_insists_on_a_model_that_can(path: str, value: Any) -> None:
    request = generation(path, think=value)
    assert request.think == value
    assert request.must_think == bool(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("xhigh", 'invalid think value: "xhigh" (must be "high", "medium", "low", "max", true, or false)'),
        (1, 'think must be a boolean or string ("high", "medium", "low", "max", true, or false)'),
    ],
)
def test_another_think_is_an_error(value: Any, text: str) -> None:
    assert refusal(GENERATE, {"prompt": "hi", "think": value}) == (400, text)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        pytest.param(path, *case, marks=pytest.mark.shows(f"POST {path}", "truncate"))
        for path in (CHAT, GENERATE)
        for case in (
            ({}, Overflow.ERROR),
            ({"truncate": None}, Overflow.ERROR),
            ({"truncate": False}, Overflow.ERROR),
            ({"truncate": True}, Overflow.TRUNCATE),
        )
    ],
)
def test_a_conversation_is_cut_only_where_the_client_says_so(path: str, value: Any, expected: Overflow) -> None:
    assert generation(path, **value).overflow is expected


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        pytest.param(path, *case, marks=pytest.mark.shows(f"POST {path}", "logprobs", "top_logprobs"))
        for path in (CHAT, GENERATE)
        for case in (
            ({}, None),
            ({"top_logprobs": 5}, None),
            ({"logprobs": False}, None),
            ({"logprobs": True}, 0),
            ({"logprobs": True, "top_logprobs": 20}, 20),
        )
    ],
)
def test_logprobs_ask_for_up_to_20_alternatives(path: str, value: Any, expected: int | None) -> None:
    assert generation(path, **value).logprobs == expected


@pytest.mark.parametrize("value", [-1, 21])
def test_top_logprobs_has_bounds(value: int) -> None:
    assert refusal(CHAT, {"top_logprobs": value}) == (400, "top_logprobs must be between 0 and 20")


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        pytest.param(path, *case, marks=pytest.mark.shows(f"POST {path}", "stream"))
        for path in (CHAT, GENERATE)
        for case in (({}, True), ({"stream": None}, True), ({"stream": True}, True), ({"stream": False}, False))
    ],
)
def test_an_answer_streams_unless_the_client_says_no(path: str, value: Any, *, expected: bool) -> None:
    assert parse(path, {**BODIES[path], **value}).stream is expected


# model


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        pytest.param(path, *case, marks=pytest.mark.shows(f"POST {path}", "model"))
        for path in BODIES
        for case in (
            ({"model": "qwen:7b"}, "qwen:7b"),
            ({"model": "hf.co/u/m:Q4_K_M"}, "hf.co/u/m:Q4_K_M"),
            ({"model": ""}, None),
            ({"model": None}, None),
        )
    ],
)
def test_a_model_is_named_as_written_or_is_the_one_used_last(path: str, body: Any, expected: str | None) -> None:
    assert request_of(path, **body).residence.model == expected


@pytest.mark.parametrize("name", ["a b", "../x", "a/b/c/d", ":latest", "x:"])
def test_a_name_outside_the_grammar_is_an_error(name: str) -> None:
    status, text = refusal(CHAT, {"model": name})
    assert status == 400
    assert text.startswith("invalid model name: ")
