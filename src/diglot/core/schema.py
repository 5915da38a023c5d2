"""JSON schemas as clients write them: checked before an engine sees them.

A grammar engine that is given a schema it does not understand aborts, loops or takes all memory, and says
so late and in its own words. Here a schema is measured, walked once and judged; what is wrong is named by
its path. This is deliberately no validator of values, and it does not judge what a schema means.
Neighbours: dialects call it, `core.patterns` knows the regular expressions.

Invariant: work is bounded by the limits below, whatever the schema; nothing is resolved outside it.
Source: JSON Schema 2020-12, and draft 7 where it differs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.patterns import InvalidPattern, UnsupportedPattern, check_pattern
from diglot.core.request import Schema

MAX_DEPTH: Final = 64
MAX_VALUES: Final = 50_000
MAX_ALTERNATIVES: Final = 1000
"""Values, or shapes of values, between which one place has to choose: llama.cpp takes 4 s for these, and 100 s for 5,000
(measured), in which nobody else gets a token."""
MAX_OPTIONAL: Final = 256
"""Properties of an object that may be left out: their grammar grows with the cube (measured: 7 s for 800)."""

_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = (
    *("items", "additionalProperties", "additionalItems", "not", "if", "then", "else"),
    *("contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"),
)
_RANGES = (("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties"))
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_DATA = frozenset({"const", "default", "examples"})
# What no grammar of a context-free kind can hold a model to.
_BEYOND = (
    *("not", "if", "contains", "uniqueItems", "propertyNames", "dependentSchemas", "dependentRequired"),
    *("dependencies", "unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef"),
)
_JOINS = ("anyOf", "oneOf", "allOf")
_PLACE: Final = re.compile(r"\d{1,9}", re.ASCII)
# By these a node is told at one look to hold nothing of a kind: most hold a type and a description.
_INNER: Final = frozenset({*_BY_NAME, *_LISTS, *_SINGLE})
_LINKS: Final = frozenset({"$ref", *_JOINS})
_DOUBTFUL: Final = frozenset({"pattern", "patternProperties", "enum", *_BEYOND})
_COUNTED: Final = frozenset({*_NUMBERS, *(key for pair in _RANGES for key in pair)})


def check_schema(schema: Schema, field: str) -> None:
    """Raise InvalidField or UnsupportedField, with a path that begins with `field`, unless `schema` can be enforced."""
    for finding in _Walk(schema, field).findings():
        raise UnsupportedField(finding.path, finding.reason)


def loosened(schema: Schema, field: str) -> Schema:
    """Return the schema without what cannot be enforced: for tools, whose schemas describe rather than bind.

    What says nothing is left out as well: typed clients write null where they mean nothing, and people write types
    that JSON has not (`any`). Raises InvalidField as `check_schema` does.
    """
    _measure(schema, field)
    meant: Schema = _meant(schema)
    schema = schema if meant == schema else meant
    beyond = {(finding.node, finding.keyword) for finding in _Walk(schema, field).findings()}
    if not beyond:
        return schema
    loose: Schema = _without(schema, beyond)
    check_schema(loose, field)  # Something may have pointed into what was left out.
    return loose


def _meant(node: Any) -> Any:
    """Return a schema without keywords that say nothing. As deep as it is measured to be."""
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if (value is None and key not in _DATA) or (key == "enum" and value == []):
            continue
        if key == "type":
            if (kinds := _kinds(value)) is not None:
                out[key] = kinds
        elif key in _BY_NAME and isinstance(value, dict):
            out[key] = {name: _meant(each) for name, each in value.items()}
        elif isinstance(value, list) and (key in _LISTS or key == "items"):
            out[key] = [_meant(each) for each in value]
        else:
            out[key] = _meant(value) if key in _SINGLE else value
    return out


def _kinds(value: Any) -> str | list[str] | None:
    """Return the value of `type` in small letters, None where JSON has no such type."""
    names = [name.lower() if isinstance(name, str) else "" for name in (value if isinstance(value, list) else [value])]
    if not names or not _TYPES.issuperset(names):
        return None
    return names if isinstance(value, list) else names[0]


def _without(value: Any, beyond: set[tuple[int, str]]) -> Any:
    if isinstance(value, list):
        return [_without(each, beyond) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _without(each, beyond) for key, each in value.items() if (id(value), key) not in beyond}


class _Finding:
    """Something that cannot be enforced: keyword `keyword` of the mapping whose identity is `node`."""

    def __init__(self, node: Schema, keyword: str, *, path: str, reason: str) -> None:
        self.node = id(node)
        self.keyword = keyword
        self.path = f"{path}.{keyword}"
        self.reason = reason


class _Walk:
    """One pass over a schema, without recursion."""

    def __init__(self, schema: Schema, field: str) -> None:
        self.root = schema
        self.field = field
        self.todo: list[tuple[Any, str]] = [(schema, field)]
        self.seen: set[int] = set()

    def findings(self) -> Iterator[_Finding]:
        _measure(self.root, self.field)
        joins: dict[int, list[Any]] = {}
        while self.todo:
            node, path = self.todo.pop()
            if isinstance(node, bool) or id(node) in self.seen:
                continue
            if not isinstance(node, dict):
                raise InvalidField(path, "a schema must be an object or a boolean")
            self.seen.add(id(node))
            _check_words(node, path)
            words = node.keys()
            if not words.isdisjoint(_COUNTED):
                _check_numbers(node, path)
            if not words.isdisjoint(_INNER):
                self.descend(node, path)
                _check_optional(node, path)
            if not words.isdisjoint(_LINKS):
                joins[id(node)] = [*self.target(node, path), *(each for key in _JOINS for each in node.get(key, ()))]
            if not words.isdisjoint(_DOUBTFUL):
                yield from _beyond(node, path)
        _check_joins(joins, self.field)

    def descend(self, node: Schema, path: str) -> None:
        """Put the schemas inside `node` on the list."""
        for key in _BY_NAME:
            if key in node:
                inner = node[key]
                if not isinstance(inner, dict):
                    raise InvalidField(f"{path}.{key}", "must be an object")
                self.todo.extend((each, f"{path}.{key}.{name}") for name, each in inner.items())
        for key in _LISTS:
            if key in node:
                inner = node[key]
                if not isinstance(inner, list) or not inner:
                    raise InvalidField(f"{path}.{key}", "must be a list with at least one schema")
                self.todo.extend((each, f"{path}.{key}[{index}]") for index, each in enumerate(inner))
        for key in _SINGLE:
            if key in node:
                inner = node[key]
                if key == "items" and isinstance(inner, list):  # Draft 7 wrote tuples so.
                    self.todo.extend((each, f"{path}.{key}[{index}]") for index, each in enumerate(inner))
                else:
                    self.todo.append((inner, f"{path}.{key}"))

    def target(self, node: Schema, path: str) -> list[Any]:
        """Return what `$ref` points to, as a list of none or one, and see to it that it is walked too."""
        if "$ref" not in node:
            return []
        reference = node["$ref"]
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise InvalidField(f"{path}.$ref", "must point into this schema, as in #/$defs/name")
        found: Any = self.root
        for step in unquote(reference[2:]).split("/") if reference != "#" else ():
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and _PLACE.fullmatch(name) and int(name) < len(found):
                found = found[int(name)]
            else:
                raise InvalidField(f"{path}.$ref", "points to nothing in this schema")
        self.todo.append((found, f"{path}.$ref"))
        return [found]


def values_of(schema: Schema) -> int:
    """Return how many values a schema holds that was checked; lists of allowed values count as well."""
    return sum(map(len, _levels(schema)))


def _measure(schema: Schema, field: str) -> None:
    """Bound the number of values and their depth."""
    count = 0
    for depth, level in enumerate(_levels(schema)):
        if depth > MAX_DEPTH:
            raise InvalidField(field, f"the schema is nested deeper than {MAX_DEPTH}")
        count += len(level)
        if count > MAX_VALUES:
            raise InvalidField(field, f"the schema holds more than {MAX_VALUES} values")


def _levels(schema: Schema) -> Iterator[list[Any]]:
    """Yield the values at each depth."""
    level: list[Any] = [schema]
    while level:
        yield level
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
        level = inner


def _check_words(node: Schema, path: str) -> None:
    """Check the values of the keywords that hold no schema."""
    if "type" in node:
        kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
        if not kinds or not all(isinstance(kind, str) and kind in _TYPES for kind in kinds):
            raise InvalidField(f"{path}.type", f"must be one of {', '.join(sorted(_TYPES))}")
    if "enum" in node and not (isinstance(node["enum"], list) and node["enum"]):
        raise InvalidField(f"{path}.enum", "must be a list with at least one value")
    required = node.get("required", [])
    # Draft 3 had a boolean here, which some tools still write; it binds nothing.
    if not isinstance(required, bool) and not (
        isinstance(required, list) and all(isinstance(name, str) for name in required)
    ):
        raise InvalidField(f"{path}.required", "must be a list of names")
    if "pattern" in node and not isinstance(node["pattern"], str):
        raise InvalidField(f"{path}.pattern", "must be a text")


def _check_numbers(node: Schema, path: str) -> None:
    for low, high in _RANGES:
        for key in (low, high):
            if key in node and not _is_count(node[key]):
                raise InvalidField(f"{path}.{key}", "must be a whole number, 0 or more")
        if low in node and high in node and node[low] > node[high]:
            raise InvalidField(f"{path}.{low}", f"must not be more than {high}")
    for key in _NUMBERS:
        # Draft 4 had booleans for the exclusive ones.
        if key in node and not isinstance(node[key], int | float):
            raise InvalidField(f"{path}.{key}", "must be a number")


def _check_optional(node: Schema, path: str) -> None:
    properties, required = node.get("properties", {}), node.get("required", ())
    if len(properties) > MAX_OPTIONAL:
        optional = properties.keys() - (required if isinstance(required, list) else ())
        if len(optional) > MAX_OPTIONAL:
            raise InvalidField(f"{path}.properties", f"more than {MAX_OPTIONAL} of them may be left out")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _beyond(node: Schema, path: str) -> Iterator[_Finding]:
    """Find what cannot be enforced. A wrong pattern is raised, not found."""
    for key in _BEYOND:
        if key in node and node[key] is not False:
            yield _Finding(node, key, path=path, reason="cannot be enforced")
    if "pattern" in node:
        try:
            check_pattern(node["pattern"])
        except InvalidPattern as error:
            raise InvalidField(f"{path}.pattern", str(error)) from None
        except UnsupportedPattern as error:
            yield _Finding(node, "pattern", path=path, reason=str(error))
    if len(node.get("enum", ())) > MAX_ALTERNATIVES:
        yield _Finding(node, "enum", path=path, reason=f"more than {MAX_ALTERNATIVES} values cannot be enforced")
    names = node.get("patternProperties", {})
    for pattern in names if isinstance(names, dict) else ():
        try:
            check_pattern(pattern)
        except InvalidPattern as error:
            raise InvalidField(f"{path}.patternProperties.{pattern[:80]}", str(error)) from None
        except UnsupportedPattern as error:
            yield _Finding(names, pattern, path=f"{path}.patternProperties", reason=str(error))


def _check_joins(joins: Mapping[int, list[Any]], field: str) -> None:
    """Raise where a schema is made of itself with nothing in between, or of too many at one place.

    Of the first no value could ever be told; the second no engine can hold in mind at once.
    """
    done: dict[int, int] = {}  # How many alternatives each stands for.
    for start in joins:
        trail: dict[int, Iterator[Any]] = {}
        at = start
        while True:
            if at not in done and at not in trail:
                trail[at] = iter(joins.get(at, ()))
            step = next((each for each in trail[at] if id(each) not in done), None) if at in trail else None
            if step is None:
                if trail.pop(at, None) is not None:
                    done[at] = _alternatives(joins.get(at, ()), done, field)
                if not trail:
                    break
                at = next(reversed(trail))
                continue
            if id(step) in trail:
                raise InvalidField(field, "a $ref leads back to itself")
            at = id(step)


def _alternatives(parts: Collection[Any], done: Mapping[int, int], field: str) -> int:
    values = (each.get("enum", ()) if isinstance(each, dict) else () for each in parts)
    own = (len(each) if len(each) <= MAX_ALTERNATIVES else 1 for each in values)  # Longer ones are found elsewhere.
    count = sum(max(each, done[id(part)]) for each, part in zip(own, parts, strict=True))
    if count > MAX_ALTERNATIVES:
        raise InvalidField(field, f"it has more than {MAX_ALTERNATIVES} alternatives at one place")
    return max(1, count)
