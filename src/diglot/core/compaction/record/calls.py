"""Calls and results as the record reads them: by the shape of their arguments, not by one client's names.

A shell call is one that is given a command; how a run ended is read from the forms in which agents report it.
Arguments that are no JSON (cut off once, or freeform) are text. Neighbours: `changes` and
`runs` take what is read here.

Invariant: whatever a call or a result holds, reading it raises nothing.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

from diglot.core.items import ToolCall

_COMMAND_KEYS = ("cmd", "command", "script", "command_line", "commandLine", "shell_command", "bash")
_WORKDIR_KEYS = ("workdir", "cwd", "working_directory", "workingDirectory")
_PATH_KEYS = ("path", "file_path", "filePath", "filename", "target_file", "file", "relative_path", "absolute_path")
_EDITOR_VERBS = frozenset({"view", "create", "str_replace", "insert", "undo_edit"})
_SHELLS = re.compile(r"(?:.*/)?(?:ba|z|da|k|fi)?sh|(?:.*/)?(?:pwsh|powershell)(?:\.exe)?|cmd(?:\.exe)?", re.IGNORECASE)
_LONGEST_JSON = 2_000_000
_EDGE = 400

_HEADER = re.compile(
    r"\A(?:(?:Chunk ID|Wall time|Original token count|Total output lines|Exit code|Process exited with code"
    r"|Process running with session ID)\b[^\n]*\n){1,8}(?:Output:(?:\n|\Z))?"
)
_HEADER_CODE = re.compile(r"^(?:Exit code:?|Process exited with code) *(-?\d{1,10})", re.MULTILINE)
_HEADER_SESSION = re.compile(r"^Process running with session ID (\d{1,10})", re.MULTILINE)
_CODES = (
    re.compile(r"<(?:exit_code|exit-code|returncode)>\s*(-?\d{1,10})\s*</"),
    re.compile(
        r"^\W{0,3}(?:(?:command|process|script|program)\s+)?(?:failed|finished|completed|exited|exit(?:ed)?)?\s*"
        r"(?:with\s+)?(?:exit|return)?[ _]?(?:code|status)\s*[:=]?\s*(-?\d{1,10})\W{0,3}$",
        re.IGNORECASE | re.MULTILINE,
    ),
    re.compile(r"^(?:\[|\()?(?:exit|rc|returncode|exit_code)[ :=]+(-?\d{1,10})[\])]?$", re.IGNORECASE | re.MULTILINE),
)
_TIMED_OUT = re.compile(r"\A\W*(?:command )?timed? ?out after", re.IGNORECASE)
_REFUSED = re.compile(
    r"\A\W*(?:(?:tool |internal |\w{1,40})?(?:error|exception)\b|fail(?:ed|ure)\b|fatal\b|traceback\b|unable to|could ?n[o']t|"
    r"cannot|can't|no (?:match|replacement|changes?)|(?:old_?str\w*|string|text|file|path)\b[^\n]{0,80}\bnot found|"
    r"permission denied|invalid|unsupported call|aborted|rejected|denied|apply_patch verification failed|"
    r"\S{1,60} (?:verification )?failed\b|the user (?:rejected|doesn't want)|patch (?:rejected|failed))",
    re.IGNORECASE,
)


class Call(msgspec.Struct, frozen=True):
    """A call read: its arguments (empty where they are no object), the command that it runs, and where."""

    name: str
    arguments: Mapping[str, Any]
    text: str
    command: str | None = None
    workdir: str = ""

    @property
    def path(self) -> str | None:
        """The one file that the call is about."""
        return first_text(self.arguments, _PATH_KEYS)


class Outcome(msgspec.Struct, frozen=True):
    """A result read: the exit status where it tells one, what was printed, whether the call failed.

    `session` is the number of a process that still runs.
    """

    code: int | None
    body: str
    failed: bool
    session: str | None = None


def read_call(item: ToolCall) -> Call:
    """Read a call."""
    arguments = _object(item.arguments)
    editing = arguments.get("command") in _EDITOR_VERBS if isinstance(arguments.get("command"), str) else False
    command = None if editing else _command(arguments)
    if command is None and not arguments and item.name in {"bash", "shell", "exec"}:
        command = item.arguments
    return Call(
        name=item.name,
        arguments=arguments,
        text=item.arguments,
        command=command,
        workdir=first_text(arguments, _WORKDIR_KEYS) or "",
    )


def read_outcome(text: str) -> Outcome:
    """Read a result."""
    start = text.lstrip()[:1]
    if start == "{" and (report := _object(text)):
        return _reported(report, text)
    if start == "[" and (reports := _reports(text)):
        outcomes = [_reported(each, "") for each in reports]
        code = next((each.code for each in outcomes if each.code), outcomes[-1].code)
        return _outcome(code, "\n".join(each.body for each in outcomes))
    header = _HEADER.match(text)
    if header:
        number = _HEADER_CODE.search(header[0])
        session = _HEADER_SESSION.search(header[0])
        body = text[header.end() :]
        return _outcome(int(number[1]) if number else None, body, session=session[1] if session else None)
    edges = text if len(text) <= 2 * _EDGE else f"{text[:_EDGE]}\n{text[-_EDGE:]}"
    told = next((found for pattern in _CODES if (found := pattern.search(edges))), None)
    return _outcome(int(told[1]) if told else None, text)


def first_text(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    """Return the value of the first of these keys that holds text."""
    return next((value for key in keys if isinstance(value := arguments.get(key), str) and value), None)


def _outcome(code: int | None, body: str, *, session: str | None = None) -> Outcome:
    failed = code != 0 if code is not None else bool(_REFUSED.match(body[:400]) or _TIMED_OUT.match(body[:100]))
    return Outcome(code=code, body=body, failed=failed, session=session)


def _reported(report: Mapping[str, Any], text: str) -> Outcome:
    """Read a result that is a JSON object."""
    metadata = report.get("metadata")
    codes = [each for each in (metadata, report.get("outcome"), report) if isinstance(each, Mapping)]
    keys = ("exit_code", "exitCode", "returncode", "return_code", "exitStatus", "exit_status")
    code = next((each[key] for each in codes for key in keys if type(each.get(key)) is int), None)
    printed = [report[key] for key in ("output", "stdout", "stderr") if isinstance(report.get(key), str)]
    told = any(report.get(key) for key in ("error", "isError", "is_error")) or report.get("success") is False
    told = told or report.get("status") in {"failed", "error"}
    body = "\n".join(filter(None, printed)) if printed else text
    outcome = _outcome(code, body)
    return Outcome(code=code, body=body, failed=outcome.failed or (told and code is None))


def _command(arguments: Mapping[str, Any]) -> str | None:
    action = arguments.get("action")
    places = [arguments, action] if isinstance(action, Mapping) else [arguments]
    for place in places:
        for key in _COMMAND_KEYS:
            value = place.get(key)
            if isinstance(value, str) and value.strip():
                return value
            if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
                return _unwrapped(value)
        lines = place.get("commands")
        if isinstance(lines, list) and lines and all(isinstance(line, str) for line in lines):
            return "\n".join(lines)
    return None


def _unwrapped(words: list[str]) -> str:
    """Return the command inside `bash -lc ...`, or the words as one command."""
    if len(words) >= 3 and _SHELLS.fullmatch(words[0]):  # noqa: PLR2004  shell, option, script
        return words[-1]
    if len(words) == 2 and words[0].endswith("apply_patch"):  # noqa: PLR2004  the program and its patch
        return f"apply_patch <<'EOF'\n{words[1]}\nEOF"
    return shlex.join(words)


def _object(text: str) -> Mapping[str, Any]:
    value = _json(text) if text.lstrip()[:1] == "{" else None
    return value if isinstance(value, dict) else {}


def _reports(text: str) -> list[Mapping[str, Any]]:
    """Return the results of several commands at once, as OpenAI's shell tool gives them."""
    value = _json(text)
    reports = value if isinstance(value, list) else []
    return reports if all(isinstance(each, dict) and "outcome" in each for each in reports) else []


def _json(text: str) -> Any:
    if len(text) > _LONGEST_JSON:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
