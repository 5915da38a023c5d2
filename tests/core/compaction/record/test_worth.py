"""What finds room in a record first: what tells most, what is fresh, and what was kept before."""

import json

import pytest

from bench.compaction.sessions import make_session
from diglot.core.compaction.record import Record, read_summary, record_of, write_record
from diglot.core.compaction.record.values import FileChange, Ledger, Line, Problem, Run, Step
from diglot.core.items import Item, Text, ToolCall, ToolResult, said


def printed(output: str, command: str = "./run", *, call_id: str = "c") -> tuple[Item, ...]:
    return (
        ToolCall(call_id=call_id, name="exec_command", arguments=json.dumps({"cmd": command})),
        ToolResult(call_id=call_id, content=(Text(output),)),
    )


def level(record: Record, text: str) -> int:
    return next(line.level for line in record.excerpt if text in line.text)


def test_room_for_more_never_costs_a_line() -> None:
    record = record_of(make_session(7, kind="codex", language="en", tokens=4000).items, None)
    before: list[str] = []
    for characters in range(200, 6000, 61):
        text = write_record(record, characters=characters).replace("\n:", "\n|").replace("\n;", "\n&")
        lines = text[: text.index("## Files")].split("\n") + text.partition("## Plan")[2].split("\n")
        assert set(before) <= set(lines)
        before = lines


def test_files_of_a_folder_share_a_line_and_are_read_back() -> None:
    paths = ("src/app/a.py", "tests/b.py", "src/app/c.py", "d.py", "src/app/e f.py")
    files = (*(FileChange(path, "updated") for path in paths), FileChange("src/app/g.py", "moved", "src/app/h.py"))
    text = write_record(Record(Ledger(files=files)), characters=9999)
    assert "- updated src/app/\ta.py c.py\n- updated tests/b.py\n" in text
    read, _ = read_summary(text)
    assert read is not None
    assert sorted(read.ledger.files, key=repr) == sorted(files, key=repr)


def test_a_printed_line_whose_call_has_no_room_says_so_and_is_read_back() -> None:
    excerpt = (Line("$", 0, "make " * 40), Line("|", 9, "error: E1234"), Line("|", 9, "port 8123"))
    text = write_record(Record(excerpt=excerpt), characters=200)
    assert text.endswith("\n:9 error: E1234\n|9 port 8123")
    read, _ = read_summary(text)
    assert read == Record(excerpt=(Line(":", 9, "error: E1234"), Line("|", 9, "port 8123")))


def test_a_rare_line_rises_above_two_hundred_alike() -> None:
    alike = [f"Compiling crate-{number} v1.{number}.0" for number in range(200)]
    record = record_of(printed("\n".join([*alike[:90], "daemon bound to 10.0.0.7:6432", *alike[90:]])), None)
    assert level(record, "10.0.0.7:6432") >= 5
    assert max(line.level for line in record.excerpt if line.text in alike) <= 2


def test_an_error_rises_above_a_line_like_it() -> None:
    record = record_of(printed("start\nsocket closed: code 5512\nerror: code 5513\nend"), None)
    assert level(record, "5513") > level(record, "5512")


def test_what_is_kept_as_a_message_need_not_be_kept_twice() -> None:
    output = "start\nseen at 10.0.0.7:6432 now\nseen at 10.0.0.8:6432 now\nend"
    record = record_of((said("developer", "The database is 10.0.0.7:6432."), *printed(output)), None)
    assert level(record, "at 10.0.0.7") < level(record, "at 10.0.0.8")


def test_what_stands_in_one_line_need_not_stand_in_another() -> None:
    record = record_of(printed("start\nbound to 10.0.0.7:6432\nsocket 10.0.0.7:6432 is open for all\nend"), None)
    assert level(record, "bound to") - level(record, "is open") >= 3


def test_what_is_said_all_the_time_says_little() -> None:
    starts = ["Now", "Let me", "Then let me", "Time to", "Let us", "I shall", "Good, now", "Next, let me"]
    usual = [said("assistant", f"{start} look at another file {end}.") for start in starts for end in ("here", "again")]
    record = record_of((*usual, said("assistant", "Archives stay untouched because auditors compare.")), None)
    assert level(record, "auditors") - level(record, "Time to look") >= 2


def test_an_output_keeps_its_first_and_last_line_and_no_more_than_masking_allows() -> None:
    output = "\n".join(["first of all", *(f"secret number {number}" for number in range(500)), "last of all"])
    lines = [line.text for line in record_of(printed(output), None).excerpt if line.mark == "|"]
    assert (lines[0], lines[-1]) == ("first of all", "last of all")
    assert len(lines) <= 48


@pytest.mark.parametrize(("worth", "kept"), [(5, range(3)), (0, range(2))])
def test_of_telling_lines_the_oldest_stay_and_of_noise_the_newest(worth: int, kept: range) -> None:
    lines = tuple(Line("|", worth, f"{number:03} " + "x" * 96) for number in range(100))
    text = write_record(Record(Ledger(), lines), characters=4000)
    assert all((f"|{worth} {number:03} " in text) == (worth > 2) for number in kept)
    assert f"|{worth} 099 " in text
    assert f"|{worth} 050 " not in text


def test_of_the_ledger_open_things_find_room_before_settled_ones() -> None:
    ledger = Ledger(
        files=(FileChange("a.py", "updated"),),
        plan=(Step("read", "done"), Step("write", "open")),
        problems=(Problem("make", "old", passed=True), Problem("make", "new")),
        runs=(Run("ls", 0), Run("make", 2, 4)),
    )
    order = ["- updated a.py", "- [ ] write", "- open: make\tnew", "- exit 2 x4: make", "- [x] read", "- exit 0 x1: ls"]
    met: list[str] = []
    for characters in range(60, 600):
        text = write_record(Record(ledger), characters=characters)
        met += [line for line in order if line in text and line not in met]
    assert met == order


def test_a_call_is_named_where_its_output_is_quoted() -> None:
    record = record_of(printed("ready on 10.0.0.9:7001", "cat notes.txt"), None)
    text = write_record(record, characters=2000).split("\n")
    assert text[-2].endswith("cat notes.txt")


def test_a_patch_is_named_by_its_files() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-old = 1\n+LIMIT = 512\n*** End Patch"
    call = ToolCall(call_id="p", name="apply_patch", arguments=patch, kind="freeform")
    lines = [(line.mark, line.text) for line in record_of((call,), None).excerpt]
    assert lines == [("$", "apply_patch src/a.py"), ("&", "-old = 1"), ("&", "+LIMIT = 512")]
