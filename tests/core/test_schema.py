"""Schemas: what is taken, what is refused and by which path, and what is left out where it only describes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.schema import check_schema, loosened


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


TREE = {
    "$defs": {"node": {"type": "object", "properties": {"left": {"$ref": "#/$defs/node"}, "a/b~c": {"$ref": "#"}}}},
    "$ref": "#/$defs/node",
}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"a": {"type": ["string", "null"], "maxLength": 5}}, "required": ["a"]},
        {"anyOf": [{"const": 1}, {"enum": ["a", None]}, True]},
        {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
        {"type": "array", "prefixItems": [{}], "items": False, "minItems": 1, "maxItems": 1},
        {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "string"}}},
        {"properties": {"a": {"$ref": "#/properties/b~1c"}, "b/c": {"type": "null"}}},
        {"properties": {"a": {"$ref": "#/anyOf/1"}}, "anyOf": [{}, {"type": "integer"}]},
        {"properties": {"type": {"type": "string"}, "$ref": {"type": "string"}, "pattern": {"type": "integer"}}},
        {"type": "number", "minimum": 0.5, "exclusiveMaximum": True, "multipleOf": 0.1},
        {"type": "array", "uniqueItems": False},
        {"examples": [{"type": "foo"}], "default": {"$ref": 3}, "format": "email"},
        TREE,
        nested(60),
    ],
    ids=range(14),
)
def test_a_sound_schema_is_taken(schema: dict[str, Any]) -> None:
    check_schema(schema, "it")
    assert loosened(schema, "it") is schema


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"enum": "a"}, ".enum"),
        ({"required": "a"}, ".required"),
        ({"required": [1]}, ".required"),
        ({"properties": []}, ".properties"),
        ({"properties": {"a": 3}}, ".properties.a"),
        ({"items": {"items": "x"}}, ".items.items"),
        ({"anyOf": []}, ".anyOf"),
        ({"oneOf": [{}, {"enum": "x"}]}, ".oneOf[1].enum"),
        ({"minLength": -1}, ".minLength"),
        ({"maxItems": 1.5}, ".maxItems"),
        ({"minItems": 3, "maxItems": 2}, ".minItems"),
        ({"maximum": "9"}, ".maximum"),
        ({"pattern": 3}, ".pattern"),
        ({"pattern": "("}, ".pattern"),
        ({"patternProperties": {"(": {}}}, ".patternProperties.("),
        ({"$ref": 3}, ".$ref"),
        ({"$ref": "#/$defs/none"}, ".$ref"),
        ({"$ref": "#/anyOf/9", "anyOf": [{}]}, ".$ref"),
        ({"$ref": "#anchor"}, ".$ref"),
        ({"$ref": "https://example.com/a"}, ".$ref"),
        ({"properties": {"a": {"$ref": "#/required"}}, "required": []}, ".properties.a.$ref"),
        ({"$ref": "#"}, ""),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, ""),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}}, ""),
        (nested(65), ""),
        (nested(5_000), ""),
        ({"enum": [0] * 60_000}, ""),
    ],
    ids=range(27),
)
def test_a_broken_schema_is_refused_with_its_path(schema: dict[str, Any], path: str) -> None:
    for judge in (check_schema, loosened):
        with pytest.raises(InvalidField) as raised:
            judge(schema, "it")
        assert raised.value.field == f"it{path}"


@pytest.mark.parametrize(
    ("schema", "path", "meant"),
    [
        ({"type": "any"}, ".type", {}),
        ({"type": []}, ".type", {}),
        ({"type": [{}]}, ".type", {}),
        ({"type": ["string", "any"]}, ".type", {}),
        ({"type": "OBJECT"}, ".type", {"type": "object"}),
        ({"enum": []}, ".enum", {}),
        ({"oneOf": [{}, {"type": "x"}]}, ".oneOf[1].type", {"oneOf": [{}, {}]}),
        ({"properties": None, "required": None, "default": None}, ".required", {"default": None}),
        (
            {"properties": {"enum": {"type": "array", "items": None}, "type": {"enum": None, "const": None}}},
            ".properties.type.enum",
            {"properties": {"enum": {"type": "array"}, "type": {"const": None}}},
        ),
    ],
    ids=range(9),
)
def test_what_says_nothing_is_refused_where_it_binds_and_left_out_where_it_describes(
    schema: dict[str, Any], path: str, meant: dict[str, Any]
) -> None:
    with pytest.raises(InvalidField) as raised:
        check_schema(schema, "it")
    assert raised.value.field == f"it{path}"
    assert loosened(schema, "it") == meant


def values(count: int) -> list[str]:
    return [f"value {index}" for index in range(count)]


def test_more_values_than_an_engine_can_choose_between_are_refused_where_they_bind_and_left_out_elsewhere() -> None:
    schema = {"properties": {"a": {"type": "string", "enum": values(1001)}}}
    with pytest.raises(UnsupportedField) as raised:
        check_schema(schema, "it")
    assert raised.value.field == "it.properties.a.enum"
    assert loosened(schema, "it") == {"properties": {"a": {"type": "string"}}}
    assert loosened({"anyOf": [schema, {"enum": values(1001)}]}, "it")["anyOf"][1] == {}
    check_schema({"properties": {"a": {"enum": values(1000)}, "b": {"enum": values(1000)}}}, "it")


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"anyOf": [{"const": value} for value in values(1001)]}, ""),
        ({"anyOf": [{"enum": values(600)}, {"oneOf": [{"enum": values(400)}, True]}]}, ""),
        ({"anyOf": [{"$ref": "#/$defs/a"}] * 11, "$defs": {"a": {"enum": values(100)}}}, ""),
        (
            {
                "$ref": "#/$defs/12",
                "$defs": {"0": {}, **{str(n): {"anyOf": [{"$ref": f"#/$defs/{n - 1}"}] * 2} for n in range(1, 13)}},
            },
            "",
        ),
        ({"properties": {name: {} for name in values(257)}}, ".properties"),
        ({"properties": {name: {} for name in values(300)}, "required": values(43)}, ".properties"),
    ],
    ids=range(6),
)
def test_what_would_hold_an_engine_up_for_everybody_is_refused(schema: dict[str, Any], path: str) -> None:
    for judge in (check_schema, loosened):
        with pytest.raises(InvalidField) as raised:
            judge(schema, "it")
        assert raised.value.field == f"it{path}"


def test_many_properties_that_must_be_there_are_taken() -> None:
    names = values(3000)
    check_schema({"properties": {name: {} for name in names}, "required": names}, "it")


BEYOND = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "pattern": "(?=x)"},
        "b": {"type": "array", "uniqueItems": True, "items": {"not": {"const": 3}}},
    },
    "patternProperties": {"(?!x)": {}, "^y": {}},
}


def test_what_cannot_be_enforced_is_refused_with_its_path() -> None:
    for schema, path in (
        ({"properties": {"a": BEYOND["properties"]["a"]}}, "it.properties.a.pattern"),  # type: ignore[index]
        ({"not": {}}, "it.not"),
        ({"if": {}, "then": {}}, "it.if"),
        ({"patternProperties": {"(?!x)": {}}}, "it.patternProperties.(?!x)"),
    ):
        with pytest.raises(UnsupportedField) as raised:
            check_schema(schema, "it")
        assert raised.value.field == path


def test_what_cannot_be_enforced_is_left_out_where_a_schema_only_describes() -> None:
    assert loosened(BEYOND, "it") == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {}}},
        "patternProperties": {"^y": {}},
    }


_WORDS = ["type", "properties", "items", "anyOf", "allOf", "$ref", "$defs", "enum", "required", "not", "a"]
_VALUES = st.sampled_from(["object", "#", "#/$defs/a", "#/a", "("]) | st.integers() | st.none() | st.booleans()
_SCHEMAS = st.recursive(
    _VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(st.sampled_from(_WORDS), _SCHEMAS, max_size=5))
def test_what_is_loosened_is_enforceable(schema: dict[str, Any]) -> None:
    try:
        loose = loosened(schema, "it")
    except InvalidField:
        return
    check_schema(loose, "it")


def test_a_place_in_a_list_with_thousands_of_digits_points_to_nothing() -> None:
    with pytest.raises(InvalidField, match="points to nothing"):
        check_schema({"$ref": f"#/anyOf/{'9' * 5000}", "anyOf": [{}]}, "it")


def test_what_points_into_what_is_left_out_is_refused() -> None:
    with pytest.raises(InvalidField) as raised:
        loosened({"$ref": "#/not", "not": {}}, "it")
    assert raised.value.field == "it.$ref"
