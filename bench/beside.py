"""Diglot beside the engine alone: tokens, first tokens and vectors, in pairs that lie close together in time.

Each pair asks both sides for the same, and who comes first changes from pair to pair. The result is the median of the
pairs' ratios, so that what else the machine does falls on both.
"""

from __future__ import annotations

import asyncio
import base64
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from time import perf_counter

from bench.asking import Streamed, ask, stream
from bench.report import Line, at_least, at_most, differences, ratios
from bench.sides import CHAT, EMBEDDING, MODELS, SLOTS, engine_alone, served
from diglot.engines.peer.transport import Transport
from diglot.engines.peer.wire import Wire
from diglot.settings import Settings

_NEVER = {"0": -100, "2": -100}  # SmolLM2's two ways to end an answer, so that all are of the same length.
_TEXTS = 32
_MB = 1e6
Side = Callable[[Transport], Awaitable[float]]


async def beside(scale: float) -> AsyncIterator[Line]:
    """Yield the lines. `scale` is 1 for a full run."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder), models=MODELS, slots=SLOTS)
        flags = ("--models", str(MODELS), "--slots", str(SLOTS))
        with served(Path(folder), *flags) as server:
            ours = Wire(server.port, key="any")
            async with engine_alone(CHAT, settings) as alone:
                async for line in _chats(ours, alone, scale):
                    yield line
            async with engine_alone(EMBEDDING, settings) as alone:
                async for line in _vectors(ours, alone, scale):
                    yield line
            yield Line(
                "server process, resident, after all that",
                (server.resident / _MB,),
                "{:.0f}",
                unit="MB",
                target=at_most(80),
            )


async def _chats(ours: Transport, alone: Transport, scale: float) -> AsyncIterator[Line]:
    await asyncio.gather(
        *(_decode(each, parallel=1, tokens=8) for each in (ours, alone))
    )  # Loads, and fills the caches.
    for parallel, pairs in ((1, 40), (4, 80), (8, 40)):
        mine, theirs = await _pairs(ours, alone, partial(_decode, parallel=parallel, tokens=32), _some(pairs, scale))
        yield Line(
            f"decode, {parallel} at a time, ratio to the engine alone",
            ratios(mine, theirs),
            "{:.3f}",
            target=at_least(0.97),
            note=f"alone {sorted(theirs)[len(theirs) // 2]:.0f} tokens/s",
        )
    for prompt, side, pairs in (("a prompt in the cache", _first_token, 100), ("a new prompt", _first_of_new(), 100)):
        mine, theirs = await _pairs(ours, alone, side, _some(pairs, scale))
        yield Line(
            f"first token of {prompt}, later than the engine alone",
            differences(mine, theirs),
            "{:.1f}",
            unit="ms",
            target=at_most(5),
            note=f"alone {sorted(theirs)[len(theirs) // 2]:.1f} ms",
        )


async def _vectors(ours: Transport, alone: Transport, scale: float) -> AsyncIterator[Line]:
    for form in ("base64", "float"):
        mine, theirs = await _pairs(ours, alone, _embedding(form), _some(16, scale))
        yield Line(
            f"embeddings as {form}, {_TEXTS} texts a request, ratio to the engine alone",
            ratios(mine, theirs),
            "{:.3f}",
            target=at_least(0.95),
            note=f"alone {sorted(theirs)[len(theirs) // 2]:.0f} texts/s",
        )


def _some(pairs: int, scale: float) -> int:
    return max(3, round(pairs * scale))


async def _pairs(ours: Transport, alone: Transport, side: Side, pairs: int) -> tuple[list[float], list[float]]:
    """Measure both sides in turns, after one turn that does not count."""
    mine: list[float] = []
    theirs: list[float] = []
    for pair in range(-1, pairs):
        turns = [(mine, ours), (theirs, alone)]
        for values, transport in turns if pair % 2 else reversed(turns):
            value = await side(transport)
            if pair >= 0:
                values.append(value)
    return mine, theirs


def _chat(words: str, tokens: int) -> dict[str, object]:
    return {
        "model": CHAT,
        "messages": [{"role": "user", "content": words}],
        "temperature": 0,
        "max_tokens": tokens,
        "logit_bias": _NEVER,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def _decode(transport: Transport, *, parallel: int, tokens: int) -> float:
    """Return tokens a second, all answers together, without the time to the first."""
    words = ("Tell me a long story about the sea.", "Explain how bread is made.", "Count as far as you can.")
    bodies = [_chat(f"{number}. {words[number % len(words)]}", tokens) for number in range(parallel)]
    answers: list[Streamed] = await asyncio.gather(*(stream(transport, body) for body in bodies))
    begun, ended = min(each.first for each in answers), max(each.last for each in answers)
    return (sum(each.tokens for each in answers) - parallel) / (ended - begun)


async def _first_token(transport: Transport, words: str = "Name a river.") -> float:
    """Return the milliseconds to the first token."""
    answer = await stream(transport, _chat(words, 2))
    return (answer.first - answer.asked) * 1000


def _first_of_new() -> Side:
    """Return the same for prompts that no cache knows; both sides get the same ones."""
    asked: Counter[int] = Counter()

    async def measured(transport: Transport) -> float:
        asked[id(transport)] += 1
        return await _first_token(transport, f"{asked[id(transport)] * 7919} is a number.")

    return measured


def _embedding(form: str) -> Side:
    texts = [f"{number}: " + "the quick brown fox jumps over the lazy dog " * 3 for number in range(_TEXTS)]
    body: dict[str, object] = {"model": EMBEDDING, "input": texts, "encoding_format": form}

    async def measured(transport: Transport) -> float:
        begun = perf_counter()
        answer = await ask(transport, "/v1/embeddings", body)
        took = perf_counter() - begun
        assert len(answer) > _TEXTS * len(base64.b64encode(bytes(4 * 384)))
        return _TEXTS / took

    return measured
