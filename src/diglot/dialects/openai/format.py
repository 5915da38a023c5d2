"""The format of an answer: `response_format` into what the core enforces.

A schema binds unless the client says `strict: false`; then it is a hint and never a reason to refuse.
Neighbours: `chat`, `core.schema`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from diglot.core.errors import InvalidField
from diglot.core.request import AnyJson, JsonSchema, OutputFormat, PlainText
from diglot.core.schema import check_schema, loosened


class TextResponseBody(msgspec.Struct, tag_field="type", tag="text"):
    """Plain text."""


class JsonObjectBody(msgspec.Struct, tag_field="type", tag="json_object"):
    """A JSON object; under `schema` where one is given, as other local servers read it."""

    schema: dict[str, Any] | None = None


class SchemaBody(msgspec.Struct):
    """A JSON schema with a name."""

    schema: dict[str, Any]
    name: str = "answer"
    strict: bool | None = None


class JsonSchemaBody(msgspec.Struct, tag_field="type", tag="json_schema"):
    """JSON under a schema."""

    json_schema: SchemaBody


FormatBody = TextResponseBody | JsonObjectBody | JsonSchemaBody


def format_of(body: FormatBody | None) -> OutputFormat:
    """Return the format. Raises InvalidField and UnsupportedField for a schema that cannot be enforced."""
    match body:
        case JsonObjectBody():
            if body.schema is None:
                return AnyJson()
            check_schema(body.schema, "response_format.schema")
            return JsonSchema(schema=body.schema)
        case JsonSchemaBody():
            return schema_format(body.json_schema, field="response_format.json_schema.schema")
        case _:
            return PlainText()


def schema_format(body: SchemaBody, *, field: str) -> OutputFormat:
    """Return the format of a schema, which stands in `field`. Raises as `format_of` does."""
    if body.strict is not False:
        check_schema(body.schema, field)
        return JsonSchema(schema=body.schema, name=body.name)
    try:
        return JsonSchema(schema=loosened(body.schema, field), name=body.name, strict=False)
    except InvalidField:  # A hint that makes no sense hints at JSON all the same.
        return AnyJson()
