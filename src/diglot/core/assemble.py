"""The one fold from events to a result.

Whole answers, stored answers and the last event of a stream are all this fold; there is no other way
to make a `Result`. It reads nothing but the events.

Invariant: where the text is cut into deltas makes no difference to the result.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import assert_never

from diglot.core.events import (
    Compacted,
    Event,
    Finished,
    Progress,
    ReasoningDelta,
    Started,
    TextDelta,
    Timings,
    TokenLogprob,
    ToolCallDone,
    Usage,
)
from diglot.core.items import Message, Reasoning, ToolCall, said
from diglot.core.result import Choice, Result


class _Draft:
    """One choice while it grows: runs of text and of reasoning, and calls, in the order in which they come."""

    def __init__(self) -> None:
        self.items: list[ToolCall | tuple[type[Message | Reasoning], list[str]]] = []
        self.logprobs: list[TokenLogprob] = []
        self.end: Finished | None = None

    def add(self, kind: type[Message | Reasoning], text: str) -> None:
        """Lengthen the last run if it is of this kind, else begin one."""
        last = self.items[-1] if self.items else None
        if isinstance(last, tuple) and last[0] is kind:
            last[1].append(text)
        elif text:
            self.items.append((kind, [text]))

    def choice(self) -> Choice:
        items = tuple(_item(each) for each in self.items)
        return Choice(
            text="".join(item.text for item in items if isinstance(item, Message)),
            reasoning="".join(item.text for item in items if isinstance(item, Reasoning)),
            calls=tuple(item for item in items if isinstance(item, ToolCall)),
            logprobs=tuple(self.logprobs),
            reason=self.end.reason if self.end else "stop",
            items=items,
        )


def _item(run: ToolCall | tuple[type[Message | Reasoning], list[str]]) -> Message | Reasoning | ToolCall:
    if isinstance(run, ToolCall):
        return run
    kind, pieces = run
    return said("assistant", "".join(pieces)) if kind is Message else Reasoning("".join(pieces))


class Assembly:
    """Events in, a `Result` out: `feed` each event, then read `result`."""

    def __init__(self) -> None:
        self._drafts: dict[int, _Draft] = {}
        self._model = ""
        self._input_tokens = 0
        self._compacted: Compacted | None = None

    def feed(self, event: Event) -> None:
        """Take one event in."""
        match event:
            case Progress():
                pass
            case Compacted():
                self._compacted = event
            case Started():
                self._model = event.model
                self._input_tokens = event.input_tokens
            case TextDelta():
                draft = self._draft(event.choice)
                draft.add(Message, event.text)
                draft.logprobs.extend(event.logprobs)
            case ReasoningDelta():
                self._draft(event.choice).add(Reasoning, event.text)
            case ToolCallDone():
                self._draft(event.choice).items.append(event.call)
            case Finished():
                self._draft(event.choice).end = event
            case _:
                assert_never(event)

    def result(self) -> Result:
        """Return what has come so far."""
        order = sorted(self._drafts)
        ends = [end for index in order if (end := self._drafts[index].end)]
        usage = Usage(input=self._input_tokens)
        for end in ends:
            usage = usage.plus(end.usage)
        return Result(
            choices=tuple(self._drafts[index].choice() for index in order),
            usage=usage,
            timings=_together([end.timings for end in ends]),
            model=self._model,
            compacted=self._compacted,
        )

    def _draft(self, choice: int) -> _Draft:
        draft = self._drafts.get(choice)
        if draft is None:
            draft = self._drafts[choice] = _Draft()
        return draft


def _together(timings: list[Timings]) -> Timings:
    """Add up the choices of one request: they load once and prefill once, and decode one after another."""
    return Timings(
        total=max((each.total for each in timings), default=0),
        load=max((each.load for each in timings), default=0),
        prefill=sum(each.prefill for each in timings),
        decode=sum(each.decode for each in timings),
    )


def assemble(events: Iterable[Event]) -> Result:
    """Fold a finished run of events."""
    assembly = Assembly()
    for event in events:
        assembly.feed(event)
    return assembly.result()


async def gather(events: AsyncIterable[Event]) -> Result:
    """Fold a stream of events as it comes. Faults raised by the stream pass through."""
    assembly = Assembly()
    async for event in events:
        assembly.feed(event)
    return assembly.result()
