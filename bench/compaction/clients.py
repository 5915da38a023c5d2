"""Coding agents as they call their tools: the same deed in the form of each.

Each client knows how it runs a command, changes, writes, moves and reads a file and keeps its plan, and how the
result comes back. It invents nothing: what is run and printed, the session tells it.
"""

from __future__ import annotations

import json
import random
from typing import Any, ClassVar

from diglot.core.items import Item, Text, ToolCall, ToolResult
from diglot.core.request import ToolSpec

Pair = tuple[ToolCall, ToolResult]
Steps = list[tuple[str, int]]
"""A plan: text, and 0 for open, 1 for under way, 2 for done."""


def _spec(name: str, *keys: str, namespace: str | None = None) -> ToolSpec:
    properties = {key: {"type": "string"} for key in keys}
    return ToolSpec(name=name, parameters={"type": "object", "properties": properties}, namespace=namespace)


class Client:
    """What all clients have. `root` is the folder that the session works in."""

    tools: ClassVar[tuple[ToolSpec, ...]] = ()

    def __init__(self, rng: random.Random, root: str) -> None:
        self.rng = rng
        self.root = root
        self.made = 0

    def pair(
        self, name: str, arguments: Any, output: str, *, namespace: str | None = None, freeform: bool = False
    ) -> Pair:
        """Return a call and its result."""
        self.made += 1
        call_id = f"call_{self.rng.randrange(16**8):08x}_{self.made}"
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        kind: Any = "freeform" if freeform else "function"
        call = ToolCall(call_id=call_id, name=name, arguments=text, namespace=namespace, kind=kind)
        return call, ToolResult(call_id=call_id, content=(Text(output),), kind=kind)

    def run(self, command: str, output: str, code: int) -> Pair:
        """Run a command."""
        raise NotImplementedError

    def edit(self, path: str, old: str, new: str, *, fails: bool) -> Pair:
        """Replace lines of a file."""
        raise NotImplementedError

    def write(self, path: str, text: str) -> Pair:
        """Write a file."""
        raise NotImplementedError

    def read(self, path: str, text: str) -> Pair:
        """Read a file."""
        raise NotImplementedError

    def plan(self, steps: Steps) -> Pair:
        """Set the plan."""
        raise NotImplementedError

    def look_up(self, what: str, arguments: dict[str, Any], output: str) -> Pair:
        """Ask something that is no file and no command."""
        return self.run(f"gh {what} view {' '.join(map(str, arguments.values()))}", output, 0)


