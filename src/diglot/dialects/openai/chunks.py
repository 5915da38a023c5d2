"""Chunks: what the streams of chat and of completions have in common.

Every chunk has the same head, written once. The usage comes in a chunk of its own after all choices have
ended, and only where it was asked for; the last line is `[DONE]`, and a stream that broke has none.
Neighbours: `chat` and `completions` write the choices.
"""

from __future__ import annotations

from typing import Any

import msgspec

from diglot.core.errors import AnyFault
from diglot.core.events import Finished, Started, Usage
from diglot.dialects.openai.errors import error_data
from diglot.dialects.openai.usage import usage_reply
from diglot.framing import sse

encode = msgspec.json.Encoder().encode


class ChunkStream:
    """The frame of a stream. `open` comes first, then chunks in any number, then `close` or `fail`."""

    def __init__(self, *, id: str, kind: str, created: int, model: str | None, include_usage: bool) -> None:  # noqa: A002
        self._id = id
        self._kind = kind
        self._created = created
        self._model = model
        self._include_usage = include_usage
        self._usage = Usage()
        self.head = self.tail = b""

    def open(self, event: Started) -> None:
        """Write the head, now that it is known which model answers."""
        self._usage = Usage(input=event.input_tokens)
        fields = {"id": self._id, "object": self._kind, "created": self._created, "model": self._model or event.model}
        self.head = b"data: " + encode(fields)[:-1] + b',"choices":['
        self.tail = b'],"usage":null}\n\n' if self._include_usage else b"]}\n\n"

    def chunk(self, choice: Any) -> bytes:
        """Write a chunk of one choice."""
        return self.head + encode(choice) + self.tail

    def count(self, event: Finished) -> None:
        """Add up what a choice cost."""
        self._usage = self._usage.plus(event.usage)

    def beat(self) -> bytes:
        """Write a comment, which clients pass over."""
        return sse.HEARTBEAT

    def close(self) -> bytes:
        """Write the usage if it was asked for, and the last line."""
        if not self._include_usage:
            return sse.DONE
        return self.head + b'],"usage":' + encode(usage_reply(self._usage)) + b"}\n\n" + sse.DONE

    def fail(self, fault: AnyFault) -> bytes:
        """Write the fault."""
        return sse.encode(error_data(fault))
