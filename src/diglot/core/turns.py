"""Turns: items put into the form that chat templates expect. The only place that knows that form.

Chat templates differ in what they bear: one leading system message, a user who speaks first, roles that
alternate, one result right behind each call, pictures from users only. These turns satisfy the strictest of
them, so that no model needs a case of its own. They are deliberately no wire format: `engines.peer` writes them
down. Neighbour: `core.pairing` says which result belongs to which call.

Invariants: at most one system turn, and it comes first; no two user turns and no two assistant turns stand
side by side; each call has one result, right behind its turn, unless nothing follows it. What is appended to
the items leaves all turns but the last as they were, and the last one's beginning, so that the KV cache holds;
only system and developer messages, and results that come late, change what is earlier.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, assert_never

import msgspec

from diglot.core.items import (
    Compaction,
    Image,
    Item,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from diglot.core.pairing import Pairing
from diglot.core.tools import flat_name

_PICTURE = Text("[image: see below]")
_NO_RESULT = Text("[no result]")
_NAMELESS = "tool"


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
        self.calls: list[tuple[ToolCall, tuple[ToolResult, ...]]] = []

    def turn(self) -> Turn | None:
        content = joined(self.content, "\n\n")
        if not (self.reasoning or content or self.calls):
            return None
        return Turn(
            role="assistant",
            content=content,
            reasoning="\n\n".join(self.reasoning),
            calls=tuple(call for call, _ in self.calls),
        )


class _Layout:
    """The turns so far, and the assistant turn that is still open."""

    def __init__(self, items: tuple[Item, ...]) -> None:
        self.pairing = Pairing(items)
        self.system: list[Part] = []
        self.turns: list[Turn] = []
        self.asked: list[Part] | None = None
        self.open = _Assistant()

    def place(self, index: int, item: Item) -> None:
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
                self.open.calls.append((item, self.pairing.results(index)))
            case ToolResult() if self.pairing.is_orphan(index, item):
                self.orphan(item)
            case ToolResult():
                self.close_calls()
            case Compaction() | Opaque():
                pass
            case _:
                assert_never(item)

    def close_calls(self) -> None:
        """End the open turn if it has calls; without, what comes next from the model still belongs to it."""
        if self.open.calls:
            self.close()

    def close(self, *, last: bool = False) -> None:
        """End the open assistant turn and put the results of its calls behind it.

        A call without one is told so, but for the `last` turn, whose results are still to come.
        """
        done, self.open = self.open, _Assistant()
        turn = done.turn()
        if turn is None:
            return
        self.assistant(turn)
        pictures: list[Part] = []
        for call, results in done.calls:
            parts = joined((part for result in results for part in result.content), "\n\n")
            if not results:
                if last:
                    continue
                parts = (_NO_RESULT,)
            pictures += [part for part in parts if isinstance(part, Image)]
            told = joined((_PICTURE if isinstance(part, Image) else part for part in parts), "\n\n")
            self.turns.append(Turn(role="tool", content=told, call_id=call.call_id, name=flat_name(call)))
        if pictures:
            self.asked = pictures

    def assistant(self, turn: Turn) -> None:
        self.end_question()
        if not self.turns:
            self.turns.append(Turn(role="user"))
        self.turns.append(turn)

    def orphan(self, result: ToolResult) -> None:
        """Place a result whose call is gone behind a call made for it: as a user's words it would be trusted."""
        call = ToolCall(call_id=result.call_id, name=result.name or _NAMELESS, arguments="{}")
        self.close_calls()
        self.open.calls.append((call, (result,)))
        self.close()

    def user(self, content: Iterable[Part]) -> None:
        self.close()
        if self.asked is None:
            self.asked = []
        self.asked.extend(content)

    def end_question(self) -> None:
        """End the user's turn, if one is open."""
        if self.asked is not None:
            self.turns.append(Turn(role="user", content=joined(self.asked, "\n\n")))
            self.asked = None


def turns_of(items: Iterable[Item]) -> tuple[Turn, ...]:
    """Lay items out as turns. Items that no model reads (`Opaque`) are left out."""
    items = tuple(items)
    layout = _Layout(items)
    for index, item in enumerate(items):
        layout.place(index, item)
    layout.close(last=True)
    layout.end_question()
    system = joined(layout.system, "\n\n")
    if not system:
        return tuple(layout.turns)
    return (Turn(role="system", content=system), *(layout.turns or (Turn(role="user"),)))


def joined(parts: Iterable[Part], glue: str) -> tuple[Part, ...]:
    """Join neighbouring texts into one, with `glue` between them; other parts keep their place, empty texts go."""
    out: list[Part] = []
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            texts.extend(filter(None, [part.text]))
            continue
        if texts:
            out.append(Text(glue.join(texts)))
            texts = []
        out.append(part)
    return (*out, Text(glue.join(texts))) if texts else tuple(out)