class Codex(Client):
    """Codex today: exec_command, and apply_patch as a freeform tool."""

    tools: ClassVar[tuple[ToolSpec, ...]] = (
        _spec("exec_command", "cmd", "workdir"),
        ToolSpec(name="apply_patch", kind="freeform"),
        _spec("update_plan", "plan"),
    )

    def run(self, command: str, output: str, code: int) -> Pair:
        """Run a command."""
        arguments: dict[str, Any] = {"cmd": command}
        if self.rng.random() < 0.6:
            arguments["workdir"] = self.root
        if self.rng.random() < 0.3:
            arguments["yield_time_ms"] = 10000
        return self.pair("exec_command", arguments, self._report(output, code))

    def _report(self, output: str, code: int) -> str:
        return (
            f"Chunk ID: {self.rng.randrange(16**6):06x}\nWall time: {self.rng.random() * 9:.4f} seconds\n"
            f"Process exited with code {code}\nOriginal token count: {len(output) // 4}\nOutput:\n{output}"
        )

    def edit(self, path: str, old: str, new: str, *, fails: bool) -> Pair:
        """Replace lines of a file."""
        return self._patch(self.update(path, old, new), f"M {path}", fails=fails, path=path)

    def write(self, path: str, text: str) -> Pair:
        """Write a file."""
        body = "\n".join("+" + line for line in text.split("\n"))
        return self._patch(f"*** Begin Patch\n*** Add File: {path}\n{body}\n*** End Patch", f"A {path}", path=path)

    @staticmethod
    def update(path: str, old: str, new: str) -> str:
        """Return the patch that replaces lines."""
        out = "\n".join("-" + line for line in old.split("\n"))
        put = "\n".join("+" + line for line in new.split("\n"))
        return f"*** Begin Patch\n*** Update File: {path}\n@@\n{out}\n{put}\n*** End Patch"

    def _patch(self, patch: str, listed: str, *, path: str, fails: bool = False) -> Pair:
        if fails:
            return self.hand(patch, f"apply_patch verification failed: Failed to find expected lines in {path}:\n", 1)
        return self.hand(patch, f"Success. Updated the following files:\n{listed}\n", 0)

    def hand(self, patch: str, output: str, code: int) -> Pair:
        """Hand a patch over."""
        report = output if code else f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{output}"
        return self.pair("apply_patch", patch, report, freeform=True)

    def read(self, path: str, text: str) -> Pair:
        """Read a file."""
        count = text.count("\n") + 1
        command = self.rng.choice([f"cat {path}", f"sed -n '1,{count}p' {path}", f"nl -ba {path} | head -{count}"])
        if command.startswith("nl"):
            text = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(text.split("\n"), 1))
        return self.run(command, text, 0)

    def plan(self, steps: Steps) -> Pair:
        """Set the plan."""
        names = ("pending", "in_progress", "completed")
        plan = [{"step": text, "status": names[status]} for text, status in steps]
        return self.pair("update_plan", {"plan": plan}, "Plan updated")


class Shell(Codex):
    """Codex with one shell function, and patches as here-documents in it; results as JSON."""

    tools: ClassVar[tuple[ToolSpec, ...]] = (_spec("shell", "command", "workdir"), _spec("update_plan", "plan"))

    def run(self, command: str, output: str, code: int) -> Pair:
        """Run a command."""
        report = {
            "output": output,
            "metadata": {"exit_code": code, "duration_seconds": round(self.rng.random() * 9, 1)},
        }
        arguments = {"command": ["bash", "-lc", command], "workdir": self.root}
        return self.pair("shell", arguments, json.dumps(report, ensure_ascii=False))

    def hand(self, patch: str, output: str, code: int) -> Pair:
        """Hand a patch over."""
        return self.run(f"apply_patch <<'PATCH'\n{patch}\nPATCH", output, code)


class Mcp(Codex):
    """Codex with servers for files and issues, under namespaces."""

    tools: ClassVar[tuple[ToolSpec, ...]] = (
        _spec("exec_command", "cmd"),
        _spec("read_text_file", "path", namespace="mcp__files"),
        _spec("edit_file", "path", "edits", namespace="mcp__files"),
        _spec("write_file", "path", "content", namespace="mcp__files"),
        _spec("get", "key", namespace="mcp__tracker"),
        _spec("update_plan", "plan"),
    )

    def edit(self, path: str, old: str, new: str, *, fails: bool) -> Pair:
        """Replace lines of a file."""
        output = "Error: Could not find exact match for edit" if fails else f"```diff\n-{old}\n+{new}\n```"
        arguments = {"path": f"{self.root}/{path}", "edits": [{"oldText": old, "newText": new}]}
        return self.pair("edit_file", arguments, output, namespace="mcp__files")

    def write(self, path: str, text: str) -> Pair:
        """Write a file."""
        arguments = {"path": f"{self.root}/{path}", "content": text}
        return self.pair("write_file", arguments, f"Successfully wrote to {path}", namespace="mcp__files")

    def read(self, path: str, text: str) -> Pair:
        """Read a file."""
        return self.pair("read_text_file", {"path": f"{self.root}/{path}"}, text, namespace="mcp__files")

    def look_up(self, what: str, arguments: dict[str, Any], output: str) -> Pair:
        """Ask the tracker."""
        return self.pair("get", {"what": what, **arguments}, output, namespace="mcp__tracker")


