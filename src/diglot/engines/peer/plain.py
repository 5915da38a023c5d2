"""Plain turns: a conversation with tools, told to a model whose chat template knows none.

The tools are listed in the system turn, calls and results become text of the form that the list asks for.
Without this a template drops them silently, and the model never learns that it may call. Neighbours:
`core.turns` lays out the turns, `core.tools` words the list, `core.salvage` reads the calls that come back.

Invariant: roles alternate as before, and appended items change no earlier turn.
"""

from __future__ import annotations

from collections.abc import Iterable

from diglot.core.items import Text
from diglot.core.request import ToolSpec
from diglot.core.tools import tool_list_text, written_calls
from diglot.core.turns import Turn, joined


def plain_turns(turns: Iterable[Turn], tools: tuple[ToolSpec, ...]) -> tuple[Turn, ...]:
    """Return the turns with everything about tools as text."""
    out: list[Turn] = []
    for turn in turns:
        told = _told(turn)
        last = out[-1] if out else None
        if last is not None and last.role == told.role == "user":
            out[-1] = Turn(role="user", content=joined([*last.content, *told.content], "\n\n"))
        else:
            out.append(told)
    if not tools:
        return tuple(out)
    listed = Text(tool_list_text(tools))
    if out and out[0].role == "system":
        return (Turn(role="system", content=joined([*out[0].content, listed], "\n\n")), *out[1:])
    return (Turn(role="system", content=(listed,)), *out)


def _told(turn: Turn) -> Turn:
    if turn.role == "tool":
        result = joined([Text("<tool_response>"), *turn.content, Text("</tool_response>")], "\n")
        return Turn(role="user", content=result)
    if turn.calls:
        content = joined([*turn.content, Text(written_calls(turn.calls))], "\n")
        return Turn(role="assistant", content=content, reasoning=turn.reasoning)
    return turn
