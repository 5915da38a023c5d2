"""Answers: the chunks of one stream made into events.

Reasoning is split from text, calls are put together and come whole, a forced call is read from the text that
its schema shaped. Sans-IO: `client` feeds chunks. Neighbours: `chunks` is what comes in, `core.events` what goes out.

Invariants: `Started` comes before everything but progress; text goes on at once unless it could still
become a call or a marker; a call that was cut off is not sent; `Finished` is the last.
"""

from __future__ import annotations

import time

from diglot.core.events import (
    Event,
    Finished,
    Progress,
    Reason,
    ReasoningDelta,
    Started,
    TextDelta,
    Timings,
    TokenLogprob,
    ToolCallDone,
    Usage,
)
from diglot.core.ports import Ids
from diglot.core.reasoning import ReasoningSplitter, Split
from diglot.core.request import Conversation, Generation, PlainText
from diglot.core.salvage import CallSalvage, Piece
from diglot.core.tools import WrittenCall, callable_tools, flat_name, forced_calls, restore
from diglot.engines.peer.body import forced_tools
from diglot.engines.peer.calls import CallPieces
from diglot.engines.peer.chunks import ChoiceChunk, Chunk, ProgressChunk, TimingsChunk, UsageChunk
from diglot.engines.peer.logprobs import token_logprobs

_LONGEST = 1e12  # Milliseconds, some thirty years.
_MS = 1_000_000


class Answer:
    """One answer while it comes: `feed` chunks, then `close` once."""

    def __init__(self, request: Generation, *, model: str, ids: Ids) -> None:
        self._request = request
        self._model = model
        self._ids = ids
        self._forced = forced_tools(request)
        self._callable = callable_tools(request)
        chats = isinstance(request.prompt, Conversation)
        free = chats and not self._forced and isinstance(request.format, PlainText)
        self._splitter = ReasoningSplitter() if free else None
        self._salvage = CallSalvage(frozenset(map(flat_name, self._callable))) if free and self._callable else None
        self._silent = request.sampling.max_tokens == 0
        self._pieces = CallPieces()
        self._text: list[str] = []
        self._logprobs: list[TokenLogprob] = []
        self._usage = UsageChunk()
        self._timings: TimingsChunk | None = None
        self._began = self._first = time.monotonic_ns()
        self._calls = 0
        self.started = False
        self.reason: str | None = None

    def feed(self, chunk: Chunk) -> list[Event]:
        """Take a chunk in, return what it means."""
        events: list[Event] = []
        if chunk.usage is not None:
            self._usage = chunk.usage
        if chunk.prompt_progress is not None and not self.started:
            return [self._progress(chunk.prompt_progress)]
        if chunk.timings is not None:
            self._timings = chunk.timings
        for choice in chunk.choices:
            if not (self.started or _says_nothing(choice)):
                events.append(self._start())
            self._choice(choice, events)
        return events

    def close(self) -> list[Event]:
        """End the answer: what was held back, then `Finished`."""
        events: list[Event] = [] if self.started else [self._start()]
        if self._splitter is not None:
            self._split(self._splitter.close(), events)
        if self._salvage is not None:
            self._salvaged(self._salvage.close(), events)
        for written, call_id in self._pieces.close(cut=self.reason == "length"):
            self._call(written, events, call_id)
        if self._forced:
            for written in forced_calls("".join(self._text), self._forced, parallel=False):
                self._call(written, events)
        if self._logprobs:
            self._say("", events)
        events.append(Finished(reason=self._ending(), usage=self._counted(), timings=self._clocked()))
        return events

    def _start(self) -> Started:
        self.started = True
        self._first = time.monotonic_ns()
        if self._timings is not None and not self._usage.prompt_tokens:
            self._usage.prompt_tokens = self._timings.cache_n + self._timings.prompt_n
        return Started(input_tokens=self._usage.prompt_tokens, model=self._model)

    def _progress(self, chunk: ProgressChunk) -> Progress:
        self._usage.prompt_tokens = chunk.total
        return Progress(done=chunk.processed, total=chunk.total)

    def _choice(self, choice: ChoiceChunk, events: list[Event]) -> None:
        delta = choice.delta
        text = choice.text if delta is None else delta.content
        thought = delta and (delta.reasoning_content or delta.reasoning)
        if choice.logprobs is not None and not self._silent and (text or not thought):  # Thoughts are told without.
            self._logprobs.extend(token_logprobs(choice.logprobs, shown=self._request.logprobs or 0))
        if delta is not None:
            if thought and not self._silent:
                events.append(ReasoningDelta(thought))
            if delta.tool_calls:
                for written, call_id in self._pieces.feed(delta.tool_calls):
                    self._call(written, events, call_id)
        if text and not self._silent:
            self._take(text, events)
        if choice.finish_reason is not None:
            self.reason = choice.finish_reason

    def _take(self, text: str, events: list[Event]) -> None:
        if self._forced:
            self._text.append(text)
        elif self._splitter is None:
            self._say(text, events)
        else:
            self._split(self._splitter.feed(text), events)
            if self._splitter.thinking:
                self._logprobs.clear()

    def _split(self, split: Split, events: list[Event]) -> None:
        if split.reasoning:
            events.append(ReasoningDelta(split.reasoning))
        if not split.text:
            return
        if self._salvage is None:
            self._say(split.text, events)
        else:
            self._salvaged(self._salvage.feed(split.text), events)

    def _salvaged(self, pieces: list[Piece], events: list[Event]) -> None:
        for piece in pieces:
            if isinstance(piece, WrittenCall):
                self._call(piece, events)
            elif piece:
                self._say(piece, events)

    def _say(self, text: str, events: list[Event]) -> None:
        events.append(TextDelta(text, logprobs=tuple(self._logprobs)) if self._logprobs else TextDelta(text))
        self._logprobs.clear()

    def _call(self, written: WrittenCall, events: list[Event], call_id: str | None = None) -> None:
        if self._calls and not self._request.parallel_calls:
            return
        self._calls += 1
        call = restore(written, tools=self._request.tools, call_id=call_id or f"call_{self._ids.new()}")
        events.append(ToolCallDone(call))

    def _ending(self) -> Reason:
        if self._calls:
            return "tool_calls"
        return "length" if self.reason == "length" or self._silent else "stop"

    def _counted(self) -> Usage:
        usage = self._usage
        cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else 0
        reasoned = usage.completion_tokens_details.reasoning_tokens if usage.completion_tokens_details else 0
        return Usage(
            input=usage.prompt_tokens,
            output=0 if self._silent else usage.completion_tokens or 0,
            cached=cached or 0,
            reasoning=reasoned or 0,
        )

    def _clocked(self) -> Timings:
        now = time.monotonic_ns()
        if self._timings is None:
            return Timings(total=now - self._began, prefill=self._first - self._began, decode=now - self._first)
        prefill, decode = _nanoseconds(self._timings.prompt_ms), _nanoseconds(self._timings.predicted_ms)
        return Timings(total=now - self._began, prefill=prefill, decode=decode)


def _says_nothing(choice: ChoiceChunk) -> bool:
    """Whether this only opens the stream: the numbers come with the first token."""
    delta = choice.delta
    empty = delta is not None and not (delta.content or delta.reasoning_content or delta.reasoning or delta.tool_calls)
    return empty and choice.finish_reason is None


def _nanoseconds(milliseconds: float) -> int:
    """Return a duration that a server told, which may be any number."""
    return int(min(max(milliseconds, 0.0), _LONGEST) * _MS)
