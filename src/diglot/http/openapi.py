"""The OpenAPI document, made from the same tables that serve.

It says what the tables say and adds nothing. Neighbours: `dialects.operation` for the tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from diglot import __version__
from diglot.dialects.operation import Dialect, Operation

_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")


def openapi_document(dialects: Sequence[Dialect]) -> bytes:
    """Return the document as JSON."""
    types = [kind for dialect in dialects for row in dialect.operations for kind in (row.body, row.reply) if kind]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    by_type = dict(zip(map(id, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for dialect in dialects:
        for row in dialect.operations:
            path = _PARAMETER.sub(r"{\1}", row.path)
            paths.setdefault(path, {})[row.method.lower()] = _described(row, dialect.name, by_type)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Diglot",
                "version": __version__,
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "paths": paths,
            "components": {"schemas": components},
        }
    )


def _described(row: Operation, tag: str, by_type: dict[int, Any]) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "The answer."}
    content: dict[str, Any] = {}
    if row.reply is not None:
        content["application/json"] = {"schema": by_type[id(row.reply)]}
    if row.stream is not None or row.steps is not None:
        content[row.stream_type.partition(";")[0]] = {}
    if content:
        good["content"] = content
    described: dict[str, Any] = {
        "tags": [tag],
        "summary": row.summary,
        "responses": {
            "200": good,
            "4XX": {"description": "The request is wrong."},
            "5XX": {"description": "The server cannot."},
        },
    }
    parameters = _PARAMETER.findall(row.path)
    if parameters:
        described["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in parameters
        ]
    if row.upload:
        described["requestBody"] = {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    if row.body is not None:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": by_type[id(row.body)]}},
        }
    return described
