"""The command line as a person has it: called in this process, and a scripted server in another to ask."""

import io
import logging
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

import msgspec
import pytest

from diglot.cli.main import main
from diglot.settings import Settings
from tests.serving import Served, serving_script

SCRIPT: Final = {
    "replies": [
        {"when": "hello", "say": ["Hi ", "there."]},
        {"when": "think", "think": "Let me see.", "say": "It is 42."},
        {"when": "forever", "say": ["One ", "two "], "hang": True},
        {"when": "wait", "say": "never", "gate": "closed", "after": -1},
        {"when": "break", "say": ["Half ", "an answer"], "fault": "failed", "after": 1},
        {"when": "escape", "say": "\x1b]0;title\x07\x1b[31mred"},
        {"echo": True},
    ]
}


class Outcome(msgspec.Struct, frozen=True):
    """What a call came to."""

    code: int
    out: str
    err: str


class Diglot(Protocol):
    """Calls the command line with `arguments` and `stdin`."""

    def __call__(self, *arguments: str, stdin: str = "") -> Outcome:
        """Call it and wait for its end."""


@pytest.fixture(autouse=True)
def log_restored() -> Iterator[None]:
    """Leave logging as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    for name in ("httpx2", "httpcore2", "uvicorn"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own, which DIGLOT_HOME names."""
    folder = tmp_path / "home"
    monkeypatch.setenv("DIGLOT_HOME", str(folder))
    monkeypatch.setenv("DIGLOT_READ_OLLAMA", "false")
    monkeypatch.setenv("DIGLOT_PORT", "1")  # Nobody answers there, and only a test that says so asks.
    return folder


@pytest.fixture
def diglot(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Diglot:
    """Call the command line in this process, without a terminal."""

    def call(*arguments: str, stdin: str = "") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["diglot", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Outcome(code, out, err)

    return call


@pytest.fixture
def in_force(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Collect the settings that `serve` would serve with."""
    seen: list[Settings] = []

    def served(settings: Settings, _: list[socket.socket]) -> int:
        seen.append(settings)
        return 0

    monkeypatch.setattr("diglot.app.serve", served)
    return seen


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose model plays SCRIPT."""
    with serving_script(tmp_path_factory.mktemp("served"), SCRIPT) as server:
        yield server


@pytest.fixture(scope="session")
def served(server: Served) -> str:
    """Its base URL."""
    return server.url
