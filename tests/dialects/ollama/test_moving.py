"""Models on their way and what is changed on disk, in Ollama's words."""

import json
from typing import Any

import ollama
import pytest

from diglot.core.digest import Digest
from diglot.core.errors import (
    AccessRefused,
    AnyFault,
    InvalidField,
    ModelForeign,
    ModelNotFound,
    NoSpace,
    NotOffered,
    UpstreamFailed,
    WrongDigest,
)
from diglot.core.events import Step
from diglot.core.request import CheckBlob, CopyModel, DeleteModel, Pull, Push, StoreBlob
from diglot.dialects.ollama import DIALECT
from diglot.dialects.ollama.holdings import CHECK_BLOB, STORE_BLOB
from diglot.dialects.operation import Parsed, Wire
from tests.dialects.ollama.asking import NOW, STAMP, operation, parse, refusal, reply_to

PULL, PUSH, COPY, DELETE = "/api/pull", "/api/push", "/api/copy", "/api/delete"
DIGEST = Digest("0123456789ab" + "c" * 52)
PULLED = [
    Step("find"),
    Step("receive", DIGEST, total=10),
    Step("receive", DIGEST, total=10, completed=10),
    Step("verify"),
    Step("write"),
    Step("tidy"),
    Step("done"),
]
PUSHED = [Step("find"), Step("send", DIGEST, total=10, completed=5), Step("write"), Step("done")]


def lines(path: str, steps: list[Step], *, fault: AnyFault | None = None) -> list[dict[str, Any]]:
    make = operation(path).steps
    assert make is not None
    renderer = make(None, STAMP)
    data = b"".join(renderer.feed(step, NOW) for step in steps) + renderer.beat()
    data += renderer.close() if fault is None else renderer.fail(fault)
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def test_a_pull_is_told_line_by_line() -> None:
    told = lines(PULL, PULLED)
    assert [line["status"] for line in told] == [
        "pulling manifest",
        "pulling 0123456789ab",
        "pulling 0123456789ab",
        "verifying sha256 digest",
        "writing manifest",
        "removing unused layers",
        "success",
    ]
    assert told[2] == {"status": "pulling 0123456789ab", "digest": str(DIGEST), "total": 10, "completed": 10}
    assert told[-1] == {"status": "success"}
    assert [ollama.ProgressResponse(**line).status for line in told] == [line["status"] for line in told]


def test_a_push_is_told_line_by_line() -> None:
    told = [line["status"] for line in lines(PUSH, PUSHED)]
    assert told == ["retrieving manifest", "pushing 0123456789ab", "pushing manifest", "success"]


def test_what_has_no_digest_is_told_by_its_name() -> None:
    (line,) = lines(PULL, [Step("receive", total=3, completed=1, subject="smollm2:135m")])
    assert line == {"status": "pulling smollm2:135m", "total": 3, "completed": 1}


def test_a_broken_pull_ends_in_an_error() -> None:
    told = lines(PULL, PULLED[:1], fault=NotOffered("x", where="there"))
    assert told == [{"status": "pulling manifest"}, {"error": "pull model manifest: file does not exist"}]


@pytest.mark.parametrize("path", [PULL, PUSH])
def test_the_whole_answer_is_the_last_line(path: str) -> None:
    reply = operation(path).whole(None, STAMP, None)
    assert (reply.status, json.loads(reply.body)) == (200, {"status": "success"})


@pytest.mark.parametrize(("path", "kind"), [(PULL, Pull), (PUSH, Push)])
@pytest.mark.shows("POST /api/pull", "model", "name", "stream", "insecure")
@pytest.mark.shows("POST /api/push", "model", "name", "stream", "insecure")
def test_a_request_names_a_model_in_one_of_two_fields_and_streams_unless_told_otherwise(
    path: str, kind: type[Pull | Push]
) -> None:
    empty = {"username": "", "password": ""}
    assert parse(path, {"model": "x:1"}) == Parsed(kind("x:1"), stream=True)
    assert parse(path, {"model": "", "name": "x", "insecure": True, **empty}) == Parsed(
        kind("x", insecure=True), stream=True
    )
    assert parse(path, {"model": "x", "stream": None}).stream
    assert not parse(path, {"model": "x", "stream": False}).stream


@pytest.mark.parametrize("name", ["starter", "hf.co/me/it:Q4_K_M", "https://x.example/a/b/c/d/it.gguf"])
def test_a_pull_takes_other_sources(name: str) -> None:
    assert parse(PULL, {"model": name}).request == Pull(name)


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        (PULL, {"model": ""}, "invalid model name"),
        (PULL, {}, "invalid model name"),
        (PULL, {"name": "a/b/c/d"}, "invalid model name: it has more than three parts between slashes"),
        (PUSH, {"name": ""}, "model is required"),
        (PUSH, {"name": "../x"}, "invalid model name: not a valid namespace"),
        (COPY, {"source": "", "destination": "x"}, 'source "" is invalid'),
        (COPY, {"source": "x", "destination": "a b"}, 'destination "a b" is invalid'),
        (COPY, {"source": "x"}, 'destination "" is invalid'),
        (DELETE, {"name": "a b"}, 'name "a b" is invalid'),
        (DELETE, {}, 'name "" is invalid'),
    ],
)
def test_a_name_that_is_none_is_refused_in_the_words_of_its_endpoint(
    path: str, body: dict[str, Any], text: str
) -> None:
    assert refusal(path, body) == (400, text)


