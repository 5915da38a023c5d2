"""Generate: an answer, as events.

Chooses the model, fills in what its maker set, sees that it can do what is asked, waits for a slot, and
passes the engine's events on. There is no second way for whole answers. Neighbours: `services.catalog`,
`services.residency`, and the `Engine` port behind it.

Invariant: closing the generator ends the engine's work and frees the slot.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec.structs import replace

from diglot.core.errors import ContextExceeded, ModelBroken, ModelIncapable
from diglot.core.events import (
    Compacted,
    Event,
    Finished,
    Progress,
    ReasoningDelta,
    Started,
    TextDelta,
    Timings,
    ToolCallDone,
    Usage,
)
from diglot.core.images import LINK
from diglot.core.items import Item, Message, Role, ToolResult, images_of, pictures_in, said, with_pictures
from diglot.core.model import Capability, Model
from diglot.core.overflow import removable, without_oldest
from diglot.core.ports import Clock, Engine, Pictures
from diglot.core.request import Conversation, Generation, Overflow
from diglot.services.catalog import Catalog
from diglot.services.compact import said_by_users
from diglot.services.fold import Fold
from diglot.services.residency import Residency
from diglot.services.visit import Visit

log = logging.getLogger(__name__)

_NO_TEMPLATE = (
    "its weights bring no chat template, and what it has instead works in Ollama only; raw prompts are answered, and "
    "weights that bring their template answer conversations"
)


class Generate:
    """Answers requests for generation."""

    def __init__(self, catalog: Catalog, residency: Residency, fold: Fold, *, pictures: Pictures, clock: Clock) -> None:
        self._catalog = catalog
        self._residency = residency
        self._fold = fold
        self._pictures = pictures
        self._clock = clock

    async def __call__(self, request: Generation, *, visit: Visit | None = None) -> AsyncGenerator[Event]:
        """Yield the events of the answer, all choices one after the other.

        The choices share one slot, so that their prompt is computed once.
        """
        begun = self._clock.monotonic_ns()
        visit = visit or Visit()
        model = await self._catalog.choose(request.residence.model, Capability.COMPLETION)
        visit.kind, visit.model = "generate", model.name
        asked, original = await self._ready(request, model)
        request = await self._opened(original)
        residence = request.residence
        async with self._residency.turn(model, residence.load, residence.keep_alive, visit=visit) as engine:
            loaded = self._clock.monotonic_ns() - begun
            request = await self._fold.within(request, engine)
            usage = Usage()
            if wish := self._fold.wish(request, engine.window):
                async with aclosing(self._fold(request, engine, wish, visit=visit)) as events:
                    async for event in events:
                        if isinstance(event, Compacted):
                            # What is left out of a prompt for want of room is not lost to the client.
                            yield replace(event, kept=_said_by_users(asked))
                            usage = event.usage
                            request = await self._fold.within(self._fold.after(request, event, original), engine)
                        else:
                            yield event
                if wish.instead:
                    total = self._clock.monotonic_ns() - begun
                    yield Started(input_tokens=usage.input, model=model.name)
                    yield Finished(reason="stop", usage=usage, timings=Timings(total=total, load=loaded))
                    return
            if request.overflow is Overflow.TRUNCATE:
                request = await _fitted(request, engine)
            async with aclosing(_choices(request, engine)) as events:
                async for event in events:
                    match event:
                        case Started():
                            visit.add(Usage(input=event.input_tokens))
                            yield replace(event, model=model.name)
                        case Finished():
                            # All choices have one prompt, which is counted once.
                            visit.add(replace(event.usage, input=0, cached=0 if event.choice else event.usage.cached))
                            total = self._clock.monotonic_ns() - begun
                            yield replace(event, timings=replace(event.timings, total=total, load=loaded))
                        case _:
                            if visit.stage != "decode" and not isinstance(event, Progress):
                                visit.reach("decode", self._clock.monotonic_ns())
                            yield event

    async def count(self, request: Generation) -> int:
        """Return how many tokens the prompt would have."""
        model = await self._catalog.choose(request.residence.model, Capability.COMPLETION)
        _, ready = await self._ready(request, model)
        request = await self._opened(ready)
        async with self._residency.lease(model, request.residence.load, request.residence.keep_alive) as engine:
            return await engine.count(await self._fold.within(request, engine))

    async def _ready(self, request: Generation, model: Model) -> tuple[Generation, Generation]:
        """Return the request with the pictures that stand behind links in it, and what is `prepared` of it."""
        ready, prompt = prepared(request, model), request.prompt
        if isinstance(prompt, Conversation):
            pictures = pictures_in(prompt.items)
            if any(picture.media_type == LINK for picture in pictures):
                items = with_pictures(prompt.items, await self._pictures.fetched(pictures))
                request = replace(request, prompt=Conversation(items))
                ready = prepared(request, model)
        return request, ready

    async def _opened(self, request: Generation) -> Generation:
        """Return the request with its compaction items opened and all of its pictures looked at."""
        request = self._fold.opened(request)
        if isinstance(request.prompt, Conversation) and (images := pictures_in(request.prompt.items)):
            await self._pictures.check(images)
        return request


def _said_by_users(request: Generation) -> tuple[Message, ...]:
    return said_by_users(request.prompt.items) if isinstance(request.prompt, Conversation) else ()


async def _choices(request: Generation, engine: Engine) -> AsyncGenerator[Event]:
    """Yield the events of all choices, one after the other; the stream starts with the first."""
    for index in range(request.choices):
        async with aclosing(engine.generate(_single(request, index))) as events:
            async for event in events:
                match event:
                    case TextDelta() | ReasoningDelta() | ToolCallDone() | Finished():
                        yield replace(event, choice=index) if index else event
                    case _:
                        if not index:
                            yield event


def prepared(request: Generation, model: Model) -> Generation:
    """Return the request with the maker's settings where it says nothing. `ModelIncapable` if it asks too much."""
    name = request.residence.model or model.name
    able = model.capabilities
    prompt = request.prompt
    if isinstance(prompt, Conversation):
        if model.raw_only:
            raise ModelBroken(name, reason=_NO_TEMPLATE)
        if not able.vision and any(_images(item) for item in prompt.items):
            raise ModelIncapable(name, ability="vision")
        prompt = Conversation(_with_defaults(prompt.items, model))
    elif prompt.suffix is not None and not able.insert:
        raise ModelIncapable(name, ability="insert")
    think = request.think
    if think not in (None, False, "none") and not able.thinking:
        if request.must_think:
            raise ModelIncapable(name, ability="thinking")
        think = None
    residence = request.residence
    return replace(
        request,
        prompt=prompt,
        think=think,
        sampling=request.sampling.over(model.defaults.sampling),
        residence=replace(residence, load=residence.load.over(model.defaults.load)),
    )


