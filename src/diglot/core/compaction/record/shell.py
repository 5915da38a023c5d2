"""What a shell command does to files, as far as its text tells.

No shell: nothing is expanded and nothing is run. The command is cut into simple commands, and a table says what
each program changes. What only running it would tell (a script's own writes, a formatter's) is not known here.

Invariant: linear in the length of the command; an unbalanced quote is taken as it comes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from diglot.core.compaction.record.paths import below, name_of
from diglot.core.compaction.record.values import FileChange, FileKind

_PIECE = re.compile(
    r"""(?P<quoted>'[^']*'|"(?:[^"\\]|\\.)*")|(?P<escaped>\\.)|(?P<redirect>(?:\d+|&)?>>?\|?(?:&\d?)?|<<<|<)"""
    r"""|(?P<end>&&|\|\|?|;;?|&|\n|[()])|(?P<space>[ \t\r]+)|(?P<word>[^\s'"\\<>|;&()]+|.)""",
    re.DOTALL,
)
_HEREDOC = re.compile(r"<<-?[ \t]*(?P<quote>['\"]?)(?P<tag>\w+)(?P=quote)")
_OUTSIDE = re.compile(r"(?:/dev/|/tmp/|/var/tmp/|/proc/|\$|&|-$|\d$)")
_ASSIGNMENT = re.compile(r"\w+=")
_SCRIPTED = (
    re.compile(r"""\bopen\(\s*f?['"]([^'"\n]{1,300})['"]\s*,\s*['"][wax]"""),
    re.compile(r"""\bPath\(\s*['"]([^'"\n]{1,300})['"]\s*\)\.write_(?:text|bytes)"""),
    re.compile(r"""\b(?:write|append)File(?:Sync)?\(\s*['"]([^'"\n]{1,300})['"]"""),
)
_DIFF = re.compile(r"^--- (?:a/)?(?P<old>\S+)[^\n]*\n\+\+\+ (?:b/)?(?P<new>\S+)", re.MULTILINE)
_LONGEST = 200_000
_LONGEST_PATH = 512
_PREFIXES = frozenset({"sudo", "env", "time", "command", "nohup", "exec", "then", "do", "else", "!", "{"})


class Simple(msgspec.Struct):
    """One simple command: its words, where its output goes, and the text it was fed."""

    words: list[str] = []
    outputs: list[tuple[str, bool]] = []
    fed: str = ""


def shell_changes(command: str) -> Iterator[tuple[FileChange, str]]:
    """Yield each change with the program that made it; a path stands as in the command, below its `cd`s."""
    folder = ""
    for simple in parse_shell(command[:_LONGEST]):
        while simple.words and (simple.words[0] in _PREFIXES or _ASSIGNMENT.match(simple.words[0])):
            simple.words.pop(0)
        program = name_of(simple.words[0]) if simple.words else ""
        if program == "cd" and len(simple.words) > 1:
            folder = below(folder, simple.words[1])[:_LONGEST_PATH]
            continue
        for change in (*_redirected(simple), *_made_by(program, simple)):
            if not _OUTSIDE.match(change.path):
                yield placed(change, folder), program


def placed(change: FileChange, folder: str) -> FileChange:
    """Return the change with its paths below a folder, and without `./`."""
    source = below(folder, change.source) if change.source else ""
    return FileChange(below(folder, change.path), change.kind, source)


def parse_shell(command: str) -> list[Simple]:
    """Cut a command into simple commands."""
    script, documents = _without_documents(command)
    done: list[Simple] = []
    current, word, target = Simple(), "", None
    for piece in _PIECE.finditer(script + "\n"):
        kind, text = piece.lastgroup, piece[0]
        if kind in {"quoted", "escaped", "word"}:
            word += text[1:-1] if kind == "quoted" else text[1:] if kind == "escaped" else text
            continue
        if word and target is not None:
            current.outputs.append((word, ">>" in target))
            target = None
        elif word:
            current.words.append(word)
        word = ""
        if kind == "redirect":
            target = text if ">" in text and not text.endswith("&") and text[-1:] != "1" else None
        elif kind == "end":
            if current.words and current.words[-1].startswith("\0"):
                current.fed = documents[int(current.words.pop()[1:])]
            if current.words or current.outputs:
                done.append(current)
            current, target = Simple(), None
    return done


