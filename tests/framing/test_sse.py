"""Server-sent events are read as they were written, in any pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.framing.lines import LineTooLong
from diglot.framing.sse import DONE, HEARTBEAT, ServerSentEvent, SseDecoder, encode
from tests.framing.test_lines import cut

text = st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=40)
name = st.sampled_from(["", "response.created", "error", "příhoda"])


def events_of(pieces: list[bytes]) -> list[ServerSentEvent]:
    decoder = SseDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()


@given(
    st.lists(st.tuples(text, name), max_size=6), st.lists(st.integers(0, 500)), st.sampled_from([b"\n", b"\r\n", b"\r"])
)
def test_any_cutting_gives_back_what_was_written(events: list[tuple[str, str]], places: list[int], end: bytes) -> None:
    written = [ServerSentEvent(data.encode(), kind.encode()) for data, kind in events]
    stream = HEARTBEAT + b"".join(encode(event.data, event.name) + HEARTBEAT for event in written)
    assert events_of(cut(stream.replace(b"\n", end), places)) == written


def test_done_is_an_event_like_any_other() -> None:
    assert events_of([DONE]) == [ServerSentEvent(b"[DONE]")]


def test_only_one_blank_behind_the_colon_is_dropped() -> None:
    assert events_of([b"data:  a\ndata:b\n\n"]) == [ServerSentEvent(b" a\nb")]


def test_comments_ids_and_times_are_read_over() -> None:
    assert events_of([b": hi\nid: 7\nretry: 10\ndata: x\n\n"]) == [ServerSentEvent(b"x")]


def test_a_name_without_data_is_no_event() -> None:
    assert events_of([b"event: lonely\n\ndata: x\n\n"]) == [ServerSentEvent(b"x")]


def test_an_event_without_its_empty_line_is_given_at_the_end() -> None:
    assert events_of([b"event: error\ndata: x"]) == [ServerSentEvent(b"x", b"error")]


def test_an_event_of_many_lines_is_bounded_too() -> None:
    decoder = SseDecoder(limit=10)
    with pytest.raises(LineTooLong):
        decoder.feed(b"data: 123456\n" * 3)


def test_events_of_the_limit_come_one_after_another() -> None:
    assert len(SseDecoder(limit=20).feed(encode(b"1234567890") * 5)) == 5
