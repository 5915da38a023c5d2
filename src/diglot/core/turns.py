"""Turns: items put into the form that chat templates expect. The only place that knows that form.

Chat templates differ in what they bear: one leading system message, roles that alternate, results right
behind the calls they belong to. These turns satisfy the strictest of them, so that no model needs a case
of its own. They are deliberately no wire format: `engines.peer` writes them down.

Invariants: at most one system turn, and it comes first; no two user turns and no two assistant turns stand
side by side; a result follows the turn that made its call. What is appended to the items (but for
system and developer messages) leaves all earlier turns as they were, so that the KV cache holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, assert_never

import msgspec

from diglot.core.items import (
    Compaction,
    Item,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)


class Turn(msgspec.Struct, frozen=True):
    """One message of a chat template. A tool turn answers `call_id`; `name` is the tool's where known."""

    role: Literal["system", "user", "assistant", "tool"]
    content: tuple[Part, ...] = ()
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    name: str | None = None


class _Assistant:
    """An assistant turn while it grows: thought, text and calls up to the first result or other voice."""

    def __init__(self) -> None:
        self.reasoning: list[str] = []
        self.content: list[Part] = []
        self.calls: list[ToolCall] = []

    def turn(self) -> Turn | None:
        if not (self.reasoning or self.content or self.calls):
            return None
        return Turn(
            role="assistant",
            content=joined(self.content, "\n\n"),
            reasoning="\n\n".join(self.reasoning),
            calls=tuple(self.calls),
        )


class _Layout:
    """The turns so far, and the assistant turn that is still open."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = tuple(items)
        self.system: list[Part] = []
        self.turns: list[Turn] = []
        self.open = _Assistant()
        self.results = {item.call_id: item for item in self.items if isinstance(item, ToolResult)}
        self.names = {item.call_id: item.name for item in self.items if isinstance(item, ToolCall)}
        self.placed: set[str] = set()

    def place(self, item: Item) -> None:
        """Put one item where it belongs."""
        match item:
            case Message(role="system" | "developer"):
                self.system.extend(item.content)
            case Message(role="user"):
                self.user(item.content)
            case Message():
                self.open.content.extend(item.content)
            case Reasoning():
                self.open.reasoning.extend(filter(None, [item.text]))
            case ToolCall():
                self.open.calls.append(item)
            case ToolResult():
                self.close()
                if item.call_id not in self.placed:
                    self.answer(item)
            case Compaction() | Opaque():
                pass
            case _:
                assert_never(item)

    def close(self) -> None:
        """End the open assistant turn and put the results of its calls behind it."""
        turn, self.open = self.open.turn(), _Assistant()
        if turn is None:
            return
        self.turns.append(turn)
        for call in turn.calls:
            result = self.results.get(call.call_id)
            if result is not None and call.call_id not in self.placed:
                self.answer(result)

    def answer(self, result: ToolResult) -> None:
        self.placed.add(result.call_id)
        name = result.name or self.names.get(result.call_id)
        self.turns.append(Turn(role="tool", content=result.content, call_id=result.call_id, name=name))

    def user(self, content: tuple[Part, ...]) -> None:
        self.close()
        last = self.turns[-1] if self.turns else None
        if last is not None and last.role == "user":
            self.turns[-1] = Turn(role="user", content=joined([*last.content, *content], "\n\n"))
        else:
            self.turns.append(Turn(role="user", content=content))


def turns_of(items: Iterable[Item]) -> tuple[Turn, ...]:
    """Lay items out as turns. Items that no model reads (`Opaque`) are left out."""
    layout = _Layout(items)
    for item in layout.items:
        layout.place(item)
    layout.close()
    head = (Turn(role="system", content=joined(layout.system, "\n\n")),) if layout.system else ()
    return (*head, *_alternating(layout.turns))


def _alternating(turns: Iterable[Turn]) -> list[Turn]:
    """Join assistant turns that stand side by side."""
    out: list[Turn] = []
    for turn in turns:
        last = out[-1] if out else None
        if last is not None and last.role == turn.role == "assistant":
            out[-1] = Turn(
                role="assistant",
                content=joined([*last.content, *turn.content], "\n\n"),
                reasoning="\n\n".join(filter(None, (last.reasoning, turn.reasoning))),
                calls=(*last.calls, *turn.calls),
            )
        else:
            out.append(turn)
    return out


def joined(parts: Iterable[Part], glue: str) -> tuple[Part, ...]:
    """Join neighbouring texts into one, with `glue` between them; other parts keep their place."""
    out: list[Part] = []
    for part in parts:
        last = out[-1] if out else None
        if isinstance(part, Text) and isinstance(last, Text):
            out[-1] = Text(glue.join(filter(None, (last.text, part.text))))
        else:
            out.append(part)
    return tuple(out)