def _without_documents(command: str) -> tuple[str, list[str]]:
    """Return the command with each here-document replaced by a numbered word, and the documents."""
    documents: list[str] = []
    lines = command.replace("\\\n", " ").replace("\0", " ").split("\n")
    out: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        opened = _HEREDOC.search(line)
        if opened:
            start = index
            while index < len(lines) and lines[index].strip() != opened["tag"]:
                index += 1
            line = f"{line[: opened.start()]} {line[opened.end() :]} \0{len(documents)}"
            documents.append("\n".join(lines[start:index]))
            index += 1
        out.append(line)
    return "\n".join(out), documents


def _redirected(simple: Simple) -> Iterator[FileChange]:
    for path, appended in simple.outputs:
        yield FileChange(path, "updated" if appended else "written")


def _made_by(program: str, simple: Simple) -> Iterator[FileChange]:
    words = simple.words[1:]
    rule = _PROGRAMS.get(program)
    if program == "git":
        rule, words = _GIT.get(words[0] if words else ""), words[1:]
    if rule:
        yield from rule(words, simple.fed)
    elif simple.fed or program.startswith(("python", "node")):
        for text in (simple.fed, *words):
            for pattern in _SCRIPTED:
                yield from (FileChange(path, "written") for path in pattern.findall(text))


Rule = Callable[[list[str], str], Iterator[FileChange]]


def _operands(words: list[str]) -> list[str]:
    return [word for word in words if not word.startswith("-") and word]


def _each(kind: FileKind) -> Rule:
    def rule(words: list[str], _fed: str) -> Iterator[FileChange]:
        yield from (FileChange(path, kind) for path in _operands(words))

    return rule


def _moved(words: list[str], _fed: str) -> Iterator[FileChange]:
    *sources, target = _operands(words) or [""]
    for source in sources:
        inside = len(sources) > 1 or target.endswith("/")
        yield FileChange(below(target, name_of(source)) if inside else target, "moved", source)


def _copied(words: list[str], _fed: str) -> Iterator[FileChange]:
    yield from (FileChange(change.path, "added") for change in _moved(words, ""))


def _in_place(words: list[str], _fed: str) -> Iterator[FileChange]:
    """`sed -i` and `perl -pi`: the first operand is the script, unless an option gave it."""
    if not any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in words):
        return
    scripted = any(re.match(r"-[a-zA-Z]*e$|-f$|--expression", word) for word in words)
    operands: list[str] = []
    skip = False
    for word in words:
        if skip or not word:
            skip = False
        elif word.startswith("-"):
            skip = bool(re.match(r"-[a-zA-Z]*e$|-f$|--expression$", word))
        else:
            operands.append(word)
    yield from (FileChange(path, "updated") for path in (operands if scripted else operands[1:]))


def _patched(words: list[str], fed: str) -> Iterator[FileChange]:
    for found in _DIFF.finditer(fed):
        if found["new"] == "/dev/null":
            yield FileChange(found["old"], "deleted")
        else:
            yield FileChange(found["new"], "added" if found["old"] == "/dev/null" else "updated")
    if not fed:
        yield from (FileChange(path, "updated") for path in _operands(words)[:1] if not path.isdigit())


_PROGRAMS: Final[dict[str, Rule]] = {
    "rm": _each("deleted"),
    "unlink": _each("deleted"),
    "touch": _each("added"),
    "tee": _each("updated"),
    "mv": _moved,
    "cp": _copied,
    "install": _copied,
    "sed": _in_place,
    "gsed": _in_place,
    "perl": _in_place,
    "patch": _patched,
}
_GIT: Final[dict[str, Rule]] = {
    "mv": _moved,
    "rm": _each("deleted"),
    "apply": lambda _words, fed: _patched([], fed) if fed else iter(()),
}
