"""`codex app-server`: the Codex that editors talk to, by JSON-RPC on its standard input and output."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

PATIENCE: Final = 60.0


class AppServer:
    """One that runs, as long as the `with` block does."""

    def __init__(self, env: dict[str, str], line: Sequence[str], *, cwd: Path) -> None:
        self._env = env
        self._line = [*line, "app-server"]
        self._cwd = cwd
        self._calls = 0
        self._said: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._line,
            env=self._env,
            cwd=self._cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.call("initialize", clientInfo={"name": "tests", "title": "Tests", "version": "1"})
        self._send({"method": "initialized"})
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process.wait(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def start(self) -> str:
        """Begin a session and return its name."""
        return str(self.call("thread/start")["thread"]["id"])

    def turn(self, thread: str, text: str) -> list[str]:
        """Say something, and return what the model said when it is through."""
        self.call("turn/start", threadId=thread, input=[{"type": "text", "text": text}])
        items = [message["params"]["item"] for message in self._until("turn/completed") if "item" in message["params"]]
        return [item["text"] for item in items if item["type"] == "agentMessage" and item["text"]]

    def compact(self, thread: str) -> None:
        """Ask for a compaction, and wait until it is done."""
        self.call("thread/compact/start", threadId=thread)
        told = self._until("turn/completed")
        assert told[-1]["params"]["turn"]["status"] == "completed", told
        assert any(message["params"].get("item", {}).get("type") == "contextCompaction" for message in told), told

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method and return its result."""
        self._calls += 1
        self._send({"id": self._calls, "method": method, "params": params})
        while True:
            message = self._said.get(timeout=PATIENCE)
            if message.get("id") == self._calls and "method" not in message:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    def _until(self, method: str) -> list[dict[str, Any]]:
        """Return all notifications up to one."""
        heard: list[dict[str, Any]] = []
        while not heard or heard[-1]["method"] != method:
            message = self._said.get(timeout=PATIENCE)
            if "method" in message:
                heard.append(message)
        return heard

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(json.loads(line))
