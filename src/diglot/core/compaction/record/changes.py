"""Which files a call changes: by a patch, by an editing tool of any agent, or by a shell command.

An editing tool is known by what it is given (a path with a content, or with an old and a new text), not by a
client's name for it. A patch is known by its envelope, however it was handed over.

Invariant: a call that failed, by what its result says, changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from diglot.core.compaction.record.calls import Call, Outcome, first_text
from diglot.core.compaction.record.paths import below, name_of
from diglot.core.compaction.record.shell import placed, shell_changes
from diglot.core.compaction.record.values import FileChange, FileKind, one_line

_BEGIN = "*** Begin Patch"
_PATCH_LINE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$", re.MULTILINE)
_PATCH_KINDS: Final[dict[str, FileKind]] = {"Add": "added", "Update": "updated", "Delete": "deleted"}
_FOLDER = re.compile(r"^\s*cd\s+(?P<quote>['\"]?)(?P<folder>[^'\"&;\n]+?)(?P=quote)\s*(?:&&|;|\n)")
_APPLIED = re.compile(r"^([AMD]) (\S.*?)\s*$", re.MULTILINE)
_SUCCESS = re.compile(r"^Success\. Updated the following files:[^\n]*\n", re.MULTILINE)

_CONTENT = ("content", "contents", "file_text", "fileText", "file_content", "new_content", "code_edit", "new_source")
_EDITS = (
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("oldString", "newString"),
    ("oldText", "newText"),
    ("old_text", "new_text"),
    ("search", "replace"),
    ("find", "replace"),
    ("insert_line", "insert_text"),
    ("insert_line", "new_str"),
    ("line", "text"),
    ("needle", "repl"),
)
_LISTS = ("edits", "replacements", "changes", "diff", "patch", "blocks")
_SOURCES = ("source", "src", "from", "old_path", "oldPath", "source_path")
_TARGETS = ("destination", "dest", "dst", "to", "new_path", "newPath", "target", "destination_path")
_OPERATIONS: Final[dict[str, FileKind]] = {"create_file": "added", "update_file": "updated", "delete_file": "deleted"}
_MOVES = re.compile(r"move|rename|mv", re.IGNORECASE)
_DELETES = re.compile(r"delete|remove|unlink", re.IGNORECASE)


def changes_of(call: Call, outcome: Outcome) -> Iterator[FileChange]:
    """Yield what the call changed."""
    patch = patch_in(call)
    if patch is not None:
        yield from () if outcome.failed else _patched(patch, call, outcome)
    elif call.command is not None:
        yield from _by_shell(call, outcome)
    elif not outcome.failed:
        yield from _edited(call)


def files_of_patch(patch: str) -> Iterator[FileChange]:
    """Yield what a patch in Codex's form names."""
    current: FileChange | None = None
    for verb, path, target in _PATCH_LINE.findall(patch):
        if target and current is not None:
            current = FileChange(target, "moved", current.path)
            continue
        if current is not None:
            yield current
        current = FileChange(path, _PATCH_KINDS[verb]) if verb else None
    if current is not None:
        yield current


def merged(changes: dict[str, FileChange], change: FileChange) -> None:
    """Put a change where the newest stands last; what a file was before is remembered as far as it counts."""
    path, source = one_line(change.path), one_line(change.source)
    before = changes.pop(path, None)
    kind = change.kind
    if kind == "moved":
        origin = changes.pop(source, None)
        if origin is not None and origin.kind == "added":
            kind, source = "added", ""
        elif origin is not None and origin.kind == "moved":
            source = origin.source
    elif kind in {"updated", "written"} and before is not None and before.kind in {"added", "moved"}:
        kind, source = before.kind, before.source
    elif kind == "written" and before is not None and before.kind == "updated":
        kind = "updated"
    changes[path] = FileChange(path, kind, source)


def patch_in(call: Call) -> str | None:
    """Return the patch that a call holds, in whatever way it was handed over."""
    if call.command is not None:
        return call.command if "apply_patch" in call.command and _BEGIN in call.command else None
    if _BEGIN in call.text[:400] and not call.arguments:
        return call.text
    return next((value for value in call.arguments.values() if isinstance(value, str) and _BEGIN in value[:400]), None)


def _patched(patch: str, call: Call, outcome: Outcome) -> Iterator[FileChange]:
    folder = _FOLDER.match(patch)
    root = below(call.workdir, folder["folder"]) if folder else call.workdir
    named = [placed(change, root) for change in files_of_patch(patch)]
    success = _SUCCESS.search(outcome.body)
    if success:  # The list tells which of them were done.
        listed = [path for _, path in _APPLIED.findall(outcome.body[success.end() :])]
        done = [each for each in named if any(_same(each, path) for path in listed)]
        named = done or named
    yield from named


def _same(change: FileChange, listed: str) -> bool:
    tail = name_of(listed)
    return name_of(change.path) == tail or name_of(change.source) == tail


def _by_shell(call: Call, outcome: Outcome) -> Iterator[FileChange]:
    """Yield what a command changed; of one that failed, what its own complaint does not speak against."""
    command = call.command or ""
    found = list(shell_changes(command))
    several = "&&" in command or ";" in command or "\n" in command.strip()
    for index, (change, program) in enumerate(found):
        complained = outcome.failed and re.search(
            rf"^(?:.*: )?{re.escape(program)}: ", outcome.body[:2000], re.MULTILINE
        )
        last = index == len(found) - 1
        if outcome.failed and (complained or (last and not several)):
            continue
        yield placed(change, call.workdir)


def _edited(call: Call) -> Iterator[FileChange]:
    arguments = call.arguments
    source, target = first_text(arguments, _SOURCES), first_text(arguments, _TARGETS)
    if source and target and _MOVES.search(call.name):
        yield placed(FileChange(target, "moved", source), call.workdir)
        return
    kind = _OPERATIONS.get(str(arguments.get("type"))) or _edit_kind(arguments)
    if call.path and _DELETES.search(call.name) and kind is None:
        yield placed(FileChange(call.path, "deleted"), call.workdir)
    elif call.path and kind:
        yield placed(FileChange(call.path, kind), call.workdir)
    for key in ("edits", "files", "changes"):
        listed = arguments.get(key)
        for edit in listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ():
            if isinstance(edit, Mapping):
                inner = Call(call.name, edit, "")
                kind = _edit_kind(edit)
                if inner.path and kind:
                    yield placed(FileChange(inner.path, kind), call.workdir)


def _edit_kind(arguments: Mapping[str, Any]) -> FileKind | None:
    if any(old in arguments and new in arguments for old, new in _EDITS) or any(arguments.get(key) for key in _LISTS):
        return "updated"
    if any(isinstance(arguments.get(key), str) for key in _CONTENT):
        return "written"
    return None
