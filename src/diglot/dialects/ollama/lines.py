"""A streamed answer: one JSON object a line.

Nearly every line holds a piece of text and differs from the one before in that and in its time. Such a line
is put together from parts that are made once for a stream; all others are encoded as a whole. Ollama's
clients read every line as an object, so there is no sign of life between them.

Invariant: a line from parts is the same, byte for byte, as the reply that `Form` makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, assert_never

import msgspec

from diglot.core.errors import AnyFault
from diglot.core.events import Compacted, Event, Finished, Progress, ReasoningDelta, Started, TextDelta, ToolCallDone
from diglot.dialects.ollama.replies import Form, Said, ending_of
from diglot.dialects.ollama.timestamps import Stamper
from diglot.framing import ndjson

_TIME: Final = "\x00time"
_PIECE: Final = "\x00piece"
_encode = msgspec.json.Encoder().encode


class Lines:
    """Renders one answer. `last` gives what only the last line holds, and is called when the answer has ended."""

    def __init__(
        self,
        form: Form,
        model: str | None,
        *,
        wording: Callable[[AnyFault], str],
        last: Callable[[str], dict[str, Any]] | None = None,
    ) -> None:
        self._form = form
        self._wording = wording
        self._last = last
        self._texts: list[str] = []
        self._calls = 0
        self._stamp = Stamper()
        self._named = model is not None
        self._prepare(model or "")

    def _prepare(self, model: str) -> None:
        self._model = model
        self._head, self._text, self._tail = self._cut(Said(text=_PIECE))
        _, self._thought, self._thought_tail = self._cut(Said(thinking=_PIECE))

    def _cut(self, said: Said) -> tuple[bytes, bytes, bytes]:
        """Return what stands before the time, between the time and the piece, and behind the piece."""
        line = ndjson.encode(_encode(self._form(said, model=self._model, created_at=_TIME, done=False)))
        head, _, rest = line.rpartition(_encode(_TIME))
        middle, _, tail = rest.partition(_encode(_PIECE))
        return head + b'"', b'"' + middle, tail

    def feed(self, event: Event, now: float) -> bytes:
        """Render one event."""
        match event:
            case TextDelta(logprobs=()):
                self._keep(event.text)
                return b"".join((self._head, self._stamp(now), self._text, _encode(event.text), self._tail))
            case ReasoningDelta():
                return b"".join((self._head, self._stamp(now), self._thought, _encode(event.text), self._thought_tail))
            case _:
                return self._rare(event, now)

    def _rare(self, event: TextDelta | ToolCallDone | Finished | Started | Progress | Compacted, now: float) -> bytes:
        line = b""
        match event:
            case TextDelta():
                self._keep(event.text)
                line = self._line(Said(event.text, logprobs=event.logprobs), now)
            case ToolCallDone():
                line = self._line(Said(calls=(event.call,), first_call=self._calls), now)
                self._calls += 1
            case Finished():
                more = self._last("".join(self._texts)) if self._last else {}
                line = self._line(Said(), now, **ending_of(event), **more)
            case Started():
                if not self._named:
                    self._prepare(event.model)
            case Progress() | Compacted():
                pass
            case _:
                assert_never(event)
        return line

    def _keep(self, text: str) -> None:
        if self._last is not None:
            self._texts.append(text)

    def _line(self, said: Said, now: float, **end: Any) -> bytes:
        rest = end or {"done": False}
        return ndjson.encode(_encode(self._form(said, model=self._model, created_at=self._stamp(now).decode(), **rest)))

    def beat(self) -> bytes:
        """Render nothing."""
        return b""

    def close(self) -> bytes:
        """Render nothing: the last line said that it was the last."""
        return b""

    def fail(self, fault: AnyFault) -> bytes:
        """Render the line that ends a broken answer."""
        return ndjson.encode(_encode({"error": self._wording(fault)}))
