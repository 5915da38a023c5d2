"""Taking a record: the items of a conversation entered in the ledger and quoted in the excerpt, in their order.

Neighbours: `calls` reads what was called and what came of it, `changes` and `runs` say what that means for the
ledger, `excerpt` what is quoted of it.

Invariant: pure, linear in the size of the items, and no item makes it raise.
"""

from __future__ import annotations

import re

import msgspec

from diglot.core.compaction.record.calls import Call, Outcome, read_call, read_outcome
from diglot.core.compaction.record.changes import changes_of, merged, patch_in
from diglot.core.compaction.record.excerpt import (
    Block,
    answered,
    call_block,
    excerpt_of,
    said_block,
    user_block,
)
from diglot.core.compaction.record.masking import exact
from diglot.core.compaction.record.runs import checked, failed_or_passed, plan_of, ran
from diglot.core.compaction.record.values import Check, FileChange, Ledger, Problem, Record, Run, Step, one_line
from diglot.core.compaction.window import is_kept, is_shown_summary
from diglot.core.items import Item, Message, Reasoning, ToolCall, ToolResult

_COMMAND = 240
_CWD = re.compile(
    r"<cwd>\s*(/[^<\n]+?)\s*</cwd>|^\s*(?:cwd|working directory)\s*[:=]\s*(/\S+)", re.IGNORECASE | re.MULTILINE
)
_CWD_WITHIN = 4000


class _Book(msgspec.Struct):
    """The ledger while it is written, each kind by its key."""

    files: dict[str, FileChange]
    plan: tuple[Step, ...]
    checks: dict[str, Check]
    problems: list[Problem]
    runs: dict[str, Run]
    root: str

    def ledger(self) -> Ledger:
        return Ledger(
            files=tuple(self.files.values()),
            plan=self.plan,
            checks=tuple(self.checks.values()),
            problems=tuple(self.problems),
            runs=tuple(self.runs.values()),
        )

    def enter(self, call: Call, outcome: Outcome, command: str | None) -> None:
        """Enter a call that was answered. `command` is what it continues, where it is a process's input."""
        for change in changes_of(call, outcome):
            merged(self.files, self.below_root(change))
        if command is not None and outcome.session is None and patch_in(call) is None:
            ran(self.runs, command, outcome)
            checked(self.checks, command, outcome)
            self.problems = failed_or_passed(self.problems, command, outcome)
        plan = plan_of(call)
        if plan is not None and not outcome.failed:
            self.plan = plan

    def below_root(self, change: FileChange) -> FileChange:
        root = self.root.rstrip("/") + "/"
        return FileChange(change.path.removeprefix(root), change.kind, change.source.removeprefix(root))


def record_of(items: tuple[Item, ...], previous: Record | None) -> Record:
    """Return the record of a conversation that is folded, merged with what the last compaction recorded.

    Messages that are kept anyway may be among the items: they are not recorded, but what stands in them need
    not be kept twice. What was said before the last summary only counts for that.
    """
    before = previous or Record()
    start = _start(items, again=previous is not None)
    calls = [read_call(item) if isinstance(item, ToolCall) else None for item in items]
    book = _book(before.ledger, root=_root(items, calls))
    kept = (item.text for item in items if isinstance(item, Message) and is_kept(item))
    known = {token for text in kept for token in exact(text)}
    blocks = _blocks(items[start:], calls[start:], book)
    known.update(token for change in book.files.values() for token in exact(change.path))
    return Record(book.ledger(), excerpt_of(blocks, previous=before.excerpt, known=known))


def _start(items: tuple[Item, ...], *, again: bool) -> int:
    """Return where what was not recorded yet begins: behind the last summary, whether it stands there or was taken out."""
    summaries = [index for index, item in enumerate(items) if is_shown_summary(item)]
    if summaries:
        return summaries[-1] + 1
    return next((index for index, item in enumerate(items) if not is_kept(item)), len(items)) if again else 0


def _book(ledger: Ledger, *, root: str) -> _Book:
    return _Book(
        files={change.path: change for change in ledger.files},
        plan=ledger.plan,
        checks={check.command: check for check in ledger.checks},
        problems=list(ledger.problems),
        runs={run.command: run for run in ledger.runs},
        root=root,
    )


def _root(items: tuple[Item, ...], calls: list[Call | None]) -> str:
    """Return the folder that the session works in, where something tells it."""
    told = {call.workdir for call in calls if call and call.workdir.startswith("/")}
    for item in items:
        if isinstance(item, Message) and item.role != "assistant":
            told.update(one or other for one, other in _CWD.findall(item.text[:_CWD_WITHIN]))
    return min(told, key=lambda folder: (len(folder), folder), default="/")


def _blocks(items: tuple[Item, ...], calls: list[Call | None], book: _Book) -> list[Block]:
    """Return the blocks of the excerpt in order, and enter in the book what was done."""
    blocks: list[Block] = []
    asked: dict[str, tuple[Call, Block]] = {}
    sessions: dict[str, str] = {}
    for item, read in zip(items, calls, strict=True):
        match item:
            case Message(role="assistant"):
                blocks.append(said_block(item.text, ">"))
            case Message(role="user"):
                blocks.append(user_block(item.text))
            case Reasoning():
                blocks.append(said_block(item.text, "~"))
            case ToolCall() if read is not None:
                asked[item.call_id] = (read, call_block(item, read))
                if plan_of(read) is None:  # A plan stands in the ledger.
                    blocks.append(asked[item.call_id][1])
            case ToolResult():
                if item.call_id not in asked:
                    asked[item.call_id] = _unasked(item)
                    blocks.append(asked[item.call_id][1])
                outcome = read_outcome(item.text)
                call, block = asked[item.call_id]
                answered(block, outcome)
                book.enter(call, outcome, _command(call, outcome, sessions))
            case _:
                pass
    return blocks


def _unasked(item: ToolResult) -> tuple[Call, Block]:
    """Return a call that is not among the items, so that its result has a head."""
    call = ToolCall(item.call_id, item.name or "…", "")
    return read_call(call), call_block(call, read_call(call))


def _command(call: Call, outcome: Outcome, sessions: dict[str, str]) -> str | None:
    """Return the command that an outcome is about: its own, or the one whose process was written to."""
    command = one_line(call.command, _COMMAND) if call.command is not None else None
    if command is None:
        command = sessions.get(str(call.arguments.get("session_id")))
    if command is not None and outcome.session is not None:
        sessions[outcome.session] = command
    return command
