"""Tokens of the scripted engine: short runs of letters, single marks, white space.

A real tokeniser's habits (a token carries its leading blank, a long word is several) without a vocabulary.
Invariant: the tokens of a text, joined, are the text; the number depends on nothing else.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from diglot.core.items import File, Image, text_of
from diglot.core.request import Conversation, Generation, ToolMode
from diglot.core.tools import flat_name, flat_parameters, written_calls
from diglot.core.turns import turns_of

_TOKEN: Final = re.compile(r" ?\w{1,8}| ?[^\w\s]|\s+?(?=\S)|\s+")
_IMAGE: Final = "\N{FRAME WITH PICTURE}" * 16


def tokens_of(text: str) -> list[str]:
    """Cut a text into tokens."""
    return _TOKEN.findall(text)


def prompt_of(request: Generation) -> str:
    """Return the prompt as one text, in the manner of a chat template."""
    if not isinstance(request.prompt, Conversation):
        content = request.prompt.content
        return content if isinstance(content, str) else " ".join(f"t{token % 1_000_000}" for token in content)
    told = []
    if request.tools and request.tool_choice.mode is not ToolMode.NONE:
        listed = [{"name": flat_name(tool), "parameters": flat_parameters(tool)} for tool in request.tools]
        told.append(f"<tools>{msgspec.json.encode(listed).decode()}</tools>\n")
    for turn in turns_of(request.prompt.items):
        pictures = sum(isinstance(part, Image | File) for part in turn.content) * _IMAGE
        told.append(f"<{turn.role}>{turn.reasoning}{text_of(turn.content)}{written_calls(turn.calls)}{pictures}\n")
    return "".join(told)


def last_words(request: Generation) -> str:
    """Return what the user said last."""
    if not isinstance(request.prompt, Conversation):
        return prompt_of(request)
    return next((text_of(turn.content) for turn in reversed(turns_of(request.prompt.items)) if turn.role == "user"), "")
