"""Bounds: a schema narrowed until a small model comes to an end within it.

Left alone, a small model never ends a string, a list or an open object, and its answer is cut in the middle
(measured: 11 of 16 valid without bounds, 32 of 32 with). This is for answers that we shape, calls above all; a schema
that a client gave for its answer is not touched. Neighbours: `core.schema` judges schemas, `core.tools` makes them.

Invariant: what is valid under the bounded schema is valid under the given one; bounds that are there are kept, so
that bounding twice is bounding once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from diglot.core.request import Schema

MAX_STRING: Final = 4096
MAX_ARRAY: Final = 64
# English has four characters to a token, but a small model's noise has few, and a schema's white space costs too.
_CHARACTERS_PER_TOKEN: Final = 2
_LEAST_STRING: Final = 32
_DEPTH: Final = 64

_DATA: Final = frozenset({"const", "enum", "default", "examples", "required", "dependentRequired"})
_BY_NAME: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_JOINS: Final = frozenset({"anyOf", "oneOf", "allOf", "$ref", "not", "if"})
_KINDS: Final = frozenset({"type", "properties", "items", "prefixItems"}) | _JOINS | {"const", "enum"}

Change = Callable[[dict[str, Any]], None]


def bounded(schema: Schema, *, tokens: int | None = None) -> Schema:
    """Return the schema with a limit on every string and list that has none, and objects closed that do not say.

    `tokens` is the room there is: the limits are shared out so that the longest value fits. A pattern and a format
    count as limits. A schema that holds itself stays without end, for no limit can be written into it.
    """
    string, array = MAX_STRING, MAX_ARRAY
    if tokens is not None:
        room = max(1, tokens) * _CHARACTERS_PER_TOKEN
        while array > 1 and room // _strings(schema, array) < _LEAST_STRING:
            array //= 2
        string = max(1, min(MAX_STRING, room // _strings(schema, array)))
    close = not _holds(schema, "allOf")  # Closed, the parts of an allOf would shut each other out.

    def change(node: dict[str, Any]) -> None:
        _bound(node, string=string, array=array, close=close)

    return rewritten(schema, change)


def rerooted(schema: Schema, root: str) -> Schema:
    """Return the schema with its references made to hold when it stands at `root` (as `#/$defs/it`) in another one."""

    def change(node: dict[str, Any]) -> None:
        node.pop("$id", None)
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            node["$ref"] = root + reference[1:]

    return rewritten(schema, change)


def refers(schema: Schema) -> bool:
    """Say whether there is any reference in the schema."""
    return _holds(schema, "$ref")


def rewritten(schema: Schema, change: Change) -> Schema:
    """Return a copy in which each schema went through `change`; values that are data stay as they are."""
    copy: Schema = _rewritten(schema, change, _DEPTH)
    return copy


def _rewritten(node: Any, change: Change, depth: int) -> Any:
    """Walk one node. What lies deeper than `depth` is left as it is."""
    if not depth:
        return node
    if isinstance(node, list):
        return [_rewritten(each, change, depth - 1) for each in node]
    if not isinstance(node, Mapping):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key in _DATA:
            out[key] = value
        elif key in _BY_NAME and isinstance(value, Mapping):
            out[key] = {
                name: _rewritten({} if each is True else each, change, depth - 2) for name, each in value.items()
            }
        else:
            out[key] = _rewritten(value, change, depth - 1)
    change(out)
    return out


def _bound(node: dict[str, Any], *, string: int, array: int, close: bool) -> None:
    if not _KINDS & node.keys():
        _bound_anything(node, string=string, array=array)
        return
    kinds = _kinds(node)
    if isinstance(node.get("items"), bool):  # llama.cpp takes no boolean for a schema.
        none = node.pop("items") is False and "prefixItems" not in node
        node |= {"maxItems": 0} if none else {}
    if "string" in kinds and not {"maxLength", "enum", "const", "pattern", "format"} & node.keys():
        node["maxLength"] = _at_least(string, node.get("minLength"))
    if "array" in kinds:
        _bound_list(node, array)
    if close and "properties" in node and not _JOINS & node.keys():
        open_ended = {"additionalProperties", "patternProperties", "unevaluatedProperties"} & node.keys()
        if not open_ended:
            node["additionalProperties"] = False
    if node.get("additionalProperties") is True or ("object" in kinds and not _said_of_objects(node)):
        node["additionalProperties"] = _scalar(string)


def _bound_list(node: dict[str, Any], array: int) -> None:
    items = node.get("items")
    tuple_of = items if isinstance(items, list) else node.get("prefixItems")
    least = node.get("minItems")
    if isinstance(tuple_of, list):
        if "prefixItems" in node and _at_least(len(tuple_of), least) == len(tuple_of):
            node.pop("items", None)  # llama.cpp reads one of the two, and this one first (measured).
            node["maxItems"] = min(len(tuple_of), node.get("maxItems", len(tuple_of)))
        array = len(tuple_of)
    node.setdefault("maxItems", _at_least(array, least))
    if "items" not in node and "prefixItems" not in node:
        node["items"] = _scalar(MAX_STRING)


def _bound_anything(node: dict[str, Any], *, string: int, array: int) -> None:
    """Let a schema that says nothing be any value of two levels."""
    scalar = _scalar(string)
    node["type"] = [*scalar["type"], "array", "object"]
    node.setdefault("maxLength", string)
    node.setdefault("maxItems", array)
    node.setdefault("items", scalar)
    node.setdefault("additionalProperties", scalar)


def _scalar(string: int) -> dict[str, Any]:
    return {"type": ["string", "number", "boolean", "null"], "maxLength": string}


def _said_of_objects(node: Mapping[str, Any]) -> bool:
    return bool({"properties", "patternProperties", "additionalProperties"} & node.keys() or _JOINS & node.keys())


def _kinds(node: Mapping[str, Any]) -> list[Any]:
    kinds = node.get("type")
    return kinds if isinstance(kinds, list) else [kinds]


def _at_least(limit: int, least: Any) -> int:
    return max(limit, least) if isinstance(least, int) else limit


def _strings(node: Any, array: int, depth: int = _DEPTH) -> int:
    """Count the strings without a limit that the largest value would hold, at least 1."""
    return max(1, _count(node, array, depth))


def _count(node: Any, array: int, depth: int) -> int:
    if not depth or not isinstance(node, Mapping):
        return 1 if node is True or not depth else 0
    if {"enum", "const", "maxLength"} & node.keys():
        return 0
    if not _KINDS & node.keys():
        return array
    kinds = _kinds(node)
    own = int("string" in kinds or "$ref" in node)
    inside = sum(_count(each, array, depth - 1) for each in _mapping(node.get("properties")).values())
    for key in ("anyOf", "oneOf", "prefixItems"):
        counts = [_count(each, array, depth - 1) for each in node.get(key) or ()]
        inside += max(counts, default=0) if key != "prefixItems" else sum(counts)
    inside += sum(_count(each, array, depth - 1) for each in node.get("allOf") or ())
    items = node.get("items")
    if isinstance(items, Mapping):
        inside += _count(items, array, depth - 1) * min(node.get("maxItems", array), 2**16)
    elif isinstance(items, list):
        inside += sum(_count(each, array, depth - 1) for each in items)
    return own + inside


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _holds(node: Any, key: str) -> bool:
    """Say whether a key stands anywhere, in data as well: it is asked to be careful."""
    if isinstance(node, list):
        return any(_holds(each, key) for each in node)
    return isinstance(node, Mapping) and (key in node or any(_holds(each, key) for each in node.values()))
