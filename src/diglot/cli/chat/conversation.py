"""A conversation with a model: what was said so far, and the next answer as it is made.

The server keeps nothing: each question goes there with all that was said before. Neighbours: `server`
carries it, `screen` shows it, `session` asks.

Invariant: what is sent always alternates; a question without an answer is as if it had not been asked.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from diglot.cli.failure import Failure, Refused
from diglot.cli.server import Server
from diglot.cli.wire import ChatReply

PATH: Final = "/api/chat"


class Conversation:
    """A conversation with `model`. `think` is what the protocol takes: true, false or a level; None leaves it open."""

    def __init__(self, server: Server, model: str, *, system: str = "", think: bool | str | None = None) -> None:
        self.model = model
        self.system = system
        self._server = server
        self._think = think
        self._said: list[dict[str, str]] = []

    def clear(self) -> None:
        """Forget what was said, but not the system prompt."""
        self._said.clear()

    def load(self) -> None:
        """Have the model loaded, and wait until it is. Raises NoServer, Refused."""
        for line in self._server.stream(PATH, {"model": self.model, "messages": []}, ChatReply):
            _check(line)

    def ask(self, question: str) -> Generator[ChatReply]:
        """Yield the answer line by line. Closing it gives the answer up; what came of it stands as said."""
        self._said.append({"role": "user", "content": question})
        pieces: list[str] = []
        try:
            for line in self._server.stream(PATH, self._body(), ChatReply):
                _check(line)
                pieces.append(line.message.content)
                yield line
        except Failure:
            self._said.pop()
            raise
        except (KeyboardInterrupt, GeneratorExit):
            self._answered("".join(pieces))
            raise
        self._answered("".join(pieces))

    def _answered(self, text: str) -> None:
        """Note an answer; a question that was given up before there was any is forgotten."""
        if text:
            self._said.append({"role": "assistant", "content": text})
        else:
            self._said.pop()

    def _body(self) -> dict[str, Any]:
        system = [{"role": "system", "content": self.system}] if self.system else []
        body: dict[str, Any] = {"model": self.model, "messages": [*system, *self._said], "stream": True}
        if self._think is not None:
            body["think"] = self._think
        return body


def _check(line: ChatReply) -> None:
    """Raise what a stream says went wrong after it had begun."""
    if line.error:
        raise Refused(line.error, status=200)
