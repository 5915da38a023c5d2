"""Trials: a conversation compacted in one way or another, and what stands in the window afterwards.

Every way begins where a live session is: the conversation was just answered and lies in the KV cache. A compaction
that failed leaves no window to go on with, so that nothing stands in it. Whether a file counts as changed is read
from our ledger; to a summary in prose every changed file that it mentions is credited, and no false one is held
against it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from bench.compaction.facts import f1, recall
from bench.compaction.sessions import Fact, Session, length, make_session
from bench.compaction.watching import Watched
from bench.compaction.ways import Way, Window, is_answer, ours
from diglot.core.compaction.record import read_summary, record_of
from diglot.core.compaction.window import is_shown_summary
from diglot.core.items import Item, Message, Reasoning, ToolCall, ToolResult
from diglot.core.ports import Engine
from diglot.core.request import Conversation, Generation, Residence, Sampling
from diglot.services.compact import previous_record

FULL = 0.85  # Of the window, when an agent compacts; Codex does so at 0.9 with the answer counted in.
_WELL_BELOW = 0.8
_SAME = 64


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """What one compaction cost and kept. Shares are of 1; `unseen` counts items that no question held."""

    success: bool
    seconds: float
    cached: float
    valid: float | None
    facts: float
    rules: float
    files: float
    before: int
    after: int
    answers: int
    counts: int
    unseen: int


def asking(session: Session, items: tuple[Item, ...]) -> Generation:
    """Return the live request that holds a conversation."""
    return Generation(residence=Residence(), prompt=Conversation(items), tools=session.tools)


async def sized(engine: Engine, seed: int, *, kind: str, language: str, tokens: int) -> Session:
    """Return a session of nearly so many tokens of this model, never more than that."""
    asked = float(tokens)
    while True:
        session = make_session(seed, kind=kind, language=language, tokens=int(asked))
        found = await engine.count(asking(session, session.items))
        if found <= tokens:
            return session
        asked *= min(0.97, tokens / found)


async def warm(engine: Engine, request: Generation) -> None:
    """Bring the engine to where a live session has it, if the conversation fits at all."""
    if await engine.count(request) < engine.window - 1:
        async for _ in engine.generate(replace(request, sampling=Sampling(temperature=0.0, max_tokens=1))):
            pass


async def tried(way: Way, engine: Engine, session: Session, *, answer: int) -> Score:
    """Compact a session once."""
    score, _ = await _tried(way, engine, session, session.items, answer)
    return score


async def _tried(
    way: Way, engine: Engine, session: Session, items: tuple[Item, ...], answer: int
) -> tuple[Score, Window | None]:
    request = asking(session, items)
    await warm(engine, request)
    watched = Watched(engine)
    begun = time.perf_counter()
    window = await way(watched, request, answer)
    seconds = time.perf_counter() - begun
    usages = [each.result.usage for each in watched.answers]
    after = await engine.count(asking(session, window)) if window else 0
    text = text_of(window or ())
    return Score(
        success=window is not None and after < engine.window * _WELL_BELOW,
        seconds=seconds,
        cached=sum(each.cached for each in usages) / max(1, sum(each.input for each in usages)),
        valid=_valid(way, watched, window),
        facts=recall(session.facts, text),
        rules=sum(rule in text for rule in session.rules) / len(session.rules),
        files=_files(session, window or (), text),
        before=await engine.count(request),
        after=after,
        answers=len(usages),
        counts=watched.counts,
        unseen=_unseen(items, watched),
    ), window


def _valid(way: Way, watched: Watched, window: Window | None) -> float | None:
    """Return the share of answers that could be used, None if nothing was answered."""
    if not watched.answers:
        return None
    if way is ours:
        return sum(is_answer(each.result.choices[0]) for each in watched.answers) / len(watched.answers)
    return (window is not None) / len(watched.answers)


def _files(session: Session, window: Window, text: str) -> float:
    """Return the F1 of the changed files, relative to the folder of the session."""
    summaries = [item.text for item in window if isinstance(item, ToolResult) and is_shown_summary(item)]
    if any(read_summary(each)[0] for each in summaries):
        ledger = record_of(window, previous_record(window)).ledger
        return f1([change.path for change in ledger.files], session.changed_files)
    return f1([path for path in session.changed_files if path in text], session.changed_files)


def _unseen(items: Sequence[Item], watched: Watched) -> int:
    """Return how many items stood in none of the questions, not even abridged."""
    shown = {_mark(item) for each in watched.answers for item in each.items}
    return sum(_mark(item) not in shown for item in items)


def _mark(item: Item) -> tuple[str, str]:
    match item:
        case ToolCall() | ToolResult():
            return type(item).__name__, item.call_id
        case Message() | Reasoning():
            return type(item).__name__, item.text[:_SAME]
        case _:
            return type(item).__name__, ""


def text_of(window: Window) -> str:
    """Return everything that a window says, arguments without their escapes."""
    texts: list[str] = []
    for item in window:
        match item:
            case Message() | Reasoning() | ToolResult():
                texts.append(item.text)
            case ToolCall():
                texts += [item.arguments, item.arguments.replace("\\n", "\n").replace('\\"', '"')]
            case _:
                pass
    return "\n".join(texts)


class Round(msgspec.Struct, frozen=True):
    """One of several compactions in a row: its score, and the share of the facts of the first stretch that stand."""

    score: Score
    left: float


async def chained(way: Way, engine: Engine, session: Session, *, answer: int, rounds: int) -> list[Round]:
    """Compact whenever the window is full, so many times. After a failure nothing is left, for good."""
    density = await engine.count(asking(session, session.items)) / length(session.items)
    rest = list(session.items)
    window: Window = ()
    done: list[Round] = []
    first: list[Fact] = []
    while len(done) < rounds:
        grown = _grown(window, rest, int(engine.window * FULL / density))
        if not done:
            first = [fact for fact in session.facts if fact.text in text_of(grown)]
        score, after = await _tried(way, engine, session, grown, answer)
        if after is None:
            return [*done, *[Round(score, 0.0)] * (rounds - len(done))]
        window = after
        done.append(Round(score, recall(first, text_of(window))))
    return done


def _grown(window: Window, rest: list[Item], characters: int) -> Window:
    """Move items from the rest to the window until it is so long, no call without its result."""
    grown = list(window)
    size = length(grown)
    while rest and (size < characters or isinstance(rest[0], ToolResult)):
        item = rest.pop(0)
        grown.append(item)
        size += length((item,))
    return tuple(grown)
