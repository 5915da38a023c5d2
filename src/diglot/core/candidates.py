"""Candidates: one possible tool call in a model's text, read while it comes.

A candidate begins with a marker, a fence or a bracket and reads on until it is a call or cannot become one. It
knows where a JSON value ends without parsing it again and again. Neighbour: `core.salvage` finds the start.

Invariants: where the text is cut makes no difference; the work is linear; a candidate holds at most `LONGEST`
characters, and holds them only while it could be a call. A call that does not end is none.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from diglot.core.tools import WrittenCall, argument_text

LONGEST: Final = 262_144
LONGEST_HEAD: Final = 128  # White space, brackets and a key or a name, before it is clear what comes.
_DEEPEST: Final = 128

MARKERS: Final = ("<tool_call>", "<function=", "[TOOL_CALLS]", "<|python_tag|>")
_FUNCTION: Final = "<function="
_FUNCTION_END: Final = "</function>"
_PARAMETER: Final = "<parameter="
_CLOSERS: Final = {"<tool_call>": ("</tool_call>",), "```": ("```",)}

_KEYS: Final = tuple(f'"{key}"' for key in ("name", "function", "type", "id", "arguments", "parameters", "tool"))
_LEAD: Final = re.compile(r"[\s\[{]*")
_FENCE: Final = re.compile(r"\w*\s*")
_NAMED: Final = re.compile(r"([\w.:-]*)(>?)\s*")
_PLAIN: Final = re.compile(r"[\s,:\dtrueflasn.E+-]+")  # All that stands in JSON outside of strings and brackets.
_QUOTED: Final = re.compile(r'[^"\\\x00-\x1f]+')


class Candidate:
    """Feed text until `calls` has some, or `over` says that there are none and `text` is text after all.

    `closers` are the closing tags that may stand behind the calls.
    """

    def __init__(self, opener: str, declared: frozenset[str]) -> None:
        self.calls: list[WrittenCall] = []
        self.over = False
        self.closers = _CLOSERS.get(opener, ())
        self._opener = opener
        self._declared = declared
        self._head = ""
        self._lead = opener
        self._source: list[str] = []
        self._size = 0
        self._name: str | None = None
        self._body: _Value | _Tagged | None = None

    @property
    def text(self) -> str:
        """All that it was made of so far."""
        return "".join((self._lead, self._head, *self._source))

    def feed(self, piece: str) -> str:
        """Take text in; return what does not belong to it once it has ended, else nothing."""
        if self._body is not None:
            return self._go_on(self._body, piece)
        head = self._head + piece
        begin = self._begin(head[:LONGEST_HEAD])
        if begin is None and len(head) < LONGEST_HEAD:
            self._head = head
            return ""
        self._head = ""
        if begin is None or begin < 0:
            self.over = True
            return head
        if self._opener in {"{", "["}:
            self._lead, head = "", self._opener + head
        self._lead += head[:begin]
        self._body = _Tagged() if self._name is not None and head[begin] != "{" else _Value()
        return self._go_on(self._body, head[begin:])

    def _go_on(self, body: _Value | _Tagged, piece: str) -> str:
        taken, whole = body.scan(piece[: LONGEST - self._size])
        self._source.append(piece[:taken])
        self._size += taken
        if whole is None and self._size < LONGEST:
            return ""
        if whole:
            calls = self._calls("".join(self._source), tagged=isinstance(body, _Tagged))
            self.calls = calls if all(call.name in self._declared for call in calls) else []
        self.over = not self.calls
        return piece[taken:]

    def _calls(self, source: str, *, tagged: bool) -> list[WrittenCall]:
        if self._name is None:
            return _calls_of(_json(source))
        arguments = _tagged_arguments(source) if tagged else _json(source)
        return [WrittenCall(self._name, argument_text(arguments))] if isinstance(arguments, dict) else []

    def _begin(self, head: str) -> int | None:
        """Return where the body begins, None while that is open, a negative number if there is none."""
        if self._opener in {"{", "["}:
            return _resembling(self._opener + head, 0)
        if self._opener == _FUNCTION:
            return self._begin_function(head, 0)
        lead = _FENCE.match(head) if self._opener == "```" else None
        begin = lead.end() if lead else len(head) - len(head.lstrip())
        if begin == len(head):
            return None
        if head[begin] in "{[":
            return _resembling(head, begin) if lead else begin
        if self._opener == "<tool_call>" and head.startswith(_FUNCTION, begin):
            return self._begin_function(head, begin + len(_FUNCTION))
        return None if self._opener == "<tool_call>" and _FUNCTION.startswith(head[begin:]) else -1

    def _begin_function(self, head: str, start: int) -> int | None:
        named = _NAMED.match(head, start)
        if named is None or named.end() == len(head):
            return None
        if not (named[1] and named[2]):
            return -1
        begin, rest = named.end(), head[named.end() :]
        if rest[0] == "{":
            self.closers = (_FUNCTION_END, *self.closers)
        elif not rest.startswith((_PARAMETER, _FUNCTION_END)):
            return None if any(mark.startswith(rest) for mark in (_PARAMETER, _FUNCTION_END)) else -1
        self._name = named[1]
        return begin


def _resembling(head: str, begin: int) -> int | None:
    """Return `begin` if the JSON there could be a call by its first key, None while that is open, else -1."""
    lead = _LEAD.match(head, begin)
    key = head[lead.end() if lead else begin :]
    if key.startswith(_KEYS):
        return begin
    return None if any(known.startswith(key) for known in _KEYS) else -1


class _Value:
    """The end of a JSON object or array, found without parsing: strings and brackets are enough."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self._escaped = False

    def scan(self, text: str) -> tuple[int, bool | None]:
        """Return how many characters belong to it, and whether it is whole: None while open, False if it is no JSON."""
        at = 0
        while at < len(text):
            run = (_QUOTED if self._quoted else _PLAIN).match(text, at) if not self._escaped else None
            if run is not None:
                at = run.end()
                continue
            whole = self._mark(text[at])
            if whole is not None:
                return at + whole, whole
            at += 1
        return at, None

    def _mark(self, mark: str) -> bool | None:
        """Take in a character that changes something."""
        if self._escaped:
            self._escaped = False
        elif self._quoted:
            if mark not in {'"', "\\"}:
                return False
            self._quoted, self._escaped = mark != '"', mark == "\\"
        elif mark == '"':
            self._quoted = True
        elif mark in "{[":
            self._depth += 1
            return False if self._depth > _DEEPEST else None
        elif mark in "}]":
            self._depth -= 1
            return None if self._depth else True
        else:
            return False
        return None


