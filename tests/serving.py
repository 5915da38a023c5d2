"""Real servers: `diglot serve` in a process of its own, on a free port, with a log that can be read.

Used by the tests of clients, of chaos, and of whatever needs the whole house. Nothing here waits blindly: a
server is there once it says so, and whatever is waited for has a deadline.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import psutil
import pytest

from diglot.store.local import LocalStore
from diglot.store.starter import fetch_starter

ROOT: Final = Path(__file__).parent.parent
MODELS: Final = ROOT / ".tools" / "models"
"""Where the starter models are kept, fetched once for each checkout."""
CHAT: Final = "smollm2:135m"
EMBEDDING: Final = "all-minilm:l6-v2"
PATIENCE: Final = 60.0
_PAUSE: Final = threading.Event()  # Never set: waiting for it is the pause between two looks.


def starter_folder() -> Path:
    """Return the folder that holds the starter models; of several that come at once, one fetches them."""
    fetch_starter(LocalStore(MODELS))
    return MODELS


def free_port() -> int:
    """Return a port of this machine that nobody listens on now; a server that takes 0 is surer."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def until(true: Callable[[], Any], *, patience: float = PATIENCE) -> Any:
    """Look again and again until something is true, and return it; fail when that takes too long."""
    deadline = time.monotonic() + patience
    while not (found := true()):
        if time.monotonic() > deadline:
            pytest.fail(f"this did not come true within {patience:g} seconds: {true}")
        _PAUSE.wait(0.02)
    return found


class Served:
    """A server that runs. `log` holds the lines it has written so far."""

    def __init__(self, process: subprocess.Popen[str], home: Path) -> None:
        self.process = process
        self.home = home
        self.log: list[str] = []
        self.url = ""
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            self._lines.put(line)
        self._lines.put("")

    def wait_until_ready(self) -> None:
        """Wait until it says where it listens."""
        while "listening on" not in (line := self._lines.get(timeout=PATIENCE)):
            if not line:
                pytest.fail("the server has ended:\n" + "".join(self.log))
        self.url = line.split("listening on ")[1].split()[0].strip('"}')  # As text or as JSON.

    def ended(self) -> tuple[int, str]:
        """Wait for its end, and return its exit code and all of its log."""
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code, "".join(self.log)

    def http(self, **options: Any) -> httpx2.Client:
        """Return a client for it, to be used in a `with` block."""
        return httpx2.Client(base_url=self.url, timeout=httpx2.Timeout(60.0), trust_env=False, **options)

    def children(self) -> list[psutil.Process]:
        """Return the processes of its engines that run."""
        found = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in found if child.status() != psutil.STATUS_ZOMBIE]

    def log_has(self, text: str) -> bool:
        """Whether the log says something."""
        return any(text in line for line in self.log)

    def log_count(self, text: str) -> int:
        """Return how many lines of the log say something."""
        return sum(text in line for line in self.log)

    def loaded(self) -> set[str]:
        """Return the names of the models that are in memory."""
        with self.http() as client:
            return {each["name"] for each in client.get("/api/ps").json()["models"] if each["loaded"] == 1}


@contextmanager
def serving(home: Path, *flags: str, wait: bool = True, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    """Run a server with its home in a folder, and end it at the end. `env` is put over this process's environment."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("DIGLOT_")} | dict(env or {})
    env["DIGLOT_READ_OLLAMA"] = "false"  # Whoever runs the tests may have models of his own.
    command = [sys.executable, "-m", "diglot", "serve", "--port", "0", "--home", str(home), "--log", "debug", *flags]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=env, cwd=ROOT
    ) as process:
        served = Served(process, home)
        try:
            if wait:
                served.wait_until_ready()
            yield served
        finally:
            process.kill()
            served.ended()  # Leaving closes the pipe, which the reader must have read to its end by then.


@contextmanager
def serving_script(home: Path, script: dict[str, Any], *flags: str) -> Iterator[Served]:
    """Run a server whose models say what stands in a script."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / "script.json"
    path.write_text(json.dumps(script))
    with serving(home, "--engine", "scripted", "--script", str(path), *flags) as served:
        yield served


@contextmanager
def serving_starters(home: Path, *flags: str) -> Iterator[Served]:
    """Run a server with the starter models. One thread: two would spin against the other tests."""
    with serving(home, "--models", str(starter_folder()), "--threads", "1", *flags) as served:
        yield served
