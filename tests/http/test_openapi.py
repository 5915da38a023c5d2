"""The OpenAPI document: valid, complete, and true of the server that gives it."""

import asyncio
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from diglot.app import build
from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.openai import DIALECT as OPENAI
from diglot.http.openapi import openapi_document
from diglot.http.protocol import BoundedProtocol
from diglot.settings import load_settings
from tests.http.world import TINY

_PARAMETER = re.compile(r"{(\w+):\w+}")
OUTGOING = {"/api/pull", "/api/push", "/api/create"}  # They reach for other machines, which a test does not.
OPERATIONS = sorted(
    (_PARAMETER.sub(r"{\1}", row.path), row.method)
    for dialect in (OLLAMA, OPENAI)
    for row in dialect.operations
    if row.path not in OUTGOING
)
ANSWERED = {  # With a model that is there and a sensible body. The others want what only an earlier request makes.
    *("/", "/api/version", "/api/tags", "/api/ps", "/api/show", "/api/chat", "/api/generate", "/api/embed"),
    *("/api/embeddings", "/v1/models", "/v1/models/{id}", "/v1/chat/completions", "/v1/completions", "/v1/embeddings"),
    "/v1/rerank",
}
MODELS = {"embed": "scripted-embed", "rerank": "scripted-rerank"}
BOUNDED = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the real application with the scripted engine, and say where."""
    home: Path = tmp_path_factory.mktemp("home")
    application = build(load_settings({"engine": "scripted", "home": home}, {}))
    config = uvicorn.Config(application, http=BoundedProtocol, ws="none", log_config=None, access_log=False)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def api(url: str) -> Any:
    """The document as a client gets it."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    schema.config.update(base_url=url)
    return schema


def test_the_document_is_valid(api: Any) -> None:
    api.validate()


def test_the_document_tells_of_every_operation_with_its_parameters_and_bodies() -> None:
    document = json.loads(openapi_document([TINY]))
    told = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert told == {(row.method, row.path.replace(":path}", "}")) for row in TINY.operations}
    say = document["paths"]["/say"]["post"]
    assert say["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/SayBody"}
    assert "SayBody" in document["components"]["schemas"]
    (parameter,) = document["paths"]["/models/{id}"]["get"]["parameters"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("id", "path", True)


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_the_server_keeps_to_the_document_when_asked_rightly(api: Any, path: str, method: str) -> None:
    operation = api[path][method]
    model = next((name for word, name in MODELS.items() if word in path), "scripted")
    seen: list[int] = []

    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    @BOUNDED
    def keeps(case: schemathesis.Case[Any]) -> None:
        if isinstance(case.body, dict):
            case.body["model"] = model
            if "messages" in case.body and len(seen) % 2:  # Else nearly none of them makes sense.
                case.body = {"model": "scripted", "messages": [{"role": "user", "content": "Hello"}]}
        if path == "/v1/models/{id}":
            case.path_parameters["id"] = "scripted"
        response = case.call(timeout=20)
        seen.append(response.status_code)
        case.validate_response(response, checks=CHECKS)

    keeps()
    assert 200 in seen or path not in ANSWERED, seen


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_the_server_refuses_and_never_breaks_when_asked_wrongly(api: Any, path: str, method: str) -> None:
    operation = api[path][method]

    @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    @BOUNDED
    def keeps(case: schemathesis.Case[Any]) -> None:
        case.validate_response(case.call(timeout=20), checks=CHECKS)

    with suppress(Unsatisfiable):  # Nothing can be wrong where nothing is asked for.
        keeps()
