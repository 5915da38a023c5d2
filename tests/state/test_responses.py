"""Stored responses: there after a restart, gone when too old or too many."""

import sqlite3
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from diglot.core.errors import UnknownResponse
from diglot.core.events import Timings, Usage
from diglot.core.items import Compaction, Image, Item, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from diglot.core.result import Choice, Result, Stored
from diglot.state.responses import Scratch, StoredResponses
from tests.services.world import Clock

ITEMS: tuple[Item, ...] = (
    Message("user", (Text("hi\ud7ff"), Image(b"\x00\xff", "image/png"))),
    Reasoning("hm", sealed="zz"),
    ToolCall("c", "apply_patch", "*** Begin", namespace="x", kind="freeform"),
    ToolResult("c", (Text("ok"),)),
    Compaction("payload", id="cmp"),
    Opaque("web_search_call", '{"type":"web_search_call","odd":[1,2.50]}'),
)


def response(name: str, previous: str | None = None, *, size: int = 0) -> Stored:
    choice = Choice(text="hi", reasoning="", calls=(), logprobs=(), reason="stop", items=ITEMS[:3])
    result = Result(choices=(choice,), usage=Usage(1, 2), timings=Timings(), model="m")
    items = (*ITEMS, Message("user", (Text("x" * size),)))
    return Stored(
        id=name, status="completed", created=1.0, input=items, previous=previous, result=result, echo=b"\x00e"
    )


def opened(path: Path, clock: Clock, *, age: float = 1000.0, size: int = 10**6) -> StoredResponses:
    return StoredResponses(path / "state/responses.sqlite", clock=clock, age=age, size=size)


def test_a_response_is_the_same_after_a_restart(tmp_path: Path) -> None:
    store = opened(tmp_path, Clock())
    store.put(response("a"))
    store.close()
    again = opened(tmp_path, Clock())
    assert again.get("a") == response("a")
    again.close()


def test_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    store = opened(tmp_path, Clock())
    store.put(response("a"))
    assert stat.S_IMODE((tmp_path / "state/responses.sqlite").stat().st_mode) == 0o600
    store.close()


def test_nothing_is_made_on_disk_before_something_is_stored(tmp_path: Path) -> None:
    opened(tmp_path, Clock()).close()
    assert not list(tmp_path.iterdir())


def test_a_later_state_replaces_an_earlier_one(tmp_path: Path) -> None:
    store = opened(tmp_path, Clock())
    store.put(replace(response("a"), status="queued", result=None))
    store.put(response("a"))
    assert store.get("a").status == "completed"
    store.close()


async def test_what_was_not_used_for_too_long_is_gone(tmp_path: Path) -> None:
    clock = Clock()
    store = opened(tmp_path, clock, age=100)
    store.put(response("a"))
    await clock.advance(101)
    with pytest.raises(UnknownResponse):
        store.get("a")
    store.put(response("b"))
    with sqlite3.connect(tmp_path / "state/responses.sqlite") as connection:
        assert connection.execute("select id from responses").fetchall() == [("b",)]
    connection.close()
    store.close()


async def test_what_a_conversation_rests_on_stays_young(tmp_path: Path) -> None:
    clock = Clock()
    store = opened(tmp_path, clock, age=100)
    store.put(response("a"))
    await clock.advance(80)
    store.put(response("b", "a"))
    await clock.advance(80)
    store.put(response("c", "b"))
    assert [store.get(name).id for name in "abc"] == ["a", "b", "c"]
    store.close()


async def test_above_the_size_the_least_used_go_and_the_newest_stays(tmp_path: Path) -> None:
    clock = Clock()
    store = opened(tmp_path, clock, size=200_000)
    for number in range(100):
        await clock.advance(1)
        store.put(response(f"r{number}", size=10_000))
    assert store.get("r99").id == "r99"
    with pytest.raises(UnknownResponse):
        store.get("r0")
    store.put(response("huge", size=500_000))
    assert store.get("huge").id == "huge"
    store.close()


def test_a_deleted_response_is_gone_and_deleting_it_again_says_so(tmp_path: Path) -> None:
    store = opened(tmp_path, Clock())
    store.put(response("a"))
    store.forget("a")
    for again in (store.get, store.forget):
        with pytest.raises(UnknownResponse):
            again("a")
    store.close()


def test_scratch_keeps_the_newest_in_memory() -> None:
    scratch = Scratch(limit=2)
    for name in "abc":
        scratch.put(response(name))
    assert scratch.get("c") == response("c")
    with pytest.raises(UnknownResponse):
        scratch.get("a")
    scratch.forget("c")
    with pytest.raises(UnknownResponse):
        scratch.forget("c")
