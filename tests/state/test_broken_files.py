"""Stored responses whose file is torn, locked, full or another's, and clocks that jump: nothing is lost that need not be."""

import logging
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from diglot.core.errors import NoSpace, ResponsesUnavailable, UnknownResponse
from diglot.state.responses import StoredResponses
from tests.services.world import Clock
from tests.state.test_responses import response

AGE = 1000.0


def file_of(folder: Path) -> Path:
    return folder / "state" / "responses.sqlite"


@contextmanager
def opened(folder: Path, clock: Clock | None = None) -> Iterator[StoredResponses]:
    """The store of a folder, as a server has it."""
    store = StoredResponses(file_of(folder), clock=clock or Clock(), age=AGE, size=10**6)
    store.look()
    with closing(store):
        yield store


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder in which a server has stored two responses, and ended."""
    with opened(tmp_path) as store:
        for name in "ab":
            store.put(response(name, size=20_000))
    return tmp_path


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A folder in which a server has stored two responses, and was killed: they stand in the log of SQLite only."""
    left = tmp_path / "left"
    with opened(tmp_path / "lived") as store:
        for name in "ab":
            store.put(response(name, size=20_000))
        shutil.copytree(tmp_path / "lived", left)
    return left


def scribble(path: Path) -> None:
    path.write_bytes(b"\x00\xff" * 9000)


def tear_page(path: Path) -> None:
    """Overwrite a page in the middle, as a disk does that dies."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xee" * 8192)


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 100)


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma user_version = 99")


def rebuilt(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("drop table responses; create table responses (id text, used_at real)")


@pytest.mark.parametrize("damage", [scribble, tear_page, cut, newer, rebuilt])
def test_a_file_that_cannot_be_used_is_kept_aside_and_told_and_a_new_one_begun(
    kept: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    damage(file_of(kept))
    broken = file_of(kept).read_bytes()
    with caplog.at_level(logging.WARNING), opened(kept) as store:
        store.put(response("c"))
        assert store.get("c") == response("c")
        with pytest.raises(UnknownResponse):
            store.get("a")
    (told,) = [record.getMessage() for record in caplog.records]
    assert "It is kept as responses.sqlite.broken-1, and a new one is begun" in told
    assert file_of(kept).with_name("responses.sqlite.broken-1").read_bytes() == broken


def test_of_two_broken_files_both_are_kept(kept: Path) -> None:
    for _ in range(2):
        scribble(file_of(kept))
        with opened(kept) as store:
            store.put(response("c"))
    names = {path.name for path in file_of(kept).parent.iterdir()}
    assert {"responses.sqlite.broken-1", "responses.sqlite.broken-2"} <= names


def test_a_file_that_breaks_while_it_is_in_use_is_set_aside_too(kept: Path) -> None:
    with opened(kept) as store:
        assert store.get("a").id == "a"
        tear_page(file_of(kept))
        with closing(sqlite3.connect(file_of(kept))) as other:  # What another writes makes SQLite read anew.
            other.execute("pragma user_version = 1")
        store.put(response("c"))
        assert store.get("c").id == "c"
    assert file_of(kept).with_name("responses.sqlite.broken-1").exists()


def test_what_was_stored_before_a_kill_is_there_after_it(killed: Path) -> None:
    with opened(killed) as store:
        assert store.get("a").id == "a"
        assert store.get("b").id == "b"


@pytest.mark.parametrize("damage", [scribble, cut, Path.unlink])
def test_a_log_that_is_torn_costs_what_stood_in_it_and_no_more(killed: Path, damage: Callable[[Path], None]) -> None:
    wal = file_of(killed).with_name("responses.sqlite-wal")
    assert wal.stat().st_size > 40_000
    damage(wal)
    with opened(killed) as store:
        store.put(response("c"))
        assert store.get("c") == response("c")
        for name in "ab":
            try:
                assert store.get(name).id == name  # Whole,
            except UnknownResponse:
                continue  # or not at all.


@pytest.mark.parametrize("how", ["begin immediate", "pragma locking_mode = exclusive; begin exclusive"])
def test_a_file_that_another_holds_is_a_fault_and_no_more_once_it_is_free(kept: Path, how: str) -> None:
    with closing(sqlite3.connect(file_of(kept), isolation_level=None)) as other:
        other.executescript(how)
        with opened(kept) as store:
            with pytest.raises(ResponsesUnavailable, match="another process"):
                store.put(response("c"))
            other.close()
            store.put(response("c"))
            assert [store.get(name).id for name in "abc"] == ["a", "b", "c"]


def test_a_disk_that_is_full_is_a_fault_and_takes_nothing_along(kept: Path) -> None:
    with opened(kept) as store:
        connection = store._shelf._connection  # noqa: SLF001  where its disk ends
        assert connection
        (pages,) = connection.execute("pragma page_count").fetchone()
        connection.execute(f"pragma max_page_count = {pages}")
        with pytest.raises(NoSpace):
            store.put(response("c", size=10**5))
        assert [store.get(name).id for name in "ab"] == ["a", "b"]
        connection.execute("pragma max_page_count = 100000")
        store.put(response("c", size=10**5))
        assert store.get("c").id == "c"


@pytest.mark.parametrize("place", ["state", "state/responses.sqlite"])
def test_a_place_where_no_file_can_be_is_a_fault_and_the_server_starts(
    tmp_path: Path, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    if place == "state":
        (tmp_path / place).write_text("no folder")
    else:
        (tmp_path / place).mkdir(parents=True)
    with opened(tmp_path) as store, pytest.raises(ResponsesUnavailable):
        store.put(response("a"))
    assert ("not available" in caplog.text) == (place != "state")


def test_a_row_that_cannot_be_read_is_no_response(kept: Path) -> None:
    with closing(sqlite3.connect(file_of(kept))) as connection, connection:
        connection.execute("update responses set body = x'00ff' where id = 'a'")
    with opened(kept) as store:
        with pytest.raises(UnknownResponse):
            store.get("a")
        assert store.get("b").id == "b"


def test_a_file_of_before_there_were_versions_is_taken_over(kept: Path) -> None:
    with closing(sqlite3.connect(file_of(kept))) as connection:
        connection.execute("pragma user_version = 0")
    with opened(kept) as store:
        assert store.get("a").id == "a"


@pytest.mark.parametrize("jump", [-1e9, 1e9])
async def test_a_clock_that_jumps_while_the_server_runs_takes_nothing_along(tmp_path: Path, jump: float) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as store:
        store.put(response("a"))
        clock.error = jump
        store.put(response("b"))
        assert store.get("a").id == "a"
        await clock.advance(AGE + 1)
        with pytest.raises(UnknownResponse):
            store.get("a")


def test_a_machine_that_has_lost_its_time_keeps_what_it_knew(kept: Path) -> None:
    clock = Clock()
    clock.error = -1.7e9
    with opened(kept, clock) as store:
        store.put(response("c"))
        assert [store.get(name).id for name in "abc"] == ["a", "b", "c"]
    with opened(kept) as store:
        assert [store.get(name).id for name in "abc"] == ["a", "b", "c"]
