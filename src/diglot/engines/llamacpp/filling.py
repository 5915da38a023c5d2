"""Filling the middle: a prompt and what follows a gap, as the tokens that a model was trained on.

llama.cpp's own `/infill` cuts what does not fit into a batch without a word, so the prompt is put together here.
Neighbours: `engine` calls this; the marks come from the model's header.

Invariant: nothing of the prompt or the suffix is left out.
"""

from __future__ import annotations

import msgspec

from diglot.core.errors import InvalidField
from diglot.core.request import Generation, RawPrompt
from diglot.engines.peer.client import Peer
from diglot.engines.peer.counting import tokens


async def with_gap(peer: Peer, request: Generation, prompt: RawPrompt, *, marks: tuple[int, int, int]) -> Generation:
    """Return the request with its prompt as tokens. Raises InvalidField for a prompt that is tokens already."""
    if not isinstance(prompt.content, str):
        raise InvalidField("suffix", "it needs a prompt that is text")
    before, behind, middle = marks
    opening = (await tokens(peer, ""))[:1]  # The mark of a beginning, where the model has one.
    text = await tokens(peer, prompt.content, special=False)
    suffix = await tokens(peer, prompt.suffix or "", special=False)
    whole = RawPrompt((*opening, before, *text, behind, *suffix, middle))
    return msgspec.structs.replace(request, prompt=whole)
