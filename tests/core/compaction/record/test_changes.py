"""The record knows which files a session changed, in whatever way an agent changes files."""

import json
from typing import Any

import pytest

from diglot.core.compaction.record import record_of
from diglot.core.compaction.record.shell import shell_changes
from diglot.core.compaction.record.values import FileChange
from diglot.core.items import Item, Text, ToolCall, ToolResult, said

PATCH = """*** Begin Patch
*** Update File: src/a.py
@@ def a
-x
+y
*** Add File: docs/new page.md
+*** Begin of text
*** Delete File: old.txt
*** Update File: lib/b.rs
*** Move to: lib/c.rs
@@
-p
+q
*** End Patch"""
APPLIED = "Success. Updated the following files:\nA docs/new page.md\nM src/a.py\nM lib/c.rs\nD old.txt\n"
OF_PATCH = {
    ("src/a.py", "updated", ""),
    ("docs/new page.md", "added", ""),
    ("old.txt", "deleted", ""),
    ("lib/c.rs", "moved", "lib/b.rs"),
}


def call(arguments: Any, result: str, *, name: str = "tool", call_id: str = "c") -> tuple[Item, ...]:
    freeform = isinstance(arguments, str)
    text = arguments if freeform else json.dumps(arguments)
    kind: Any = "freeform" if freeform else "function"
    return (
        ToolCall(call_id=call_id, name=name, arguments=text, kind=kind),
        ToolResult(call_id=call_id, content=(Text(result),), kind=kind),
    )


def files(*items: Item) -> set[tuple[str, str, str]]:
    return {(each.path, each.kind, each.source) for each in record_of(items, None).ledger.files}


@pytest.mark.parametrize(
    "arguments",
    [
        PATCH,
        {"input": PATCH},
        {"patch": PATCH},
        {"command": ["apply_patch", PATCH]},
        {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]},
        {"cmd": f"apply_patch <<'PATCH'\n{PATCH}\nPATCH\n"},
    ],
)
@pytest.mark.parametrize(
    "result",
    [
        APPLIED,
        json.dumps({"output": APPLIED, "metadata": {"exit_code": 0, "duration_seconds": 0.1}}),
        f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{APPLIED}",
        f"Chunk ID: 1f\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{APPLIED}",
        "Done!",
    ],
)
def test_a_patch_is_read_however_it_is_handed_over(arguments: Any, result: str) -> None:
    assert files(*call(arguments, result, name="apply_patch")) == OF_PATCH


@pytest.mark.parametrize(
    "result",
    [
        "apply_patch verification failed: Failed to find expected lines in src/a.py:\nx",
        json.dumps({"output": "patch failed", "metadata": {"exit_code": 1, "duration_seconds": 0.0}}),
        "Exit code: 1\nWall time: 0 seconds\nOutput:\nInvalid patch",
        "aborted",
    ],
)
def test_a_patch_that_failed_changed_nothing(result: str) -> None:
    assert not files(*call(PATCH, result))


def test_a_patch_below_a_folder_names_its_files_there() -> None:
    command = f"cd sub && apply_patch <<'EOF'\n{PATCH}\nEOF"
    assert ("sub/src/a.py", "updated", "") in files(*call({"cmd": command}, APPLIED))


