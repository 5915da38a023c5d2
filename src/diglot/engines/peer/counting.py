"""Counting: how many tokens a prompt has, rendered as the answer would be.

By the server's own counter where there is one, else by its tokeniser, else by asking for one token and
reading the bill. Never from the length of the text. Neighbours: `client` asks, `hosts` says what there is.
"""

from __future__ import annotations

from contextlib import aclosing

import msgspec

from diglot.core.events import Finished
from diglot.core.request import Generation, PlainText, RawPrompt, ToolChoice
from diglot.engines.peer.body import prompt_body
from diglot.engines.peer.client import Peer


class _InputTokens(msgspec.Struct):
    input_tokens: int


class Tokens(msgspec.Struct):
    """A text as token ids."""

    tokens: list[int]


async def count(peer: Peer, request: Generation) -> int:
    """Return the number of tokens of the prompt."""
    host, prompt = peer.target.host, request.prompt
    if isinstance(prompt, RawPrompt):
        if not isinstance(prompt.content, str):
            return len(prompt.content)
        if host.tokenizes:
            return len(await tokens(peer, prompt.content))
    elif host.counts:
        body = prompt_body(request, peer.target)
        reply = await peer.call("/v1/chat/completions/input_tokens", body, reply_type=_InputTokens, request=request)
        return reply.input_tokens
    elif host.tokenizes:
        body = prompt_body(request, peer.target)
        return len((await peer.call("/tokenize", body, reply_type=Tokens, request=request)).tokens)
    return await _billed(peer, request)


async def tokens(peer: Peer, text: str, *, special: bool = True) -> list[int]:
    """Return a text as token ids, with what the model puts around a text if `special`."""
    if peer.target.host.counts:
        body: dict[str, object] = {"content": text, "add_special": special}
    else:
        body = {"model": peer.target.model, "prompt": text, "add_special_tokens": special}
    return (await peer.call("/tokenize", body, reply_type=Tokens)).tokens


async def _billed(peer: Peer, request: Generation) -> int:
    """Have one token made of the same prompt and read what the server counted."""
    sampling = msgspec.structs.replace(request.sampling, max_tokens=1)
    short = msgspec.structs.replace(request, sampling=sampling, format=PlainText(), tool_choice=ToolChoice())
    async with aclosing(peer.generate(short)) as events:
        async for event in events:
            if isinstance(event, Finished):
                return event.usage.input
    return 0
