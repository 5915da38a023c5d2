"""Playing: a reply of the script, under a request's constraints, laid out as events. Pure.

Forced calls, formats, stop words and limits are kept here as a real engine keeps them, over a text that is
known beforehand. Neighbours: `script` says what is wanted, `engine` gives the events out.

Invariant: the events of an answer obey `core.events`, and their token counts add up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec

from diglot.core.events import (
    Alternative,
    Event,
    Finished,
    Reason,
    ReasoningDelta,
    TextDelta,
    TokenLogprob,
    ToolCallDone,
    Usage,
)
from diglot.core.items import ToolCall
from diglot.core.request import AnyJson, Generation, JsonSchema, PlainText, ToolMode, ToolSpec
from diglot.core.tools import WrittenCall, callable_tools, flat_name, flat_parameters, restore
from diglot.engines.scripted.sample import sample
from diglot.engines.scripted.script import Call, Pieces, Reply
from diglot.engines.scripted.tokens import last_words, tokens_of


class Answer(msgspec.Struct, frozen=True):
    """Events behind `Started`, `Finished` the last of them."""

    events: tuple[Event, ...]


def lay_out(reply: Reply, request: Generation, *, usage: Usage, room: int, first_call: int) -> Answer:
    """Lay a reply out. `room` is what the window leaves; `first_call` numbers the calls."""
    limit = request.sampling.max_tokens
    room = room if limit is None or limit < 0 else min(room, limit)
    thoughts = [] if request.think in (False, "none") else _cut(reply.think)
    calls = _calls(reply, request)
    text = [] if _forced(request) else _stopped(_said(reply, request), request.sampling.stop or ())
    total = len(thoughts) + len(text) + sum(_size(call) for call in calls)
    thoughts, text = thoughts[:room], text[: max(0, room - len(thoughts))]
    spent = len(thoughts) + len(text)
    made: list[Event] = [ReasoningDelta(piece) for piece in thoughts]
    made += [_delta(piece, request.logprobs) for piece in text]
    done: list[ToolCall] = []
    for call in calls:
        if spent + _size(call) > room:
            break
        spent += _size(call)
        name = f"call_{first_call + len(done):08d}"
        done.append(restore(WrittenCall(call.name, _text(call)), tools=request.tools, call_id=name))
    made += [ToolCallDone(call) for call in done]
    reason: Reason = "tool_calls" if done else "length" if spent < total else "stop"
    usage = msgspec.structs.replace(usage, output=spent, reasoning=len(thoughts))
    return Answer((*made, Finished(reason, usage=usage)))


def _forced(request: Generation) -> tuple[ToolSpec, ...]:
    return callable_tools(request) if request.tool_choice.mode is ToolMode.REQUIRED else ()


def _calls(reply: Reply, request: Generation) -> list[Call]:
    """Return the calls of the reply that the request allows; a forced one is made up where there is none."""
    declared = {flat_name(tool) for tool in callable_tools(request)}
    calls = [call for call in reply.call if call.name in declared]
    forced = _forced(request)
    if forced and not calls:
        calls = [Call(flat_name(forced[0]), sample(flat_parameters(forced[0])))]
    return calls if request.parallel_calls else calls[:1]


def _said(reply: Reply, request: Generation) -> list[str]:
    pieces = _cut(last_words(request)) if reply.echo else _cut(reply.say)
    match request.format:
        case PlainText():
            return pieces
        case AnyJson():
            return pieces if _is_object("".join(pieces)) else _cut("{}")
        case JsonSchema(schema=schema):
            return pieces if _is_object("".join(pieces)) else _cut(json.dumps(sample(schema), ensure_ascii=False))


def _cut(pieces: Pieces) -> list[str]:
    return tokens_of(pieces) if isinstance(pieces, str) else [piece for piece in pieces if piece]


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _stopped(pieces: list[str], stops: Iterable[str]) -> list[str]:
    """Cut the text before the first stop word, which may lie across pieces."""
    text = "".join(pieces)
    ends = [end for stop in stops if stop and (end := text.find(stop)) >= 0]
    if not ends:
        return pieces
    left, out = min(ends), []
    for piece in pieces:
        if left <= 0:
            break
        out.append(piece[:left])
        left -= len(piece)
    return out


def _text(call: Call) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"))


def _size(call: Call) -> int:
    return len(tokens_of(call.name)) + len(tokens_of(_text(call)))


def _delta(piece: str, logprobs: int | None) -> TextDelta:
    if logprobs is None:
        return TextDelta(piece)
    others = tuple(
        Alternative(token := f"{piece}{rank or ''}", -0.25 - rank, token.encode()) for rank in range(logprobs)
    )
    return TextDelta(piece, logprobs=(TokenLogprob(piece, -0.25, piece.encode(), others),))
