"""One JSON value a line, in any pieces."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from diglot.framing.ndjson import NdjsonDecoder, encode
from tests.framing.test_lines import cut

values = st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers(), max_size=3)


@given(st.lists(values, max_size=6), st.lists(st.integers(0, 500)))
def test_any_cutting_gives_back_what_was_written(written: list[dict[str, object]], places: list[int]) -> None:
    stream = b"".join(encode(json.dumps(value, ensure_ascii=False).encode()) for value in written)
    decoder = NdjsonDecoder()
    read = [line for piece in cut(stream, places) for line in decoder.feed(piece)] + decoder.close()
    assert [json.loads(line) for line in read] == written


def test_empty_lines_are_read_over_and_the_last_needs_no_end() -> None:
    decoder = NdjsonDecoder()
    assert decoder.feed(b"\n1\r\n\n2") == [b"1"]
    assert decoder.close() == [b"2"]
