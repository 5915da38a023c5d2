"""The OpenAPI document: complete. That it is valid, and true of a server, is shown in `tests/fuzz`."""

import json

from diglot.http.openapi import openapi_document
from tests.http.world import TINY


def test_the_document_tells_of_every_operation_with_its_parameters_and_bodies() -> None:
    document = json.loads(openapi_document([TINY]))
    told = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert told == {(row.method, row.path.replace(":path}", "}")) for row in TINY.operations}
    say = document["paths"]["/say"]["post"]
    assert say["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/SayBody"}
    assert "SayBody" in document["components"]["schemas"]
    (parameter,) = document["paths"]["/models/{id}"]["get"]["parameters"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("id", "path", True)
