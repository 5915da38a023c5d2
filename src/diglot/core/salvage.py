"""Salvage: tool calls that a model wrote into its text.

Small models and new templates write calls that the engine's own parser does not know, and then they come
as text. This reads the common forms (`<tool_call>`, `[TOOL_CALLS]`, `<|python_tag|>`, `<function=...>`, fenced and
bare JSON) and takes a call only when its name was declared: everything else stays text. It is
deliberately no strict parser, and it never repairs JSON.

Invariants: any cutting of the same text gives the same pieces, joined; text that cannot become a call is
passed on at once; nothing is lost, for what turns out to be no call comes out as text.
"""

from __future__ import annotations

import json
import re
from typing import Any

from diglot.core.reasoning import overlap
from diglot.core.tools import WrittenCall

_CLOSERS = {"<tool_call>": "</tool_call>", "<function=": "</function>"}
_JSON_BEHIND = ("[TOOL_CALLS]", "<|python_tag|>")
_MARKERS = (*_CLOSERS, *_JSON_BEHIND)
_START = re.compile("|".join(map(re.escape, _MARKERS)) + r"|^[ \t]*(?:```|{|\[(?!TOOL_CALLS\]))", re.MULTILINE)
_BLANK_LINE_END = re.compile(r"(?:^|\n)[ \t]*`{0,2}$")
_PLAUSIBLE = re.compile(r'[\s\[{]*(?:"(?:name|function|type|id|arguments|parameters|tool)"|$)')
_KEYS = tuple(f'"{key}"' for key in ("name", "function", "type", "id", "arguments", "parameters", "tool"))
_FENCE = re.compile(r"```[a-zA-Z_]*\s*")
_FUNCTION = re.compile(r"<function=([\w.:-]+)>(.*?)(?:</function>|$)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.:-]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_LONGEST = 262_144
_LONGEST_KEY = 64
_ENDS = frozenset("}]>`")

Piece = str | WrittenCall
_Read = tuple[list[WrittenCall], int]


class _Undecided(Exception):
    """More text is needed."""


class CallSalvage:
    """Feed text in pieces, get text and calls back in order."""

    def __init__(self, declared: frozenset[str]) -> None:
        self._declared = declared
        self._held = ""
        self._fresh = True
        self._waiting = False
        self._after_call = False

    def feed(self, piece: str) -> list[Piece]:
        """Take a piece of text in and return what became certain."""
        self._held += piece
        if self._waiting and not _ENDS.intersection(piece):
            return []
        return self._drain(final=False)

    def close(self) -> list[Piece]:
        """End: return whatever was held back."""
        return self._drain(final=True)

    def _drain(self, *, final: bool) -> list[Piece]:
        out: list[Piece] = []
        self._waiting = False
        while self._held:
            if self._after_call and self._held[0] == "\n":
                self._held = self._held[1:]
                continue
            start = self._next_start()
            if start is None:
                self._pass_on(out, len(self._held) - (0 if final else self._undecided_tail()))
                return out
            self._pass_on(out, start)
            try:
                calls, end = self._read(final=final or len(self._held) > _LONGEST)
            except _Undecided:
                self._waiting = len(self._held) > _LONGEST_KEY
                return out
            if calls:
                out.extend(calls)
                self._held = self._held[end:]
                self._fresh = self._after_call = True
            else:
                self._pass_on(out, max(1, end))
        return out

    def _pass_on(self, out: list[Piece], length: int) -> None:
        """Move the first `length` characters from what is held to the text that is certain."""
        if not length:
            return
        text, self._held = self._held[:length], self._held[length:]
        self._after_call = False
        _, newline, line = text.rpartition("\n")
        self._fresh = not line.strip(" \t") and (bool(newline) or self._fresh)
        if out and isinstance(out[-1], str):
            out[-1] += text
        else:
            out.append(text)

    def _next_start(self) -> int | None:
        """Return where the next possible call begins, its leading blanks not counted."""
        for match in _START.finditer(self._held):
            token = match.group().lstrip(" \t")
            if token in _MARKERS or match.start() > 0 or self._fresh:
                return match.end() - len(token)
        return None

    def _undecided_tail(self) -> int:
        """Return how many characters at the end could still become the start of a call."""
        tail = max(overlap(self._held, marker) for marker in _MARKERS)
        blank = _BLANK_LINE_END.search(self._held)
        if blank and (blank.start() > 0 or self._held[:1] == "\n" or self._fresh):
            tail = max(tail, len(self._held) - blank.start() - (self._held[blank.start()] == "\n"))
        return tail

    def _read(self, *, final: bool) -> _Read:
        """Read one possible call at the start of what is held: the calls, and where they end."""
        held = self._held
        for marker, closer in _CLOSERS.items():
            if held.startswith(marker):
                end = held.find(closer)
                if end < 0 and not final:
                    raise _Undecided
                stop = len(held) if end < 0 else end + len(closer)
                body = held[:stop] if marker == "<function=" else held[len(marker) : end if end >= 0 else stop]
                return self._known(_calls_in(body)), stop if end >= 0 or self._known(_calls_in(body)) else len(marker)
        for marker in _JSON_BEHIND:
            if held.startswith(marker):
                return self._json(len(marker), final=final, surely=True)
        if held.startswith("```"):
            return self._fenced(final=final)
        return self._json(0, final=final, surely=False)

    def _fenced(self, *, final: bool) -> _Read:
        opening = _FENCE.match(self._held)
        begin = opening.end() if opening else 3
        if begin == len(self._held) and not final:
            raise _Undecided
        if self._held[begin : begin + 1] not in ("{", "["):
            return [], 3
        calls, end = self._json(begin, final=final, surely=False)
        if not calls:
            return [], end
        rest = self._held[end:].lstrip()
        if not final and "```".startswith(rest[:3]) and len(rest) < len("```"):
            raise _Undecided
        return calls, len(self._held) - len(rest) + (3 if rest.startswith("```") else 0)

    def _json(self, begin: int, *, final: bool, surely: bool) -> _Read:
        """Read a JSON value that stands at `begin`. Unless it is `surely` a call, hold it only while it looks like one."""
        body = self._held[begin:]
        lead = len(body) - len(body.lstrip())
        try:
            value, end = json.JSONDecoder().raw_decode(body, lead)
        except (ValueError, RecursionError):
            if final or not (surely or _looks_like_a_call(body)):
                if not final and any(marker.startswith(self._held) for marker in _MARKERS):
                    raise _Undecided from None
                return [], max(begin, 1)
            raise _Undecided from None
        return self._known(_calls_from(value)), begin + end

    def _known(self, calls: list[WrittenCall]) -> list[WrittenCall]:
        """Return the calls if all of them are declared, else none."""
        return calls if all(call.name in self._declared for call in calls) else []


def _looks_like_a_call(body: str) -> bool:
    head = body.lstrip()
    if _PLAUSIBLE.match(head):
        return True
    key = head.lstrip("[{ \t\r\n")
    return any(known.startswith(key) for known in _KEYS)


def _calls_in(body: str) -> list[WrittenCall]:
    """Read the inside of a tagged call: JSON, or the XML-like form with one tag a parameter."""
    try:
        return _calls_from(json.loads(body))
    except (ValueError, RecursionError):
        return [call for match in _FUNCTION.finditer(body) if (call := _tagged(match.group(1), match.group(2)))]


def _tagged(name: str, body: str) -> WrittenCall | None:
    parameters = _PARAMETER.findall(body)
    if parameters:
        return WrittenCall(name, json.dumps({key: _value(text) for key, text in parameters}, ensure_ascii=False))
    try:
        arguments = json.loads(body or "{}")
    except (ValueError, RecursionError):
        return None
    return WrittenCall(name, json.dumps(arguments, ensure_ascii=False)) if isinstance(arguments, dict) else None


def _value(text: str) -> Any:
    """Return a tagged parameter as JSON where it is JSON of a non-string, else as the text it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, str) else value


def _calls_from(value: Any) -> list[WrittenCall]:
    """Return the calls that a JSON value is, or none: a call, or a list of nothing but calls."""
    values = value if isinstance(value, list) else [value]
    calls = [call for each in values if (call := _call_from(each))]
    return calls if len(calls) == len(values) else []


def _call_from(value: Any) -> WrittenCall | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = value.get("name") or (inner if isinstance(inner, str) else value.get("tool"))
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return None
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return WrittenCall(name, json.dumps(arguments, ensure_ascii=False))