class Editor(Client):
    """An agent with Bash, Read, Edit, Write and a list of todos."""

    tools: ClassVar[tuple[ToolSpec, ...]] = (
        _spec("Bash", "command"),
        _spec("Read", "file_path"),
        _spec("Edit", "file_path", "old_string", "new_string"),
        _spec("Write", "file_path", "content"),
        _spec("TodoWrite", "todos"),
    )

    def run(self, command: str, output: str, code: int) -> Pair:
        """Run a command."""
        text = f"Exit code {code}\n{output}" if code else output
        return self.pair("Bash", {"command": command, "description": "Run it"}, text)

    def edit(self, path: str, old: str, new: str, *, fails: bool) -> Pair:
        """Replace lines of a file."""
        output = "String to replace not found in file." if fails else f"The file {path} has been updated."
        if self.rng.random() < 0.3:
            edits = [{"old_string": old, "new_string": new}]
            return self.pair("MultiEdit", {"file_path": f"{self.root}/{path}", "edits": edits}, output)
        return self.pair("Edit", {"file_path": f"{self.root}/{path}", "old_string": old, "new_string": new}, output)

    def write(self, path: str, text: str) -> Pair:
        """Write a file."""
        return self.pair(
            "Write", {"file_path": f"{self.root}/{path}", "content": text}, f"File created successfully at: {path}"
        )

    def read(self, path: str, text: str) -> Pair:
        """Read a file."""
        shown = "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 1))
        return self.pair("Read", {"file_path": f"{self.root}/{path}"}, shown)

    def plan(self, steps: Steps) -> Pair:
        """Set the plan."""
        names = ("pending", "in_progress", "completed")
        todos = [{"content": text, "status": names[status], "id": str(n)} for n, (text, status) in enumerate(steps)]
        return self.pair("TodoWrite", {"todos": todos}, "Todos have been modified successfully.")


class Workbench(Client):
    """An agent with execute_command and one editor tool of several verbs."""

    tools: ClassVar[tuple[ToolSpec, ...]] = (
        _spec("execute_command", "command", "cwd"),
        _spec("str_replace_editor", "command", "path", "old_str", "new_str", "file_text"),
        _spec("todo", "items"),
    )

    def run(self, command: str, output: str, code: int) -> Pair:
        """Run a command."""
        text = (
            f"{output}\n\nCommand failed with exit code {code}"
            if code
            else f"{output}\n\nCommand completed with exit code 0"
        )
        return self.pair("execute_command", {"command": command, "cwd": self.root}, text)

    def edit(self, path: str, old: str, new: str, *, fails: bool) -> Pair:
        """Replace lines of a file."""
        output = f"No replacement was performed, old_str did not appear verbatim in {path}." if fails else "Edited."
        arguments = {"command": "str_replace", "path": f"{self.root}/{path}", "old_str": old, "new_str": new}
        return self.pair("str_replace_editor", arguments, output)

    def write(self, path: str, text: str) -> Pair:
        """Write a file."""
        arguments = {"command": "create", "path": f"{self.root}/{path}", "file_text": text}
        return self.pair("str_replace_editor", arguments, f"File created successfully at: {path}")

    def read(self, path: str, text: str) -> Pair:
        """Read a file."""
        arguments = {"command": "view", "path": f"{self.root}/{path}"}
        return self.pair("str_replace_editor", arguments, f"Here's the result of running `cat -n`:\n{text}")

    def plan(self, steps: Steps) -> Pair:
        """Set the plan."""
        names = ("todo", "doing", "done")
        return self.pair("todo", {"items": [{"title": text, "state": names[status]} for text, status in steps]}, "ok")


CLIENTS: dict[str, type[Client]] = {
    "codex": Codex,
    "shell": Shell,
    "mcp": Mcp,
    "editor": Editor,
    "workbench": Workbench,
}


def both(pair: Pair) -> list[Item]:
    """Return the pair as items."""
    return list(pair)
