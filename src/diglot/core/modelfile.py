'''Modelfiles: a model written down as lines of commands.

    FROM ./model.gguf
    PARAMETER temperature 0.5
    SYSTEM """
    You are brief.
    """

A command's name is in any case of letters. Its text goes to the end of the line, or, if it begins with quotation
marks, one or three, to the next line that ends with as many. Lines that begin with `#` are comments. The grammar is
that of Ollama's own (parser/parser.go). Pure: no file is opened here. Neighbours: the command line reads what a
person wrote, `dialects.ollama` writes what a model is.

Invariant: what was written here reads as it was, but for a text with a line that ends in three quotation marks,
which the grammar has no form for: there a blank parts them.
'''

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

import msgspec

Kind = Literal[
    "from", "adapter", "template", "system", "parameter", "license", "message", "renderer", "parser", "requires"
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MARKS: Final[tuple[Kind, ...]] = ("renderer", "parser", "requires")
ROLES: Final = ("system", "user", "assistant")
_QUOTES: Final = ('"""', '"')
_WORD: Final = re.compile(r"(\S+)\s*(.*)", re.DOTALL)


class InvalidModelfile(ValueError):
    """The text is no Modelfile; `line`, counted from 1, is where, and `reason` says why."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


class Command(msgspec.Struct, frozen=True):
    """One command. `key` is the name of a parameter or the role of a message; `line` is where it was read."""

    kind: Kind
    text: str
    key: str = ""
    line: int = 0


def decode_modelfile(data: bytes) -> str:
    """Return the text of a file: UTF-8, or UTF-16 that says so in its first bytes. Raises InvalidModelfile."""
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidModelfile(line, f"it is no text in {'UTF-16' if wide else 'UTF-8'}") from None


def read_modelfile(text: str) -> tuple[Command, ...]:
    """Return the commands, of which one at least is FROM. Raises InvalidModelfile."""
    lines = text.split("\n")
    commands = tuple(_commands(lines))
    if not any(command.kind == "from" for command in commands):
        raise InvalidModelfile(len(lines), "there is no FROM, which says what the model is made of")
    return commands


def write_modelfile(commands: Iterable[Command]) -> str:
    """Return one line for each command, or several where its text has them."""
    return "".join(
        " ".join(filter(None, (command.kind.upper(), command.key, _quoted(command.text)))) + "\n"
        for command in commands
    )


def _commands(lines: list[str]) -> Iterator[Command]:
    numbered = iter(enumerate(lines, 1))
    for number, line in numbered:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        word, rest = _parted(line.lstrip())
        kind = next((kind for kind in KINDS if kind == word.lower()), None)
        if kind is None:
            raise InvalidModelfile(number, f"{word[:40]!r} is no command; there are {', '.join(KINDS).upper()}")
        key = ""
        if kind in ("parameter", "message"):
            key, rest = _parted(rest)
            key = key.lower()
            _check_key(kind, key, number)
        said = _text(number, rest, numbered)
        if kind == "from" and not said:
            raise InvalidModelfile(number, "FROM names nothing")
        yield Command(kind, said, key, number)


def _parted(line: str) -> tuple[str, str]:
    """Return the first word of a line, and the rest."""
    match = _WORD.match(line)
    return (match[1], match[2]) if match else ("", "")


def _check_key(kind: Kind, key: str, number: int) -> None:
    if not key:
        raise InvalidModelfile(number, f"{kind.upper()} names nothing")
    if kind == "message" and key not in ROLES:
        raise InvalidModelfile(number, f"the role of a message is {', '.join(ROLES)}, not {key[:40]!r}")


def _text(number: int, rest: str, following: Iterator[tuple[int, str]]) -> str:
    """Return a text without its quotation marks, reading on to the line that closes them."""
    marks = next((marks for marks in _QUOTES if rest.startswith(marks)), "")
    lines = [rest]
    closed = _closed(rest.strip(), marks)
    while not closed:
        later = next(following, None)
        if later is None:
            raise InvalidModelfile(number, f"the text that begins with {marks} here has no end")
        lines.append(later[1])
        closed = later[1].rstrip().endswith(marks)
    text = "\n".join(lines).strip()
    return text[len(marks) : len(text) - len(marks)] if marks else text


def _closed(text: str, marks: str) -> bool:
    return text.endswith(marks) and (not marks or len(text) >= 2 * len(marks))


def _quoted(text: str) -> str:
    """Quote a text that would not read as it is."""
    if text and "\n" not in text and text == text.strip() and not text.startswith('"'):
        return text
    if '"' not in text:
        return f'"{text}"'
    text = re.sub(r'"""(?=\s*\n)', '"" "', text)
    return f'"""{text}"""'


_WHOLE: Final = (
    *("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "num_keep", "num_predict", "draft_num_predict"),
    *("seed", "top_k", "repeat_last_n"),
)
_FRACTION: Final = (
    *("temperature", "top_p", "min_p", "typical_p"),
    *("repeat_penalty", "presence_penalty", "frequency_penalty"),
)
DEAD: Final = (
    *("numa", "low_vram", "f16_kv", "logits_all", "vocab_only", "use_mlock", "embedding_only", "tfs_z"),
    *("mirostat", "mirostat_tau", "mirostat_eta", "penalize_newline"),
)
"""Parameters of earlier versions of Ollama, which it passes over as well."""
_TRUTHS: Final[Mapping[str, bool]] = MappingProxyType(
    {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
)


def parameters_of(commands: Iterable[Command]) -> dict[str, Any]:
    """Return the parameters with values of their types, those that have no effect left out. Raises InvalidModelfile."""
    found: dict[str, Any] = {}
    for command in commands:
        if command.kind != "parameter" or command.key in DEAD:
            continue
        if command.key == "stop":
            found.setdefault("stop", []).append(command.text)
        else:
            found[command.key] = _typed(command)
    return found


def _typed(command: Command) -> float | bool:
    name, text = command.key, command.text.strip()
    if name in _WHOLE or name in _FRACTION:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise InvalidModelfile(command.line, f"{name} is a number, not {text[:40]!r}")
        return int(number) if name in _WHOLE else number
    if name == "use_mmap":
        if text.lower() not in _TRUTHS:
            raise InvalidModelfile(command.line, f"{name} is true or false, not {text[:40]!r}")
        return _TRUTHS[text.lower()]
    raise InvalidModelfile(command.line, f"there is no parameter {name[:40]!r}")
