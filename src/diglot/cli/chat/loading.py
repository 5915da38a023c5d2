"""A bar while a model loads, and a sign of life while it reads: a thread that asks the server how far it is.

The request for the answer is open meanwhile, and it is what waits for the model; this only looks.
Neighbours: `progress` draws, `session` waits.

Invariant: once the block is left the thread has ended and the bar is gone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from diglot.cli.failure import Failure
from diglot.cli.names import is_same
from diglot.cli.progress import Progress
from diglot.cli.server import Server
from diglot.cli.wire import PsReply

_PAUSE: Final = 0.15


class Bar:
    """What is shown while one waits; `clear` ends it."""

    def __init__(self, server: Server, model: str) -> None:
        self._server = server
        self._model = model
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="loading bar", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def clear(self) -> None:
        """Stop looking, and take the bar away. Idempotent."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        with Progress() as progress:
            while not self._over.wait(_PAUSE):
                try:
                    models = self._server.get("/api/ps", PsReply).models
                except Failure:
                    return  # Whoever waits for the answer is told what is wrong.
                loading = [each for each in models if each.loaded < 1 and is_same(each.name, self._model)]
                if self._over.is_set():
                    return
                if loading:
                    progress.share(f"loading {loading[0].name}", loading[0].loaded)
                else:
                    progress.waiting(f"waiting for {self._model}")


@contextmanager
def loading_bar(server: Server, model: str) -> Iterator[Bar]:
    """Show a bar on a terminal as long as the model loads, until the bar is cleared or the block is left."""
    bar = Bar(server, model)
    if sys.stderr.isatty():
        bar.start()
    try:
        yield bar
    finally:
        bar.clear()
