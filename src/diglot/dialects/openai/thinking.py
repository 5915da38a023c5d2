"""Thinking: the many words in which clients ask for more or less reasoning.

OpenAI says `reasoning_effort`; routers say `reasoning`; local servers say `think` or `chat_template_kwargs`. The first
of them that says something holds. Of the template's arguments only two are let through: the rest could
change what the prompt is made of. Neighbours: `chat`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from diglot.core.request import Effort

EffortBody = Literal["none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max"]
_EFFORTS: Final[Mapping[EffortBody, Effort]] = {
    "none": "none",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
    "ultra": "max",
    "max": "max",
}


class ReasoningBody(msgspec.Struct):
    """Reasoning as routers and newer clients ask for it."""

    effort: EffortBody | None = None
    enabled: bool | None = None


class TemplateArgumentsBody(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of a chat template that a client may set."""

    enable_thinking: bool | None = None
    reasoning_effort: EffortBody | None = None


def think_of(
    *,
    effort: EffortBody | None,
    reasoning: ReasoningBody | None,
    think: bool | EffortBody | None,
    arguments: TemplateArgumentsBody | None,
) -> bool | Effort | None:
    """Return how much the model is to think, None for its habit."""
    asked = (
        effort,
        *((reasoning.effort, reasoning.enabled) if reasoning else ()),
        think,
        *((arguments.reasoning_effort, arguments.enable_thinking) if arguments else ()),
    )
    for wish in asked:
        if wish is not None:
            return wish if isinstance(wish, bool) else _EFFORTS[wish]
    return None
