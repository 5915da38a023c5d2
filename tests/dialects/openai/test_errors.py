"""Faults in OpenAI's form: every kind has its status and code, whole and in a stream."""

import json
from typing import Any, get_args

import pytest

from diglot.core import errors
from diglot.core.errors import AnyFault
from diglot.dialects.openai.errors import error_data, render_error

FAULTS: list[tuple[AnyFault, int, str]] = [
    (errors.MalformedBody("no"), 400, "malformed_body"),
    (errors.InvalidField("n", "no"), 400, "invalid_value"),
    (errors.UnsupportedField("n", "no"), 400, "unsupported_parameter"),
    (errors.BodyTooLarge(9), 413, "request_too_large"),
    (errors.HeadTooLarge(9), 431, "head_too_large"),
    (errors.TooSlow("head", seconds=9), 408, "request_timeout"),
    (errors.UnknownCoding("snappy", known="gzip"), 415, "unknown_coding"),
    (errors.TooMany("input", count=2049, limit=2048), 413, "too_many_inputs"),
    (errors.TooMany("tools", count=9, limit=8, kind="tools"), 413, "too_many_tools"),
    (errors.UnknownPath("/v1/no"), 404, "unknown_url"),
    (errors.WrongMethod("PUT", path="/v1/models", allowed=("GET", "HEAD")), 405, "method_not_allowed"),
    (errors.ContextExceeded(tokens=9, window=8), 400, "context_length_exceeded"),
    (errors.BrokenCompaction("no"), 400, "invalid_compaction_item"),
    (errors.NothingGained(before=1, after=2), 400, "compaction_gains_nothing"),
    (errors.UnknownResponse("resp_1", field="previous_response_id"), 400, "previous_response_not_found"),
    (errors.Forbidden("no"), 403, "forbidden"),
    (errors.KeyMissing(), 401, "invalid_api_key"),
    (errors.ModelUnnamed(), 400, "missing_required_parameter"),
    (errors.ModelNotFound("nope"), 404, "model_not_found"),
    (errors.ModelIncapable("tiny", ability="vision"), 400, "model_incapable"),
    (errors.NoModel(ability="embedding"), 503, "no_model"),
    (errors.ModelBroken("tiny", reason="no"), 500, "model_broken"),
    (errors.Busy(retry_after=1.2), 503, "server_busy"),
    (errors.LoadFailed("tiny", reason="no"), 500, "model_load_failed"),
    (errors.EngineCrashed("tiny"), 500, "engine_crashed"),
    (errors.EngineFailed(id="e1"), 500, "engine_failed"),
    (errors.CompactionFailed("no"), 500, "compaction_failed"),
    (errors.ResponsesUnavailable("no"), 503, "responses_unavailable"),
    (errors.UpstreamFailed("there", reason="no"), 502, "upstream_failed"),
    (errors.Cancelled(), 503, "cancelled"),
    (errors.WrongDigest(expected="sha256:a", found="sha256:b"), 400, "wrong_digest"),
    (errors.ModelForeign("tiny"), 403, "model_foreign"),
    (errors.NotOffered("tiny", where="there"), 404, "model_not_offered"),
    (errors.NoSpace(needed=2, free=1), 507, "no_space"),
    (errors.AccessRefused("there", reason="no"), 502, "access_refused"),
]


def shown(fault: AnyFault) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(render_error(fault).body)["error"]
    return error


@pytest.mark.parametrize(("fault", "status", "code"), FAULTS, ids=[code for _, _, code in FAULTS])
def test_a_fault_has_its_status_and_code(fault: AnyFault, status: int, code: str) -> None:
    rendered = render_error(fault)
    body = json.loads(rendered.body)
    assert rendered.status == status
    assert body["error"].keys() == {"message", "type", "param", "code"}
    assert body["error"]["code"] == code
    assert body["error"]["type"] == ("server_error" if status >= 500 else "invalid_request_error")
    assert json.loads(error_data(fault)) == body


def test_no_fault_is_left_out() -> None:
    assert {type(fault) for fault, _, _ in FAULTS} == set(get_args(AnyFault))


def test_an_unknown_model_is_named_and_said_to_be_not_downloaded() -> None:
    assert shown(errors.ModelNotFound("org/nope:7b"))["message"] == (
        "model 'org/nope:7b' is not among the downloaded models"
    )


def test_a_window_that_is_exceeded_names_both_numbers() -> None:
    message = shown(errors.ContextExceeded(tokens=9000, window=8192))["message"]
    assert "9000" in message
    assert "8192" in message


def test_too_many_inputs_name_the_limit() -> None:
    assert "2048" in shown(errors.TooMany("input", count=3000, limit=2048))["message"]


def test_without_an_embedding_model_the_server_says_that_none_is_loaded() -> None:
    assert shown(errors.NoModel(ability="embedding"))["message"] == "no embedding model loaded"


def test_a_busy_server_says_when_to_come_back() -> None:
    assert render_error(errors.Busy(retry_after=1.2)).headers["Retry-After"] == "2"
    assert render_error(errors.Busy(retry_after=0)).headers["Retry-After"] == "1"


def test_a_wrong_method_says_which_are_right() -> None:
    fault = errors.WrongMethod("PUT", path="/v1/models", allowed=("GET", "HEAD"))
    assert render_error(fault).headers["Allow"] == "GET, HEAD"


def test_a_failure_names_its_line_in_the_log() -> None:
    assert "e1" in shown(errors.EngineFailed(id="e1"))["message"]


def test_a_stored_response_that_is_unknown_is_not_found() -> None:
    assert render_error(errors.UnknownResponse("resp_1")).status == 404
