"""Samples: the simplest value that is valid under a JSON schema.

What a real engine's grammar enforces, the scripted one makes. It covers what clients send: types, enums,
bounds, required properties, arrays, alternatives and local references. Invariants: the same schema, the same value;
none of more values and letters than `_ROOM`, whatever a schema asks for at least: nobody waits for a billion of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEPTH = 16
_ROOM = 10_000


def sample(schema: Any, *, root: Any = None, depth: int = _DEPTH, room: int = _ROOM) -> Any:
    """Return a value valid under `schema`; references are looked up in `root`."""
    root = schema if root is None else root
    if not isinstance(schema, Mapping) or not depth or not room:
        return {}
    if "$ref" in schema:
        return sample(_found(root, str(schema["$ref"])), root=root, depth=depth - 1, room=room)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return sample({**schema[key][0], **_bare(schema)}, root=root, depth=depth - 1, room=room)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    return _of_type(str(kind), schema, root=root, depth=depth - 1, room=room)


def _bare(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "allOf")}


def _of_type(kind: str, schema: Mapping[str, Any], *, root: Any, depth: int, room: int) -> Any:
    match kind:
        case "string":
            return "x" * min(int(schema.get("minLength", 1)), room)
        case "integer" | "number":
            return schema.get("minimum", schema.get("maximum", 1))
        case "boolean":
            return True
        case "null":
            return None
        case "array":
            items = schema.get("items", {})
            count = min(int(schema.get("minItems", 0)), room)
            return [sample(items, root=root, depth=depth, room=room // count) for _ in range(count)]
        case _:
            properties = schema.get("properties", {})
            names = tuple(schema.get("required", ()))
            return {
                name: sample(properties.get(name, {}), root=root, depth=depth, room=room // len(names))
                for name in names[:room]
            }


def _found(root: Any, reference: str) -> Any:
    for step in reference.removeprefix("#/").split("/"):
        root = root.get(step, {}) if isinstance(root, Mapping) else {}
    return root
