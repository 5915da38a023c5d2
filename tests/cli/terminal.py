"""A terminal with a real `diglot` in it, that a test types into and reads from."""

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from types import TracebackType
from typing import Final, Self

import pytest

CTRL_C: Final = "\x03"
CTRL_D: Final = "\x04"
PROMPT: Final = ">>> "
_PATIENCE: Final = 30.0
_PLAIN: Final = frozenset({"NO_COLOR", "FORCE_COLOR"})  # They would overrule what a terminal is.
# The terminal must be the process's own, or else it would send no SIGINT for Ctrl-C.
_START: Final = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from diglot.cli.main import main; main()"


class Terminal:
    """`diglot` with these arguments in a pseudo-terminal."""

    def __init__(self, *arguments: str) -> None:
        self._end, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, b"\x18\x00\xc8\x00\x00\x00\x00\x00")  # 24 lines of 200 columns.
        command = [sys.executable, "-c", _START, *arguments]
        env = {name: value for name, value in os.environ.items() if name not in _PLAIN}
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=env
        )
        os.close(theirs)
        self.seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._end)

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self._end, text.encode())

    def interrupt(self, text: str) -> str:
        """Press Ctrl-C until a text comes, as a person would, and return what was written up to it.

        CPython notes a signal between two steps of its own: one that comes in the instant before it begins to
        wait for a key (Modules/readline.c selects on the key alone) is seen with the next.
        """
        for _ in range(round(_PATIENCE)):
            self.type(CTRL_C)
            while text not in self.seen and self._read(1):
                pass
            if text in self.seen:
                break
        return self.expect(text)

    def expect(self, text: str) -> str:
        """Wait for a text, and return what was written up to it."""
        while text not in self.seen:
            if not self._read():
                pytest.fail(f"{text!r} never came, but {self.seen!r}")
        before, _, self.seen = self.seen.partition(text)
        return before

    def ended(self) -> int:
        """Wait for the end of the process, and return its exit code."""
        while self._read():
            pass
        return self._process.wait(_PATIENCE)

    def _read(self, patience: float = _PATIENCE) -> bool:
        ready, _, _ = select.select([self._end], [], [], patience)
        try:
            data = os.read(self._end, 4096) if ready else b""
        except OSError:  # The other end is closed.
            data = b""
        self.seen += data.decode(errors="replace")
        return bool(data)
