"""The excerpt: what was said, called and printed, quoted and masked.

The agent's statements stay word for word, a call becomes its name with its telling arguments, an output its
telling lines. What the user and the system said is kept elsewhere and only parts the excerpt here. Neighbours:
`masking` judges the lines, `writing` decides by their levels how many find room.

Invariant: a line stands at most once, and every line is a stretch of the conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import msgspec

from diglot.core.compaction.record.calls import Call, Outcome
from diglot.core.compaction.record.changes import files_of_patch, patch_in
from diglot.core.compaction.record.masking import Draft, exact, judge, masked
from diglot.core.compaction.record.values import Line, Mark, one_line
from diglot.core.items import ToolCall
from diglot.core.tools import flat_name

_LONGEST = 320
_HEAD = 110
_HEAD_BELOW = 3
_DEEPEST = 6
_USER = 72
_SPACES = re.compile(r"\s{2,}")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\sa-z])|(?<=[\u3002\uff01\uff1f])")
_CUT = re.compile(r"[,;\s]")
_LONGEST_READ = 20_000
_PATCHED = re.compile(r"[+-](?!\+\+|--)")
_SHELL_NAMES = frozenset({"exec_command", "shell", "shell_command", "bash", "local_shell"})


class Block(msgspec.Struct):
    """A statement, or a call with what it printed."""

    head: list[Draft]
    given: list[Draft] = []
    printed: list[Draft] = []
    call_id: str = ""


def said_block(text: str, mark: Mark) -> Block:
    """Return a statement, cut at its lines and, where they are long, at its sentences."""
    lines = [piece for line in text.split("\n") for piece in _sentences(line)]
    return Block([Draft(mark, piece) for piece in lines])


def user_block(text: str) -> Block:
    """Return the start of what a user said, which only parts what comes before from what comes after."""
    start = one_line(text, _USER)
    return Block([Draft("@", start)] if start else [])


def call_block(item: ToolCall, call: Call) -> Block:
    """Return a call before its result is known."""
    name = flat_name(item)
    patch = patch_in(call)
    if patch is not None:
        paths = " ".join(dict.fromkeys(change.path for change in files_of_patch(patch)))
        shown, rest = f"apply_patch {paths}", [line for line in patch.split("\n") if _PATCHED.match(line)]
    elif call.command is not None:
        shown, *rest = call.command.strip().split("\n")
        shown = shown if name.lower() in _SHELL_NAMES else f"{name}: {shown}"
    elif call.arguments:
        pairs, rest = _flattened(call.arguments)
        shown = " ".join([name, *pairs])
    else:
        shown, *rest = f"{name} {item.arguments.strip()}".split("\n")
    pieces = [*_pieces(shown, _HEAD), *(piece for line in rest for piece in _pieces(line))]
    head, *given = pieces or [name]
    return Block([Draft("$", head)], [Draft("&", piece) for piece in given], call_id=item.call_id)


def answered(block: Block, outcome: Outcome) -> None:
    """Put a result under its call. A second result goes below the first."""
    if outcome.code and block.head and not block.printed:
        block.head[0].text += f" [exit {outcome.code}]"
    body = outcome.body.replace("\r\n", "\n").replace("\r", "\n")
    lines = [piece for line in body.split("\n") for piece in _pieces(_SPACES.sub(" ", line[:_LONGEST_READ]))]
    drafts = [Draft("|", piece) for piece in lines]
    if drafts:
        drafts[0].edge = drafts[-1].edge = True
    block.printed += drafts


def excerpt_of(blocks: list[Block], *, previous: tuple[Line, ...], known: set[str]) -> tuple[Line, ...]:
    """Return the excerpt: that of the compaction before, and the new blocks masked."""
    stood = {line.text for line in previous}
    for block in blocks:
        block.given, block.printed = _new(block.given, stood), _new(block.printed, stood)
        block.head = block.head if block.call_id else _new(block.head, stood)
    known = known.union(*(exact(line.text) for line in previous))
    judge([draft for block in blocks for draft in (*block.head, *block.given, *block.printed)], known=known)
    new: list[Line] = []
    for block in blocks:
        below = [*masked(block.given), *masked(block.printed)]
        if block.call_id:  # Whose output it is should stand wherever the output does.
            head = block.head[0]
            head.level = max(head.level, *(draft.level - _HEAD_BELOW for draft in below), 0)
            if head.text in stood and not below:
                continue
            stood.add(head.text)
        new += (Line(draft.mark, draft.level, draft.text) for draft in (*block.head, *below))
    return (*previous, *new)


def _new(drafts: list[Draft], stood: set[str]) -> list[Draft]:
    """Return the drafts whose text stands nowhere yet, and note that it does now."""
    new: list[Draft] = []
    for draft in drafts:
        if draft.text not in stood:
            stood.add(draft.text)
            new.append(draft)
    return new


def _flattened(value: object, key: str = "", depth: int = _DEEPEST) -> tuple[list[str], list[str]]:
    """Return short arguments as `key=value`, and the lines of long ones, also of those inside lists."""
    if not depth:
        return [f"{key}=…"], []
    if isinstance(value, Mapping):
        inner = [_flattened(each, str(name), depth - 1) for name, each in value.items()]
    elif isinstance(value, list) and any(isinstance(each, Mapping | list) for each in value):
        inner = [_flattened(each, key, depth - 1) for each in value]
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if "\n" in text or len(text) > _LONGEST:
            return [], [f"{key}:", *text.split("\n")]
        return [f"{key}={text}"], []
    return [pair for pairs, _ in inner for pair in pairs], [line for _, lines in inner for line in lines]


def _sentences(line: str) -> Iterator[str]:
    if len(line) <= _LONGEST // 2:
        yield from _pieces(line)
        return
    for sentence in _SENTENCE.split(line):
        yield from _pieces(sentence)


def _pieces(line: str, longest: int = _LONGEST) -> Iterator[str]:
    """Yield a line in clean pieces that are no longer than `longest`, cut where a word ends."""
    if len(line) <= longest:
        if piece := one_line(line):
            yield piece
        return
    start = 0
    while start < len(line):
        end = start + longest
        if end < len(line):
            cuts = [found.end() for found in _CUT.finditer(line, start + longest // 2, end)]
            end = cuts[-1] if cuts else end
        piece = one_line(line[start:end], 2 * _LONGEST)
        if piece:
            yield piece
        start = end