@pytest.mark.parametrize(
    ("name", "arguments", "result", "change"),
    [
        ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, "updated", ("a.py", "updated", "")),
        ("Write", {"file_path": "a.py", "content": ""}, "ok", ("a.py", "written", "")),
        ("replace", {"path": "./a.py", "edits": [{"oldText": "x", "newText": "y"}]}, "", ("a.py", "updated", "")),
        ("ed", {"command": "str_replace", "path": "a", "old_str": "x", "new_str": ""}, "", ("a", "updated", "")),
        ("ed", {"command": "create", "path": "a", "file_text": "x"}, "", ("a", "written", "")),
        ("ed", {"command": "insert", "path": "a", "insert_line": 3, "insert_text": "x"}, "", ("a", "updated", "")),
        ("apply_diff", {"path": "a", "diff": "<<<<<<< SEARCH"}, "", ("a", "updated", "")),
        ("edit_files", {"files": [{"path": "a", "old_str": "x", "new_str": "y"}]}, "", ("a", "updated", "")),
        (
            "apply_patch",
            {"type": "create_file", "path": "a", "diff": "+x"},
            '{"status":"completed"}',
            ("a", "added", ""),
        ),
        ("apply_patch", {"type": "delete_file", "path": "a"}, '{"status":"completed"}', ("a", "deleted", "")),
        ("shell", {"commands": ["ls", "rm a"]}, '[{"stdout":"","outcome":{"exit_code":0}}]', ("a", "deleted", "")),
        ("local_shell", {"type": "exec", "command": ["rm", "a"], "working_directory": "b"}, "", ("b/a", "deleted", "")),
        ("move_file", {"source": "a", "destination": "b"}, "", ("b", "moved", "a")),
        ("delete_file", {"path": "a"}, "", ("a", "deleted", "")),
    ],
)
def test_an_edit_is_known_by_its_arguments(
    name: str, arguments: Any, result: str, change: tuple[str, str, str]
) -> None:
    assert files(*call(arguments, result, name=name)) == {change}


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("Read", {"file_path": "a.py"}, "text"),
        ("ed", {"command": "view", "path": "a"}, "text"),
        ("Grep", {"pattern": "x", "path": "src"}, "src/a.py:1:x"),
        ("create_directory", {"path": "src/new"}, "ok"),
        ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, "String to replace not found in file."),
        ("ed", {"command": "str_replace", "path": "a", "old_str": "x", "new_str": ""}, "No replacement was performed"),
        (
            "apply_patch",
            {"type": "update_file", "path": "a", "diff": "@@"},
            '{"status":"failed","output":"no such lines"}',
        ),
        ("write", {"path": "a", "content": "x"}, '{"error": "EACCES", "isError": true}'),
        ("write", {"path": "a", "content": "x"}, "Error: EACCES: permission denied"),
    ],
)
def test_what_only_reads_or_fails_changes_nothing(name: str, arguments: Any, result: str) -> None:
    assert not files(*call(arguments, result, name=name))


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("echo hi > out.txt", {("out.txt", "written", "")}),
        ("echo hi >> 'my notes.txt' 2>/dev/null", {("my notes.txt", "updated", "")}),
        ("cat > src/x.py <<'EOF'\nprint('a > b; rm c')\nEOF", {("src/x.py", "written", "")}),
        ("cat <<EOF > a && cat <<EOF >> b\n1\nEOF\n2\nEOF", {("a", "written", ""), ("b", "updated", "")}),
        ("make 2>&1 | tee build.log", {("build.log", "updated", "")}),
        ("sed -i 's/a > b/c/' one.txt two.txt", {("one.txt", "updated", ""), ("two.txt", "updated", "")}),
        ("sed -i.bak -e 's/a/b/' -e s/c/d/ one.txt", {("one.txt", "updated", "")}),
        ("perl -pi -e 's/a/b/' lib/x.pm", {("lib/x.pm", "updated", "")}),
        ("git mv a.py b.py && git rm -q c.py", {("b.py", "moved", "a.py"), ("c.py", "deleted", "")}),
        ("cd src; mv a b sub/", {("src/sub/a", "moved", "src/a"), ("src/sub/b", "moved", "src/b")}),
        ("sudo rm -rf build/x && touch y", {("build/x", "deleted", ""), ("y", "added", "")}),
        ("cp a.toml b.toml", {("b.toml", "added", "")}),
        ("python3 - <<'EOF'\nfrom pathlib import Path\nPath('g.py').write_text('x')\nEOF", {("g.py", "written", "")}),
        ("patch -p1 <<'EOF'\n--- a/k.c\n+++ b/k.c\n@@ -1 +1 @@\nEOF", {("k.c", "updated", "")}),
        ("ls src > /dev/null; mkdir -p new/dir; grep -n 'x>y' file", set()),
        ("sed -n '1,20p' file; cat < input; diff <(a) <(b); echo $((1 > 2))", set()),
        ("make > /tmp/build.log 2>&1", set()),
        ("echo 'unbalanced", set()),
    ],
)
def test_a_shell_command_tells_what_it_changes(command: str, changes: set[tuple[str, str, str]]) -> None:
    assert {(each.path, each.kind, each.source) for each, _ in shell_changes(command)} == changes


def test_a_command_that_complains_changed_nothing() -> None:
    failed = "Process exited with code 1\nOutput:\nsed: can't read gone.txt: No such file or directory"
    assert not files(*call({"cmd": "sed -i s/a/b/ gone.txt"}, failed))


def test_a_file_written_before_a_later_command_failed_is_changed() -> None:
    command = "cat > t.py <<'EOF'\nassert 0\nEOF\npython t.py"
    assert files(*call({"cmd": command}, "Process exited with code 1\nOutput:\nAssertionError")) == {
        ("t.py", "written", "")
    }


def test_paths_are_told_from_the_folder_of_the_session() -> None:
    told = said("user", "<environment_context><cwd>/repo</cwd></environment_context>")
    edit = call({"file_path": "/repo/src/a.py", "content": "x"}, "ok", call_id="1")
    shell = call({"cmd": "rm b.py", "workdir": "/repo/src"}, "Process exited with code 0\nOutput:\n", call_id="2")
    assert files(told, *edit, *shell) == {("src/a.py", "written", ""), ("src/b.py", "deleted", "")}


def test_what_a_file_became_outlives_later_edits() -> None:
    def edits(*commands: str) -> tuple[FileChange, ...]:
        items = [each for n, text in enumerate(commands) for each in call({"cmd": text}, "", call_id=str(n))]
        return record_of(tuple(items), None).ledger.files

    assert edits("touch a", "sed -i s/x/y/ a", "git mv a b") == (FileChange("b", "added"),)
    assert edits("git mv a b", "mv b c", "echo x >> c") == (FileChange("c", "moved", "a"),)
    assert edits("echo x >> a", "rm a") == (FileChange("a", "deleted"),)


def test_a_call_without_a_result_changed_nothing_yet() -> None:
    assert not files(ToolCall(call_id="c", name="apply_patch", arguments=PATCH, kind="freeform"))
