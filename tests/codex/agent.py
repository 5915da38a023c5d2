"""The real Codex, in folders of its own: how it is started, and what it says as it goes.

It is started with the arguments that `diglot launch codex --show` prints, and with what keeps a test to itself: no
analytics, no look for updates, a proxy that nobody answers for whatever is not this machine.
"""

from __future__ import annotations

import ast
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tests.serving import Served

FOLDER: Final = Path(__file__).parent
NEWEST: Final = FOLDER / "node_modules/@openai/codex/bin/codex.js"
OLDER: Final = FOLDER / "node_modules/codex-of-the-older-door/bin/codex.js"
PATIENCE: Final = 250.0
_QUIET: Final = {
    "analytics.enabled": "false",
    "check_for_update_on_startup": "false",
    "approval_policy": '"never"',
    "sandbox_mode": '"danger-full-access"',  # There are machines for tests on which no sandbox can be made.
}
_NOWHERE: Final = "http://127.0.0.1:9"


class Run:
    """What a run of Codex has said. `events` are the lines of `--json`."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.events: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    def items(self, kind: str) -> list[dict[str, Any]]:
        """Return the items of one kind that came to their end."""
        done = [event["item"] for event in self.events if event["type"] == "item.completed"]
        return [item for item in done if item["type"] == kind]

    @property
    def said(self) -> list[str]:
        """What the model said."""
        return [item["text"] for item in self.items("agent_message")]

    @property
    def thread(self) -> str:
        """The name of the session."""
        return str(next(event["thread_id"] for event in self.events if event["type"] == "thread.started"))

    @property
    def last(self) -> dict[str, Any]:
        """The last event."""
        return self.events[-1]

    def shown(self) -> str:
        """Everything, for a test that fails."""
        return f"code {self.code}\n{self.out}\n{self.err}"


class Codex:
    """A Codex with a home and a workspace below a folder. `node` runs it."""

    def __init__(self, node: Path, folder: Path, *, program: Path = NEWEST) -> None:
        self._node = node
        self._program = program
        self.workspace = folder / "workspace"
        self.home = folder / "codex"
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)

    def exec(self, url: str, *words: str, model: str = "scripted", settings: dict[str, str] | None = None) -> Run:
        """Run `codex exec` to its end. `words` are the prompt, or `resume` and more."""
        env, line = self.command(url, model=model, settings=settings)
        return self.run(env, [*line, "exec", "--json", "--skip-git-repo-check", *words])

    def run(self, env: dict[str, str], line: Sequence[str]) -> Run:
        """Run a command line in the workspace."""
        pipe = subprocess.PIPE
        with subprocess.Popen(
            line,
            cwd=self.workspace,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=PATIENCE)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # Node has started another process, which must not stay.
        return Run(process.returncode, out, err)

    def written(self) -> list[dict[str, Any]]:
        """Return the lines of the one session that it has written down."""
        (path,) = self.home.glob("sessions/**/*.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]

    def command(
        self, url: str, *, model: str = "scripted", settings: dict[str, str] | None = None
    ) -> tuple[dict[str, str], list[str]]:
        """Return the environment and the beginning of a command line, as `diglot launch` has them."""
        line = [sys.executable, "-m", "diglot", "launch", "codex", "--url", url, "--model", model, "--show"]
        printed = subprocess.run(line, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
        token, _, *arguments = shlex.split(printed)
        return self.env(token), [*self.bare(*arguments), *_options(settings or {})]

    def bare(self, *arguments: str) -> list[str]:
        """Return the beginning of a command line that knows of no server."""
        return [str(self._node), str(self._program), *_options(_QUIET), *arguments]

    def env(self, *variables: str) -> dict[str, str]:
        """Return an environment with these variables, in which nothing leads away from this machine."""
        nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _NOWHERE)
        own = {"CODEX_HOME": str(self.home), "HOME": str(self.home), "NO_PROXY": "127.0.0.1,localhost"}
        given = dict(variable.split("=", 1) for variable in variables)
        return {"PATH": os.environ["PATH"], **nowhere, **own, **given}


def _options(settings: dict[str, str]) -> list[str]:
    return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]


def asked(served: Served) -> list[str]:
    """Return the prompts that the scripted model has read so far, in order."""
    marked = "engines.scripted.engine: read "
    return [ast.literal_eval(line.split(marked, 1)[1]) for line in served.log if marked in line]
