"""A server that runs is asked all that its own OpenAPI document allows, and much that it does not: nothing breaks.

Each operation of the document, with data that keeps to it and data that does not. What names a model names one that
is there, or that a registry on loopback offers: else most requests would end at an unknown name, and some would
reach for other machines. In `make test` some examples, always the same ones; in `make fuzz` many, new ones.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.openai import DIALECT as OPENAI
from tests.serving import Served, serving
from tests.store.gguf_bytes import gguf
from tests.store.registry import registry

pytestmark = pytest.mark.timeout(240)

_PARAMETER: Final = re.compile(r"{(\w+):\w+}")
OPERATIONS: Final = sorted(
    (_PARAMETER.sub(r"{\1}", row.path), row.method) for dialect in (OLLAMA, OPENAI) for row in dialect.operations
)
ANSWERED: Final = {  # When asked rightly for what is there. The others want what cannot be drawn, such as a digest.
    *("/", "/api/version", "/api/tags", "/api/ps", "/api/show", "/api/chat", "/api/generate", "/api/embed"),
    *("/api/embeddings", "/api/pull", "/api/push", "/api/create", "/api/copy", "/v1/models", "/v1/models/{id}"),
    *("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/rerank"),
    *("/v1/responses", "/v1/responses/input_tokens", "/v1/responses/{id}", "/v1/responses/{id}/input_items"),
}
MODELS: Final = {"embed": "scripted-embed", "rerank": "scripted-rerank"}
MOVING: Final = {"/api/pull", "/api/push", "/api/create", "/api/copy"}
NAMES: Final = ("model", "name", "from", "source")
CHECKS: Final = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES: Final = settings(
    max_examples=12 if settings().derandomize else settings().max_examples, suppress_health_check=list(HealthCheck)
)
SAID: Final[list[Any]] = [{"role": "user", "content": "Hello"}]


class House(msgspec.Struct, frozen=True):
    """A server, its document, and what is there to be named: a model of a registry, a response, a content."""

    served: Served
    document: Any
    offered: str
    response: str
    content: str


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server with the scripted engine that has fetched a model, answered once and taken a content."""
    weights = gguf()
    with registry() as elsewhere, serving(tmp_path_factory.mktemp("house"), "--engine", "scripted") as served:
        elsewhere.put("library/tiny:latest", ("model", weights))
        offered = f"{elsewhere.host}/library/tiny"
        content = "sha256:" + hashlib.sha256(b"a content").hexdigest()
        with served.http() as client:
            pulled = client.post("/api/pull", json={"model": offered, "insecure": True, "stream": False})
            assert pulled.json() == {"status": "success"}
            said = client.post("/v1/responses", json={"model": "scripted", "input": "Hello"}).json()["id"]
            assert client.post(f"/api/blobs/{content}", content=b"a content").status_code == 201
        document = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
        document.config.update(base_url=served.url)
        yield House(served, document, offered, said, content)
        assert not served.log_has("Traceback")


def named(case: schemathesis.Case[Any], house: House) -> None:
    """Let what names something name what is there, as far as a name is what stands there."""
    if case.path_parameters and case.method != "DELETE":  # What is there is needed again.
        there = {"/v1/models/{id}": "scripted", "/api/blobs/{digest}": house.content}
        case.path_parameters.update(dict.fromkeys(case.path_parameters, there.get(case.path, house.response)))
    if not isinstance(case.body, dict):
        return
    if case.path not in MOVING:
        case.body["model"] = next((name for word, name in MODELS.items() if word in case.path), "scripted")
        return
    for name in NAMES:
        if isinstance(case.body.get(name), str):
            made = case.path == "/api/create" and name != "from"
            case.body[name] = "made" if made else house.offered
    if case.path == "/api/copy":
        case.body["destination"] = "copied"
    elif case.path != "/api/create":
        case.body["model"] = house.offered
        case.body["insecure"] = True


def near(case: schemathesis.Case[Any], house: House, number: int) -> None:
    """Let every other body be one that makes sense: drawn ones seldom do."""
    if not isinstance(case.body, dict) or number % 2:
        return
    if case.path == "/api/create":
        case.body = {"model": "made", "from": house.offered, "system": "Be brief."}
    elif "messages" in case.body:
        case.body = {"model": case.body["model"], "messages": SAID, "stream": number % 4 == 0}
    elif case.path.startswith("/v1/responses"):
        case.body = {"model": "scripted", "input": SAID if number % 4 else "Hello"}


def test_the_document_is_valid_and_tells_of_every_operation(house: House) -> None:
    house.document.validate()
    told = {
        (path, method.upper()) for path, methods in house.document.raw_schema["paths"].items() for method in methods
    }
    assert told == set(OPERATIONS)


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_what_keeps_to_the_document_is_answered_as_the_document_says(house: House, path: str, method: str) -> None:
    operation = house.document[path][method]
    seen: list[int] = []

    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    @EXAMPLES
    def keeps(case: schemathesis.Case[Any]) -> None:
        named(case, house)
        near(case, house, len(seen))
        response = case.call(timeout=30)
        seen.append(response.status_code)
        case.validate_response(response, checks=CHECKS)

    keeps()
    assert seen
    assert 200 in seen or path not in ANSWERED or method == "DELETE", seen


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_what_does_not_keep_to_it_is_refused_and_nothing_breaks(house: House, path: str, method: str) -> None:
    operation = house.document[path][method]

    @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    @EXAMPLES
    def keeps(case: schemathesis.Case[Any]) -> None:
        if path in MOVING and isinstance(case.body, dict):
            for name in NAMES:
                if isinstance(case.body.get(name), str) and case.body[name]:
                    case.body[name] = house.offered
            if isinstance(case.body.get("insecure", False), bool | None):
                case.body["insecure"] = True
        case.validate_response(case.call(timeout=30), checks=CHECKS)

    with suppress(Unsatisfiable):  # Nothing can be wrong where nothing is asked for.
        keeps()
