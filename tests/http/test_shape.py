"""The shape of JSON: judged as a parser would judge it, and in time that does not grow with malice."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.errors import MalformedBody, TooMany
from diglot.http import shape
from diglot.http.shape import check_shape

PLENTY = 1 << 30
TEXT = st.text(st.sampled_from('[]{},:"\\\n aé'), max_size=12)
JSON: Any = st.recursive(
    TEXT | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


def marks_of(value: Any) -> int:
    """How many values there are, where an empty list counts as one in it."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(0, len(value) - 1) + sum(marks_of(each) for each in inner)
    return 0


@given(value=JSON, piece=st.integers(1, 9), compact=st.booleans())
def test_depth_and_values_are_those_that_a_parser_finds_however_it_is_cut(
    value: Any,
    piece: int,
    compact: bool,  # noqa: FBT001  given by name
) -> None:
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":") if compact else None).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shape, "_PIECE", piece)
        depth, values = depth_of(value), 1 + marks_of(value)
        check_shape(body, depth=depth, values=values)
        if depth:
            with pytest.raises(MalformedBody, match=f"deeper than the limit of {depth - 1}"):
                check_shape(body, depth=depth - 1, values=PLENTY)
            with pytest.raises(TooMany, match="values are more than the limit"):
                check_shape(body, depth=depth, values=values - 1)


@given(st.binary(max_size=60) | st.text(st.sampled_from('[]{},"\\'), max_size=60).map(str.encode))
def test_whatever_the_bytes_nothing_else_is_raised(body: bytes) -> None:
    try:
        check_shape(body, depth=2, values=5)
    except MalformedBody:
        pass
    except TooMany as fault:
        assert fault.kind == "values"  # noqa: PT017  either may be


@pytest.mark.parametrize(
    "unit", [b"[", b"{", b'"', b'"",', b"\\", b'\\"', b"[],", b"[]", b'{"a":1},', b'"\\\\"', b"a"], ids=repr
)
def test_a_long_body_of_one_thing_is_looked_at_once(unit: bytes) -> None:
    body = unit * (1_000_000 // len(unit))
    with pytest.MonkeyPatch.context() as patch:
        cut: list[int] = []
        outside = shape._outside_of_strings  # noqa: SLF001  counted, not timed

        def counted(given: bytes) -> Any:
            for piece in outside(given):
                cut.append(len(piece))
                yield piece

        patch.setattr(shape, "_outside_of_strings", counted)
        with contextlib.suppress(MalformedBody):
            check_shape(body, depth=64, values=2_000_000)
        assert len(cut) <= 1 + 1_000_000 // shape._PIECE  # noqa: SLF001  as above