@pytest.mark.parametrize("path", [PULL, PUSH])
@pytest.mark.parametrize("field", ["username", "password"])
@pytest.mark.shows("POST /api/pull", "username", "password")
@pytest.mark.shows("POST /api/push", "username", "password")
def test_accounts_are_refused(path: str, field: str) -> None:
    status, text = refusal(path, {"model": "x", field: "y"})
    assert status == 400
    assert text.startswith(f"{field}: registries are told who asks by the key of this machine")


@pytest.mark.shows("POST /api/copy", "source", "destination")
def test_a_copy_names_both() -> None:
    assert parse(COPY, {"source": "a", "destination": "b"}).request == CopyModel(source="a", target="b")


@pytest.mark.shows("DELETE /api/delete", "model", "name")
def test_a_removal_names_one_in_one_of_two_fields() -> None:
    assert parse(DELETE, {"model": "a"}).request == DeleteModel("a")
    assert parse(DELETE, {"model": "", "name": "b"}).request == DeleteModel("b")


@pytest.mark.parametrize("path", [COPY, DELETE])
def test_what_was_done_has_no_body(path: str) -> None:
    reply = operation(path).whole(None, STAMP, None)
    assert (reply.status, reply.body) == (200, b"")


@pytest.mark.parametrize(
    ("path", "fault", "status", "text"),
    [
        (COPY, ModelNotFound("x"), 404, 'model "x" not found'),
        (DELETE, ModelNotFound("x"), 404, "model 'x' not found"),
        (DELETE, ModelForeign("x"), 403, "model 'x' belongs to another program and is only read here"),
        (PULL, NotOffered("x", where="there"), 500, "pull model manifest: file does not exist"),
        (
            PULL,
            NotOffered("x", where="h", reason="it is no GGUF"),
            500,
            "the model 'x' of h cannot be used: it is no GGUF",
        ),
        (PULL, AccessRefused("h", reason="no"), 500, "h refuses access: no"),
        (PULL, UpstreamFailed("h", reason="no"), 500, "the remote server h failed: no"),
        (PULL, NoSpace(needed=2, free=1), 507, "the disk is too full: 2 bytes are to be written and 1 are free"),
        (
            PULL,
            WrongDigest(expected="sha256:a", found="sha256:b"),
            500,
            "digest mismatch, file must be downloaded again: want sha256:a, got sha256:b",
        ),
    ],
)
def test_a_fault_has_the_words_of_its_endpoint(path: str, fault: AnyFault, status: int, text: str) -> None:
    assert reply_to(path, fault) == (status, text)


def blob(path: str, **headers: str) -> Wire:
    return Wire(path={"digest": path}, headers={key.replace("_", "-"): value for key, value in headers.items()})


@pytest.mark.parametrize(
    "form", [str(DIGEST), str(DIGEST).replace(":", "-"), str(DIGEST).upper().replace("SHA", "sha")]
)
def test_a_content_is_named_by_its_digest(form: str) -> None:
    assert CHECK_BLOB.parse(blob(form)).request == CheckBlob(DIGEST)
    assert STORE_BLOB.parse(blob(form, content_length="7")).request == StoreBlob(DIGEST, size=7)
    assert STORE_BLOB.parse(blob(form, content_length="9" * 99)).request == StoreBlob(DIGEST)


@pytest.mark.parametrize("form", ["", "..", "../../etc/passwd", "sha256:", "sha256:" + "g" * 64, "sha256:" + "a" * 63])
def test_what_is_no_digest_is_refused(form: str) -> None:
    for row in (CHECK_BLOB, STORE_BLOB):
        with pytest.raises(InvalidField) as raised:
            row.parse(blob(form))
        assert row.error is not None
        reply = row.error(raised.value)
        assert (reply.status, json.loads(reply.body)["error"]) == (400, "invalid digest format")


def test_contents_are_answered_with_a_status() -> None:
    assert [CHECK_BLOB.whole(None, STAMP, there).status for there in (True, False)] == [200, 404]
    assert [STORE_BLOB.whole(None, STAMP, new).status for new in (True, False)] == [201, 200]
    assert STORE_BLOB.error is not None
    reply = STORE_BLOB.error(WrongDigest(expected="sha256:a", found="sha256:b"))
    assert (reply.status, json.loads(reply.body)) == (
        400,
        {"error": 'digest mismatch, expected "sha256:a", got "sha256:b"'},
    )


def test_the_table_has_a_row_for_each() -> None:
    rows = {(row.method, row.path) for row in DIALECT.operations}
    assert {("POST", PULL), ("POST", PUSH), ("POST", COPY), ("DELETE", DELETE)} <= rows
    assert {("HEAD", "/api/blobs/{digest}"), ("POST", "/api/blobs/{digest}")} <= rows
