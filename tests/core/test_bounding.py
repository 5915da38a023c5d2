"""A bounded schema ends, and allows nothing that the given one does not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from diglot.core.bounding import MAX_ARRAY, MAX_STRING, bounded


def field(schema: Any, **more: Any) -> Any:
    """Return what a schema becomes as a property of an object."""
    return bounded({"type": "object", "properties": {"x": schema}}, **more)["properties"]["x"]


def test_strings_and_lists_get_limits() -> None:
    limited = field({"type": "array", "items": {"type": "string"}})
    assert limited == {"type": "array", "items": {"type": "string", "maxLength": MAX_STRING}, "maxItems": MAX_ARRAY}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "maxLength": 9000},
        {"type": "string", "enum": ["a"]},
        {"type": "string", "pattern": "^a+$"},
        {"type": "string", "format": "date"},
        {"type": "array", "items": {"type": "integer"}, "maxItems": 900},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}},
        {"const": {"type": "string"}},
        {"enum": [{"type": "array"}, "x"]},
    ],
)
def test_what_a_client_bounded_stays_as_it_is(schema: Any) -> None:
    assert field(schema) == schema


def test_values_that_are_data_are_not_taken_for_schemas() -> None:
    data = {"type": "object", "properties": {}, "default": {"type": "string"}, "examples": [{"type": "array"}]}
    assert {key: bounded(data)[key] for key in ("default", "examples")} == {
        "default": {"type": "string"},
        "examples": [{"type": "array"}],
    }


def test_a_property_may_have_the_name_of_a_keyword() -> None:
    names = ("type", "enum", "const", "properties", "default", "$ref")
    made = bounded({"type": "object", "properties": {name: {"type": "string"} for name in names}})
    assert all(made["properties"][name] == {"type": "string", "maxLength": MAX_STRING} for name in names)


@pytest.mark.parametrize(
    ("schema", "limit"),
    [
        ({"type": "string", "minLength": 5000}, {"maxLength": 5000}),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 70}, {"maxItems": 70}),
    ],
)
def test_a_limit_is_never_below_what_is_asked_for_at_least(schema: Any, limit: Any) -> None:
    assert field(schema) == schema | limit


def test_an_object_that_does_not_say_is_closed() -> None:
    assert bounded({"type": "object", "properties": {}})["additionalProperties"] is False


def test_parts_of_an_all_of_are_not_closed_against_each_other() -> None:
    parts = [{"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]} for name in "ab"]
    assert Draft202012Validator(bounded({"allOf": parts})).is_valid({"a": 1, "b": 2})


@pytest.mark.parametrize("anything", [{}, True, {"description": "anything"}])
def test_a_schema_that_says_nothing_takes_values_that_end(anything: Any) -> None:
    limited = Draft202012Validator(field(anything))
    assert all(limited.is_valid(value) for value in (1, "x", None, [1, "x"], {"a": 1}))
    assert not limited.is_valid("x" * (MAX_STRING + 1))
    assert not limited.is_valid({"a": {"b": {}}})


def test_an_open_object_takes_plain_values() -> None:
    limited = Draft202012Validator(field({"type": "object"}))
    assert limited.is_valid({"PATH": "/bin", "n": 1})
    assert not limited.is_valid({"a": {"b": 1}})


def test_a_tuple_has_as_many_values_as_it_names() -> None:
    pair = [{"type": "integer"}, {"type": "string", "maxLength": 3}]
    assert field({"type": "array", "prefixItems": pair, "items": False}) == {
        "type": "array",
        "prefixItems": pair,
        "maxItems": 2,
    }
    assert field({"type": "array", "items": pair}) == {"type": "array", "items": pair, "maxItems": 2}


def test_definitions_and_branches_are_bounded_too() -> None:
    text = {"type": "string"}
    made = bounded({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [text, {"type": ["string", "null"]}]}}})
    assert [each["maxLength"] for each in made["$defs"]["a"]["anyOf"]] == [MAX_STRING, MAX_STRING]


def test_the_given_schema_is_left_alone() -> None:
    given_schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    bounded(given_schema)
    assert given_schema == {"type": "object", "properties": {"a": {"type": "string"}}}


def longest(schema: Any) -> int:
    """Return how many characters the strings of the largest value have."""
    if schema.get("type") == "string":
        return int(schema["maxLength"])
    if schema.get("type") == "array":
        return int(schema["maxItems"]) * longest(schema["items"])
    branches = max((longest(each) for each in schema.get("anyOf", ())), default=0)
    return branches + sum(longest(each) for each in schema.get("properties", {}).values())


leaves = st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": "boolean"}])
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda each: {"anyOf": each}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda properties: {"type": "object", "properties": properties},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        ),
    ),
    max_leaves=8,
)


@given(schemas, st.integers(64, 2048))
def test_the_longest_value_fits_the_tokens_there_are(schema: Any, tokens: int) -> None:
    made = bounded(schema, tokens=tokens)
    assert longest(made) <= max(2 * tokens, longest(bounded(schema, tokens=1)))


@given(schemas, st.one_of(st.none(), st.integers(1, 2048)))
def test_bounding_twice_is_bounding_once(schema: Any, tokens: int | None) -> None:
    once = bounded(schema, tokens=tokens)
    assert bounded(once, tokens=tokens) == once


scalars = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["", "a", "bcd"]))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=6,
)
looser = st.one_of(
    schemas,
    st.sampled_from(
        [
            {},
            {"type": "object"},
            {"type": "array"},
            {"type": ["string", "null"], "minLength": 2},
            {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
            {"type": "array", "prefixItems": [{"type": "integer"}], "items": False},
            {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
            {"type": "object", "properties": {"a": True}, "required": ["a"]},
            {"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {}}}]},
        ]
    ),
)


@given(looser, values)
def test_what_the_bounded_schema_allows_the_given_one_allows(schema: Any, value: Any) -> None:
    made = bounded(schema)
    Draft202012Validator.check_schema(made)
    if Draft202012Validator(made).is_valid(value):
        assert Draft202012Validator(schema).is_valid(value)
