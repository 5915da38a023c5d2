"""The scripted engine: plays a script to whoever asks.

It takes no time but what a gate takes, and nothing here is random. Neighbours: `playing` lays a reply out,
`script` is what it plays, `loader` makes it.

Invariant: an answer holds a slot from its first event until it ends or is closed, and no longer.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from typing import assert_never

from diglot.core.errors import (
    Busy,
    Cancelled,
    ContextExceeded,
    EngineCrashed,
    EngineFailed,
    Fault,
    InvalidField,
    ModelIncapable,
    UpstreamFailed,
)
from diglot.core.events import Event, Finished, Progress, Started, TextDelta, Usage
from diglot.core.model import Capabilities, Model
from diglot.core.request import Embedding, Generation, Overflow, Rerank, ToolMode
from diglot.core.result import Embedded, Ranked
from diglot.core.tools import callable_tools
from diglot.engines.scripted.playing import lay_out
from diglot.engines.scripted.script import Misfortune, Reply, Script
from diglot.engines.scripted.tokens import last_words, prompt_of, tokens_of

log = logging.getLogger(__name__)

_BREATH = 32  # Events between two chances for everybody else on the loop.


class Gate:
    """A place where an answer waits. `reached` is set when one has come, `open` lets it and all later ones pass."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def passed(self) -> None:
        """Come to the gate and wait until it is open."""
        self.reached.set()
        await self.open.wait()


