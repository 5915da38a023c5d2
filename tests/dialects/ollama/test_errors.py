"""Faults in Ollama's words, and bodies that are no requests."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core import errors
from diglot.core.errors import (
    AnyFault,
    Busy,
    Cancelled,
    ContextExceeded,
    EngineCrashed,
    EngineFailed,
    Fault,
    HeadTooLarge,
    InvalidField,
    KeyMissing,
    LoadFailed,
    ModelBroken,
    ModelIncapable,
    ModelNotFound,
    NoModel,
    TooMany,
    TooSlow,
    UnknownPath,
    UpstreamFailed,
    WrongMethod,
)
from diglot.dialects.ollama import DIALECT
from tests.dialects.ollama.asking import CHAT, GENERATE, STAMP, operation, parse, refusal, reply_to

BODIED = [operation.path for operation in DIALECT.operations if operation.body]
LONG = ContextExceeded(tokens=5000, window=4096)


@pytest.mark.parametrize(
    ("path", "fault", "status", "text"),
    [
        (CHAT, ModelNotFound("x"), 404, "model 'x' not found"),
        (GENERATE, ModelNotFound("x"), 404, "model 'x' not found"),
        ("/api/show", ModelNotFound("X"), 404, "model 'X:latest' not found"),
        ("/api/embed", ModelNotFound("x"), 404, 'model "x" not found, try pulling it first'),
        ("/api/embeddings", ModelNotFound("{x}"), 404, 'model "{x}" not found, try pulling it first'),
        (CHAT, ModelIncapable("e", ability="chat"), 400, '"e" does not support chat'),
        (GENERATE, ModelIncapable("e", ability="chat"), 400, '"e" does not support generate'),
        (CHAT, ModelIncapable("m", ability="thinking"), 400, '"m" does not support thinking'),
        ("/api/embed", ModelIncapable("m", ability="embedding"), 400, '"m" does not support embedding'),
        ("/api/embed", NoModel(ability="embedding"), 503, "no embedding model is downloaded"),
        (
            "/api/embed",
            TooMany("input", count=9, limit=8),
            413,
            "input: 9 inputs are more than the limit of 8 in one request",
        ),
        (CHAT, HeadTooLarge(9), 431, "the request head is larger than the limit of 9 bytes"),
        (CHAT, TooSlow("head", seconds=9), 408, "the head of the request did not arrive within 9 seconds"),
        (CHAT, Busy(retry_after=2.5), 503, "server busy, please try again.  maximum pending requests exceeded"),
        (CHAT, Cancelled(), 499, "request canceled"),
        (CHAT, EngineFailed("boom", id="a1"), 500, "boom (the log has more under a1)"),
        (CHAT, EngineFailed(), 500, "the engine failed"),
        (CHAT, EngineCrashed("m"), 500, "the engine of model 'm' ended unexpectedly"),
        (CHAT, LoadFailed("m", reason="no memory"), 500, "model 'm' could not be loaded: no memory"),
        (CHAT, ModelBroken("m", reason="cut off"), 500, "model 'm' cannot be used: cut off"),
        (CHAT, UpstreamFailed("http://x", reason="refused"), 502, "the remote server http://x failed: refused"),
        (CHAT, UnknownPath("/api/x"), 404, "there is nothing at /api/x"),
        (CHAT, UnknownPath("/api/\udc80"), 404, "there is nothing at /api/?"),
        (CHAT, InvalidField("messages[0].role", "wrong"), 400, "messages[0].role: wrong"),
        (CHAT, InvalidField("model", "not a valid tag"), 400, "model: not a valid tag"),
    ],
)
def test_a_fault_has_the_status_and_the_words_of_its_endpoint(
    path: str, fault: AnyFault, status: int, text: str
) -> None:
    assert reply_to(path, fault) == (status, text)


def test_a_prompt_that_is_too_long_is_told_how_to_fit() -> None:
    status, text = reply_to(CHAT, LONG)
    assert status == 400
    assert text.startswith("the prompt is longer than the context length currently available to the model; ")
    assert "5000" in text
    assert "4096" in text
    assert '"truncate": true' in text
    assert reply_to("/api/embed", LONG)[1].startswith("the input length exceeds the context length; ")
    assert '"truncate"' not in reply_to("/api/embeddings", LONG)[1]


@pytest.mark.parametrize(
    ("fault", "name", "value"),
    [
        (Busy(retry_after=2.1), "retry-after", "3"),
        (Busy(retry_after=0), "retry-after", "1"),
        (WrongMethod("PUT", path="/api/tags", allowed=("GET", "HEAD")), "allow", "GET, HEAD"),
        (KeyMissing(), "www-authenticate", "Bearer"),
    ],
)
def test_what_a_client_can_act_on_stands_in_a_header(fault: AnyFault, name: str, value: str) -> None:
    assert DIALECT.error(fault).headers == {name: value}


def test_every_kind_of_fault_has_its_place_in_the_table() -> None:
    kinds = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, Fault) and kind is not Fault
    }
    assert kinds == set(get_args(AnyFault))
    for kind in kinds:
        fault: Any = kind.__new__(kind)
        Fault.__init__(fault, "it is so")
        vars(fault).update(field="f", reason="r", name="n", ability="a", allowed=(), retry_after=1, id="")
        assert DIALECT.error(fault).status >= 400


@pytest.mark.parametrize("path", [CHAT, GENERATE])
def test_a_stream_that_breaks_ends_in_a_line_with_the_error(path: str) -> None:
    make = operation(path).stream
    assert make is not None
    renderer = make(parse(path, {"model": "m", "messages": [], "prompt": "hi"}).view, STAMP)
    assert renderer.beat() == b""
    assert renderer.fail(ModelIncapable("m", ability="chat")) == (
        b'{"error":"\\"m\\" does not support %b"}\n' % (b"chat" if path == CHAT else b"generate")
    )
    assert renderer.close() == b""


# Bodies that are no requests


@pytest.mark.parametrize("path", BODIED)
@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "missing request body"),
        (b" \n", "missing request body"),
        (b"[]", "the body must be a JSON object, not array"),
        (b"null", "the body must be a JSON object, not null"),
        (b'"x"', "the body must be a JSON object, not str"),
    ],
)
def test_a_body_that_is_no_object_of_the_right_kind_is_an_error(path: str, body: bytes, text: str) -> None:
    assert refusal(path, body) == (400, text)


@pytest.mark.parametrize("path", [path for path in BODIED if path != "/api/copy"])
def test_a_field_of_a_wrong_type_is_named(path: str) -> None:
    assert refusal(path, b'{"model": 1}') == (400, "model: expected str | null, got int")


@pytest.mark.parametrize("path", BODIED)
@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"{} {}",
        b'{"model": NaN}',
        b'{"model": "\\ud800"}',
        b'{"model": "\xff"}',
        b'{"options": {"num_ctx": 1e999}}',
        b'{"options": {"temperature": ' + b"9" * 5000 + b"}}",
        '{"model": "é"}'.encode("utf-16"),
        b'{"options": {"numa": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    ],
)
def test_a_body_that_is_no_json_is_an_error(path: str, body: bytes) -> None:
    assert refusal(path, body)[0] == 400


def test_the_path_of_a_wrong_type_is_named() -> None:
    body = {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": {"a": 1}}]}
    assert refusal(CHAT, body)[1].startswith("messages[1].content: expected ")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(["user", "tool", "json", "m", "5m", "true"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("path", BODIED)
@given(data=st.data())
def test_any_json_is_a_request_or_a_fault(path: str, data: st.DataObject) -> None:
    known = list(operation(path).body.__struct_encode_fields__)
    body: Any = data.draw(st.dictionaries(st.sampled_from(known), VALUES) | VALUES)
    if "messages" in known and isinstance(body, dict) and data.draw(st.booleans()):
        names = ["role", "content", "images", "tool_calls", "tool_name", "thinking"]
        body["messages"] = data.draw(st.lists(st.dictionaries(st.sampled_from(names), VALUES), max_size=3))
    try:
        parse(path, json.dumps(body).encode())
    except Fault as fault:
        status, text = reply_to(path, fault)
        assert status == 400
        assert text


@given(body=st.binary().filter(lambda data: not data.strip().startswith(b"{")))
def test_bytes_that_are_no_object_are_a_fault(body: bytes) -> None:
    assert refusal(CHAT, body)[0] == 400
