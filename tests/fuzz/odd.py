"""JSON that is nearly sound: a sound value with a few things in it left out, doubled, moved, or replaced by odd ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st

FEW: Final = settings(max_examples=40 if settings().derandomize else settings().max_examples)
"""For tests that are run for each operation: together they are many. In `make fuzz` each of them is."""

ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**63), 1e308, -0.0, 0.5, "", " ", "\x00", "\ud7ff\ue000"),
    *([], {}, [None], [[]], {"": None}, [{}], {"type": None}, "{}", "null", "data:,", "data:image/png;base64,=", "é"),
    *("-1", "1e9", "5m", "a" * 5000, [0] * 3000, {"$ref": "#"}, {"type": ["object", "null"]}),
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container inside a JSON value with every key of it, and with one that it lacks."""
    match value:
        case dict():
            keys = [*value]
            yield value, "more"
        case list():
            keys = [*range(len(value))]
        case _:
            return
    for key in keys:
        yield value, key
        yield from _places(value[key])


@st.composite
def nearly(draw: st.DrawFn, sound: Any) -> Any:
    """Draw a value that is nearly this one. Words of it turn up in other places: that is odder than any other word."""
    words = sorted(set(re.findall(r'"([\w.-]+)"', json.dumps(sound)))) or ["a"]
    simple = (
        st.sampled_from(ODD) | st.sampled_from(words) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    )
    deep = st.recursive(
        st.sampled_from(ODD[:12]) | st.sampled_from(words),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(words), inner, max_size=3),
        max_leaves=6,
    )
    value = [deepcopy(sound)]  # So that the whole has a place as well.
    for _ in range(draw(st.integers(1, 4))):
        within, key = draw(st.sampled_from([*_places(value)]))
        match draw(st.sampled_from(["replace", "replace", "drop", "move", "double"])):
            case "drop" if isinstance(within, dict):
                within.pop(key, None)
            case "drop" if within is not value:
                within.pop(key)
            case "move" if isinstance(within, dict) and key in within:
                within[draw(st.sampled_from(words))] = within[key]
            case "double" if isinstance(within, list) and within is not value:
                within.append(deepcopy(within[key]))
            case _:
                within[key] = deepcopy(draw(simple | deep))  # What is drawn is shared by all examples.
    return value[0]