class ScriptedEngine:
    """A model that answers from a script. Implements `core.ports.Engine`."""

    def __init__(self, model: Model, script: Script, gates: dict[str, Gate]) -> None:
        self._model = model
        self._script = script
        self._gates = gates
        self._next = 0
        self._calls = 0
        self._cache: deque[str] = deque(maxlen=script.slots)
        self._end = asyncio.Event()
        self.alive = True
        self.busy = 0

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return self._model.capabilities

    @property
    def window(self) -> int:
        """The context window, in tokens."""
        return self._script.window

    @property
    def slots(self) -> int:
        """How many answers are made at the same time."""
        return self._script.slots

    @property
    def memory(self) -> int:
        """The size of the model's files."""
        return self._model.size

    @property
    def accelerator_memory(self) -> int:
        """None."""
        return 0

    async def generate(self, request: Generation) -> AsyncGenerator[Event]:
        """Play the next reply."""
        if not self.capabilities.completion:
            raise ModelIncapable(self._model.name, ability="completion")
        if request.tool_choice.mode is ToolMode.REQUIRED and not callable_tools(request):
            raise InvalidField("tool_choice", "it requires a call, but names no declared tool")
        usage = self._read(request)
        reply = self._pick(last_words(request))
        self.busy += 1
        try:
            for step in range(reply.prefill):
                yield Progress(done=usage.input * (step + 1) // reply.prefill, total=usage.input)
            await self._meet(reply, -1)
            yield Started(input_tokens=usage.input, model=self._model.name)
            answer = lay_out(reply, request, usage=usage, room=self.window - usage.input, first_call=self._calls)
            self._calls += len(reply.call) or 1
            for number, event in enumerate(answer.events):
                if number == reply.after:
                    await self._meet(reply, number)
                if number % _BREATH == _BREATH - 1:
                    await asyncio.sleep(0)
                if reply.hang and isinstance(event, Finished):
                    break
                yield event
            while reply.hang:
                await self._hung()
                yield TextDelta("...")
        finally:
            self.busy -= 1

    async def count(self, request: Generation) -> int:
        """Return the tokens of the prompt."""
        return len(tokens_of(prompt_of(request)))

    async def embed(self, request: Embedding) -> Embedded:
        """Return a unit vector for each input, made from its digest."""
        if not self.capabilities.embedding:
            raise ModelIncapable(self._model.name, ability="embedding")
        inputs = [self._fitting(each, request.overflow) for each in request.inputs]
        size = request.dimensions or self._script.dimensions
        if size > self._script.dimensions:
            raise InvalidField("dimensions", f"the model gives {self._script.dimensions} numbers, fewer than {size}")
        vectors = tuple(_vector(tokens, self._script.dimensions)[:size] for tokens in inputs)
        return Embedded(
            vectors=tuple(map(_unit, vectors)) if request.normalise else vectors,
            input_tokens=sum(map(len, inputs)),
            model=self._model.name,
        )

    async def rerank(self, request: Rerank) -> Ranked:
        """Return how alike each document and the query are, by their vectors."""
        if not self.capabilities.rerank:
            raise ModelIncapable(self._model.name, ability="rerank")
        query = self._fitting(request.query, Overflow.ERROR)
        documents = [self._fitting(each, Overflow.ERROR) for each in request.documents]
        longest = len(query) + max(map(len, documents), default=0)
        if longest > self.window:
            raise ContextExceeded(tokens=longest, window=self.window)
        wanted = _vector(query, self._script.dimensions)
        return Ranked(
            scores=tuple(_product(wanted, _vector(each, self._script.dimensions)) for each in documents),
            input_tokens=sum(len(query) + len(each) for each in documents),
            model=self._model.name,
        )

    async def close(self) -> None:
        """End. Answers that hang or wait at a gate end too."""
        self.alive = False
        self._end.set()

    def _read(self, request: Generation) -> Usage:
        """Count the prompt, and how much of it was there before. Raises ContextExceeded."""
        prompt = prompt_of(request)
        size = len(tokens_of(prompt))
        log.debug("read %r", prompt)  # What a model was shown is half of what a test wants to know.
        if size >= self.window:
            raise ContextExceeded(tokens=size, window=self.window)
        cached = max((len(tokens_of(_shared(prompt, old))) for old in self._cache), default=0)
        self._cache.append(prompt)
        return Usage(input=size, cached=min(cached, size - 1))

    def _pick(self, words: str) -> Reply:
        for reply in self._script.replies:
            if reply.when is not None and reply.when in words:
                return reply
        turns = [reply for reply in self._script.replies if reply.when is None]
        if not turns:
            return Reply(echo=True)
        self._next += 1
        return turns[(self._next - 1) % len(turns)]

    async def _meet(self, reply: Reply, place: int) -> None:
        """Wait and suffer what the reply has in store at this place."""
        if (place < 0) != (reply.after < 0):
            return
        if reply.pause:
            await self._until(asyncio.sleep(reply.pause))
        if reply.gate is not None:
            gate = self._gates.setdefault(reply.gate, Gate())
            await self._until(gate.passed())
        if reply.fault is not None:
            if reply.fault == "crash":
                self.alive = False
            raise self._fault(reply.fault)

    async def _hung(self) -> None:
        await self._until(asyncio.Event().wait())

    async def _until(self, waiting: object) -> None:
        """Wait for something, or for the end of the engine, which is Cancelled."""
        tasks = [asyncio.ensure_future(waiting), asyncio.ensure_future(self._end.wait())]  # type: ignore[call-overload]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if self._end.is_set():
            raise Cancelled("the model was unloaded")

    def _fault(self, kind: Misfortune) -> Fault:
        match kind:
            case "crash":
                return EngineCrashed(self._model.name, detail="as the script says")
            case "failed":
                return EngineFailed("the engine failed", detail="as the script says")
            case "busy":
                return Busy(retry_after=1.0)
            case "upstream":
                return UpstreamFailed("http://script.example", reason="as the script says")
            case _:
                assert_never(kind)

    def _fitting(self, text: str | tuple[int, ...], overflow: Overflow) -> tuple[str, ...]:
        tokens = tuple(tokens_of(text)) if isinstance(text, str) else tuple(map(str, text))
        if len(tokens) > self.window and overflow is Overflow.ERROR:
            raise ContextExceeded(tokens=len(tokens), window=self.window)
        return tokens[: self.window]


def _vector(tokens: Sequence[str], size: int) -> tuple[float, ...]:
    """Return numbers between -1 and 1, the sum of what each token's digest gives, so that like texts are alike."""
    totals = [0.0] * size
    for token in tokens or ("",):
        data = hashlib.shake_128(token.strip().lower().encode()).digest(size)
        for place, byte in enumerate(data):
            totals[place] += (byte - 127.5) / 127.5
    return _unit(totals)


def _unit(vector: Sequence[float]) -> tuple[float, ...]:
    length = math.sqrt(math.fsum(number * number for number in vector)) or 1.0
    return tuple(number / length for number in vector)


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(left * right for left, right in zip(one, other, strict=True))


def _shared(text: str, other: str) -> str:
    """Return the longest common start."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] == other[:middle] else (low, middle - 1)
    return text[:low]
