"""A progress bar on standard error, for people: where there is no terminal it is silent.

    pulling smollm2:135m      45% ▕█████████           ▏ 42 MB of 93 MB

It draws at most ten times a second, whoever calls. Neighbours: `pull`, `serve` and `run` use it.

Invariant: once it is closed nothing of it is left on a line that somebody else writes on.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import Final, Self, TextIO

from diglot.cli.words import plain, size_in_words

_WIDTH: Final = 24
_PAUSE: Final = 0.1
_ERASE: Final = "\r\x1b[K"
_LEFT, _FULL, _RIGHT = "\u2595", "\u2588", "\u258f"


class Progress:
    """One line that is drawn over. Used in a `with` block."""

    def __init__(self, stream: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream or sys.stderr
        self._seen = self._stream.isatty()
        self._clock = clock
        self._drawn = -_PAUSE
        self._label = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def bytes(self, label: str, done: int, total: int) -> None:
        """Show how many bytes of `total` are done; 0 of 0 where nobody knows."""
        self._show(label, done / total if total else None, f"{size_in_words(done)} of {size_in_words(total)}")

    def waiting(self, label: str) -> None:
        """Show that something goes on, nobody knows how far."""
        self._show(label, None, "")

    def share(self, label: str, done: float) -> None:
        """Show a share between 0 and 1."""
        self._show(label, done, "")

    def clear(self) -> None:
        """Take the line away."""
        if self._label:
            self._write(_ERASE)
            self._label = ""

    def _show(self, label: str, share: float | None, figures: str) -> None:
        now = self._clock()
        if not self._seen or (label == self._label and now - self._drawn < _PAUSE):
            return
        self._drawn, self._label = now, label
        columns = shutil.get_terminal_size().columns
        line = f"{plain(label):<28}"
        if share is not None:
            full = round(min(max(share, 0.0), 1.0) * _WIDTH)
            line += f" {share:>4.0%} {_LEFT}{(_FULL * full).ljust(_WIDTH)}{_RIGHT} {figures}"
        self._write(_ERASE + line[: columns - 1])

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
