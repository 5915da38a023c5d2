"""A cold start: from a request for a model that is not loaded to the first token, beside the engine alone.

The engine alone is what its loader needs to start its process and load the weights, and then the same request.
The weights are in the memory of the machine, as they are soon after they were used.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter

from bench.asking import ask, stream
from bench.report import Line, differences
from bench.sides import CHAT, MODELS, engine_alone, served
from diglot.engines.peer.transport import Transport
from diglot.engines.peer.wire import Wire
from diglot.settings import Settings

_CHAT: dict[str, object] = {
    "model": CHAT,
    "messages": [{"role": "user", "content": "Name a river."}],
    "temperature": 0,
    "max_tokens": 2,
    "stream": True,
    "stream_options": {"include_usage": True},
}


async def cold(scale: float) -> AsyncIterator[Line]:
    """Yield the lines. `scale` is 1 for a full run."""
    mine: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder), models=MODELS)
        with served(Path(folder), "--models", str(MODELS)) as server:
            ours = Wire(server.port, key="any")
            for turn in range(-1, max(3, round(12 * scale))):
                await _unload(ours)
                begun = perf_counter()
                answer = await stream(ours, _CHAT)
                took = answer.first - begun
                await _unload(ours)  # Two engines at once would take memory and processor from each other.
                begun = perf_counter()
                async with engine_alone(CHAT, settings) as alone:
                    other = (await stream(alone, _CHAT)).first - begun
                if turn >= 0:
                    mine.append(took * 1000)
                    theirs.append(other * 1000)
    yield Line("first token of a model that is not loaded", tuple(mine), "{:.0f}", unit="ms")
    note = f"alone {sorted(theirs)[len(theirs) // 2]:.0f} ms"
    yield Line("the same, later than the engine alone", differences(mine, theirs), "{:.0f}", unit="ms", note=note)


async def _unload(ours: Transport) -> None:
    await ask(ours, "/api/generate", {"model": CHAT, "keep_alive": 0})