def _with_defaults(items: tuple[Item, ...], model: Model) -> tuple[Item, ...]:
    """Put the maker's system text and examples before a conversation; a client's own system text replaces his."""
    own = next((place for place, item in enumerate(items) if not _is_system(item)), len(items))
    system = items[:own] or ((said("system", model.defaults.system),) if model.defaults.system else ())
    examples = (said(_role(each.role), each.content) for each in model.defaults.messages)
    return (*system, *examples, *items[own:])


def _is_system(item: Item) -> bool:
    return isinstance(item, Message) and item.role in ("system", "developer")


def _role(role: str) -> Role:
    match role:
        case "system" | "assistant":
            return role
        case _:
            return "user"


def _images(item: Item) -> bool:
    return isinstance(item, Message | ToolResult) and bool(images_of(item.content))


def _single(request: Generation, index: int) -> Generation:
    """Return the request for one choice. A seed is moved on, so that the choices differ."""
    seed = request.sampling.seed
    if index == 0 or seed is None:
        return replace(request, choices=1)
    return replace(request, choices=1, sampling=replace(request.sampling, seed=seed + index))


async def _fitted(request: Generation, engine: Engine) -> Generation:
    """Leave out as few of the oldest items as it takes to fit the window. Done only because the client asked."""
    prompt = request.prompt
    if not isinstance(prompt, Conversation) or await engine.count(request) < engine.window:
        return request
    low, high = 1, removable(prompt.items)
    if not high:
        raise ContextExceeded(tokens=await engine.count(request), window=engine.window)
    while low < high:
        middle = (low + high) // 2
        tried = replace(request, prompt=Conversation(without_oldest(prompt.items, middle)))
        low, high = (low, middle) if await engine.count(tried) < engine.window else (middle + 1, high)
    log.info("left out the %d oldest items of a conversation, as the client asked", high)
    return replace(request, prompt=Conversation(without_oldest(prompt.items, high)))