class _Tagged:
    """The end of a call that is written with one tag a parameter."""

    def __init__(self) -> None:
        self._tail = ""

    def scan(self, text: str) -> tuple[int, bool | None]:
        """Return how many characters belong to it, and whether it is whole; None while it is open."""
        seen = self._tail + text
        end = seen.find(_FUNCTION_END)
        if end >= 0:
            return end + len(_FUNCTION_END) - len(self._tail), True
        self._tail = seen[1 - len(_FUNCTION_END) :]
        return len(text), None


def _json(text: str) -> Any:
    """Return the JSON value, or None where it is none; what JSON does not know (NaN) is none either."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _tagged_arguments(body: str) -> dict[str, Any] | None:
    *parameters, rest = body.removesuffix(_FUNCTION_END).split("</parameter>")
    if rest.strip():
        return None
    arguments: dict[str, Any] = {}
    for parameter in parameters:
        lead, mark, named = parameter.partition(_PARAMETER)
        name, closed, text = named.partition(">")
        if lead.strip() or not (mark and name and closed):
            return None
        arguments[name] = _tagged_value(text.removeprefix("\n").removesuffix("\n"))
    return arguments


def _tagged_value(text: str) -> Any:
    """Return a tagged parameter as JSON where it is JSON of a non-string, else as the text it is."""
    if text.strip() == "null":
        return None
    value = _json(text)
    return text if value is None or isinstance(value, str) else value


def _calls_of(value: Any) -> list[WrittenCall]:
    """Return the calls that a JSON value is, or none: a call, or a list of nothing but calls."""
    values = value if isinstance(value, list) else [value]
    calls = [call for each in values if (call := _call_of(each))]
    return calls if len(calls) == len(values) else []


def _call_of(value: Any) -> WrittenCall | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = value.get("name") or (inner if isinstance(inner, str) else value.get("tool"))
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        arguments = _json(arguments)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return WrittenCall(name, argument_text(arguments))
