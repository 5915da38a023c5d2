"""Where an answer is shown: a terminal, or whatever standard output leads to.

On a terminal the reasoning of a model is shown dim before its answer. Elsewhere only the answer is
written, so that it can be used. Neighbours: `session`.

Invariant: a model cannot speak to the terminal; control characters in its text are left out.
"""

from __future__ import annotations

import sys
from typing import Final, TextIO

from diglot.cli.wire import ChatReply
from diglot.cli.words import plain
from diglot.settings import environment

_DIM: Final = "\x1b[2m"
_NORMAL: Final = "\x1b[0m"
_SECOND: Final = 1_000_000_000


class Screen:
    """Writes one answer to `out`."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._terminal = self._out.isatty()
        self._colours = self._terminal and "NO_COLOR" not in environment()
        self._thinking = False
        self._column = 0

    def show(self, line: ChatReply) -> None:
        """Write what a line of the answer brings."""
        if line.message.thinking and self._terminal:
            if not self._thinking:
                self._begin_thinking()
            self._write(plain(line.message.thinking))
        if line.message.content:
            self._end_thinking()
            self._write(plain(line.message.content))

    def end(self) -> None:
        """Finish the line that was begun."""
        self._end_thinking()
        if self._column:
            self._write("\n")

    def _begin_thinking(self) -> None:
        self._thinking = True
        if self._colours:
            self._out.write(_DIM)

    def _end_thinking(self) -> None:
        if self._thinking:
            self._thinking = False
            self._write(f"{_NORMAL if self._colours else ''}\n\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
        self._column = 0 if text.endswith("\n") else 1


def counts(last: ChatReply) -> str:
    """Return the counts of an answer in words, for `--verbose`."""
    rows = (
        ("in all", f"{last.total_duration / _SECOND:.2f} s"),
        ("loading", f"{last.load_duration / _SECOND:.2f} s"),
        ("prompt", _rate(last.prompt_eval_count, last.prompt_eval_duration)),
        ("answer", _rate(last.eval_count, last.eval_duration)),
        ("ended by", last.done_reason or "-"),
    )
    return "\n".join(f"{name:<10}{value}" for name, value in rows)


def _rate(tokens: int, duration: int) -> str:
    if not duration:
        return f"{tokens} tokens"
    seconds = duration / _SECOND
    return f"{tokens} tokens in {seconds:.2f} s, {tokens / seconds:.1f} a second"
