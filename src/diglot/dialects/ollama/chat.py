"""`POST /api/chat`: an answer to a conversation.

Without messages it loads the model, or lets it go where `keep_alive` is 0: one object, never a stream.
Neighbours: `messages`, `tools` and `fields` read, `replies` and `lines` write.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from diglot.core.request import Conversation, Generation, Load, Unload
from diglot.core.result import Result
from diglot.dialects.ollama import replies
from diglot.dialects.ollama.errors import Wording
from diglot.dialects.ollama.fields import format_of, logprobs_of, overflow_of, refuse, residence_of, think_of
from diglot.dialects.ollama.lines import Lines
from diglot.dialects.ollama.messages import MessageBody, items_of
from diglot.dialects.ollama.options import OptionsBody, sampling_of
from diglot.dialects.ollama.replies import ChatReply, chat_form
from diglot.dialects.ollama.tools import ToolBody, tools_of
from diglot.dialects.ollama.wire import read
from diglot.dialects.operation import NDJSON, Operation, Parsed, Rendered, Stamp, Wire


class ChatBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body. Null counts as not given in every field."""

    model: str | None = None
    messages: list[MessageBody] | None = None
    tools: list[ToolBody] | None = None
    stream: bool | None = None
    format: Any = None
    options: OptionsBody | None = None
    keep_alive: float | str | None = None
    think: bool | str | None = None
    truncate: bool | None = None
    shift: Any = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    debug_render_only: bool | None = msgspec.field(default=None, name="_debug_render_only")


DECODER: Final = msgspec.json.Decoder(ChatBody)
WORDING: Final = Wording()


class ChatView(msgspec.Struct, frozen=True):
    """What rendering needs: the model's name as the client wrote it."""

    model: str | None


def parse(wire: Wire) -> Parsed:
    """Read a request."""
    body = read(DECODER, wire)
    residence = residence_of(body.model, body.options, body.keep_alive)
    view = ChatView(residence.model)
    refuse("_debug_render_only", body.debug_render_only, "the rendered prompt is not shown")
    wire.allowance.admit_messages(len(body.messages or ()), field="messages")
    items = items_of(body.messages or [], links=wire.allowance.links)
    wire.allowance.admit_contents(items, field="messages")
    generation = Generation(
        residence=residence,
        prompt=Conversation(items),
        tools=tools_of(body.tools, wire.allowance),
        sampling=sampling_of(body.options),
        format=format_of(body.format),
        think=think_of(body.think),
        must_think=bool(body.think),
        logprobs=logprobs_of(body.logprobs, body.top_logprobs),
        overflow=overflow_of(body.truncate),
    )
    if not body.messages:
        load = Load(residence, must_think=bool(body.think))
        return Parsed(Unload(residence) if residence.keep_alive == 0 else load, view)
    return Parsed(generation, view, stream=body.stream is not False)


def whole(view: ChatView, stamp: Stamp, result: Result) -> Rendered:
    """Write the whole answer."""
    return replies.whole(chat_form, view.model, stamp=stamp, result=result)


def stream(view: ChatView, _stamp: Stamp) -> Lines:
    """Write the answer line by line."""
    return Lines(chat_form, view.model, wording=WORDING.of)


CHAT: Final = Operation(
    method="POST",
    path="/api/chat",
    summary="Answer a conversation, or load or unload a model when there are no messages",
    parse=parse,
    whole=whole,
    stream=stream,
    stream_type=NDJSON,
    body=ChatBody,
    reply=ChatReply,
    error=WORDING.render,
)
