"""Asking: one question for a summary, until the answer can be used.

The answer's shape is forced by a schema. An engine that refuses the schema is asked for the same JSON in words: the
conversation before the question stays as it is either way, so that the KV cache holds. An answer that still cannot be
used is asked for again, shorter and a little warmer, three times at most; what was wrong with it is said.
Neighbours: `core.compaction.prompt` for the words, `services.summarise`.

Invariant: nothing but the model's answers decides; nothing is changed until one can be used.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec.structs import replace

from diglot.core.assemble import Assembly
from diglot.core.compaction.budget import ANSWER_OVERHEAD, shorter
from diglot.core.compaction.prompt import (
    Asked,
    InvalidSummary,
    answer_format,
    instruction,
    read_answer,
    read_free_answer,
)
from diglot.core.errors import CompactionFailed, InvalidField, UnsupportedField
from diglot.core.events import Progress, Usage
from diglot.core.items import Item
from diglot.core.ports import Engine
from diglot.core.request import Conversation, Effort, Generation, PlainText, Sampling, ToolChoice
from diglot.core.result import Result
from diglot.services.chunking import Chunk

log = logging.getLogger(__name__)

_ATTEMPTS = 3
_WARMER = 0.4


class Asking:
    """Asks one engine about pieces of one conversation. Iterate a call for progress, then read `asked` and `usage`."""

    def __init__(self, engine: Engine, request: Generation, items: tuple[Item, ...]) -> None:
        self._engine = engine
        self._request = request
        self._items = items
        self._forced = True
        self.asked = Asked("", ())
        self.usage = Usage()

    async def __call__(self, chunk: Chunk) -> AsyncGenerator[Progress]:
        """Yield progress until there is an answer. `CompactionFailed` after three that could not be used."""
        problem, self.usage = "", Usage()
        attempt = 0
        while attempt < _ATTEMPTS:
            assembly = Assembly()
            try:
                async with aclosing(self._engine.generate(self._question(chunk, attempt, problem))) as events:
                    async for event in events:
                        assembly.feed(event)
                        if isinstance(event, Progress):
                            yield event
            except (InvalidField, UnsupportedField) as fault:
                if not self._forced:
                    raise
                self._forced = False
                log.info("the engine takes no schema, so it is asked in words")
                log.debug("%s", fault)  # In the words of a server that may be any, of a request that is the client's.
                continue
            result = assembly.result()
            self.usage = self.usage.plus(result.usage)
            try:
                self.asked = self._read(_text(result), chunk, attempt)
            except InvalidSummary as error:
                problem = str(error)
                attempt += 1
                log.info("summary attempt %d could not be used: %s", attempt, problem)
            else:
                return
        raise CompactionFailed(f"the model gave no usable summary in {_ATTEMPTS} attempts ({problem})")

    def _read(self, text: str, chunk: Chunk, attempt: int) -> Asked:
        if self._forced:
            return read_answer(text, chunk.ids)
        return read_free_answer(text, chunk.ids, characters=chunk.characters, last=attempt == _ATTEMPTS - 1)

    def _question(self, chunk: Chunk, attempt: int, problem: str) -> Generation:
        characters = shorter(chunk.characters, attempt)
        question = instruction(self._items, chunk.ids, characters=characters, problem=problem)
        return replace(
            self._request,
            prompt=Conversation((*chunk.items, question)),
            tool_choice=ToolChoice(),
            format=answer_format(chunk.ids, characters=characters) if self._forced else PlainText(),
            sampling=Sampling(
                temperature=_WARMER * attempt, seed=attempt, max_tokens=chunk.characters + ANSWER_OVERHEAD
            ),
            think=self._think(attempt),
            must_think=False,
            choices=1,
            logprobs=None,
            compacting=None,
        )

    def _think(self, attempt: int) -> bool | Effort | None:
        """Return no thinking where the model can be told. An effort stays at first, for it may stand in the system text."""
        think = self._request.think
        if isinstance(think, str) and not attempt:
            return think
        return False if think is not None or self._engine.capabilities.thinking else None


def _text(result: Result) -> str:
    """Return the answer; where a template opens a thought by itself, a forced answer stands in there."""
    choice = result.choices[0] if result.choices else None
    return (choice.text or choice.reasoning) if choice else ""
