"""POST /v1/responses: items in, items out, whole or as events, and the same over a WebSocket.

Neighbours: `body` reads, `stream` and `output` write, `stored` shows again what was stored.
Source: the types of the `openai` package; what Codex does with them (docs/codex.md).
"""

from __future__ import annotations

import msgspec

from diglot.core.errors import InvalidField
from diglot.core.result import Result, Status, Stored
from diglot.dialects.openai.body import decode
from diglot.dialects.openai.responses.body import ResponseBody, understand
from diglot.dialects.openai.responses.failure import error_event
from diglot.dialects.openai.responses.output import output_replies
from diglot.dialects.openai.responses.reply import ResponseReply, View, encode, response_reply, stored_reply
from diglot.dialects.openai.responses.stream import ResponseStream
from diglot.dialects.operation import Operation, Parsed, Rendered, Socket, Stamp, Wire
from diglot.framing import sse


class SocketBody(ResponseBody, kw_only=True):
    """A message over a WebSocket. `generate: false` takes everything in and answers nothing yet."""

    type: str
    generate: bool | None = None


_DECODER = msgspec.json.Decoder(ResponseBody)
_SOCKET_DECODER = msgspec.json.Decoder(SocketBody)


def parse(wire: Wire) -> Parsed:
    """Read a request."""
    body = decode(wire.body, _DECODER)
    understood = understand(body, wire.allowance)
    return Parsed(request=understood.respond, view=understood.view, stream=bool(body.stream), notes=understood.notes)


def parse_message(wire: Wire) -> Parsed:
    """Read a message of a WebSocket."""
    body = decode(wire.body, _SOCKET_DECODER)
    if body.type != "response.create":
        raise InvalidField("type", "only response.create is known here")
    if body.background:
        raise InvalidField("background", "a response over a WebSocket cannot go on without it")
    understood = understand(body, wire.allowance)
    respond = msgspec.structs.replace(understood.respond, prime=body.generate is False)
    return Parsed(request=respond, view=understood.view, stream=True, notes=understood.notes)


def whole(view: View, stamp: Stamp, answer: Result | Stored) -> Rendered:
    """Render a response: one that has come to its end, or one that begins in the background."""
    reply = stored_reply(answer) if isinstance(answer, Stored) else _reply(view, stamp, answer)
    return Rendered(body=encode(reply))


def _reply(view: View, stamp: Stamp, result: Result) -> ResponseReply:
    choice = result.choices[0]
    status: Status = "incomplete" if choice.reason == "length" else "completed"
    output = output_replies(
        choice.items,
        response=stamp.id,
        open_text=view.open_text,
        logprobs=choice.logprobs,
        cut=status == "incomplete",
        compacted=result.compacted,
    )
    return response_reply(
        view,
        stamp,
        status=status,
        model=result.model,
        output=output,
        usage=result.usage,
        finished=stamp.now + result.timings.total / 1e9,
    )


def stream(view: View, stamp: Stamp) -> ResponseStream:
    """Return the renderer for server-sent events."""
    return ResponseStream(view, stamp, lambda name, data: sse.encode(data, name))


def stream_lines(view: View, stamp: Stamp) -> ResponseStream:
    """Return the renderer for messages, one a line."""
    return ResponseStream(view, stamp, lambda _, data: data + b"\n")


OPERATION = Operation(
    method="POST",
    path="/v1/responses",
    summary="Answer a conversation of items, and remember it.",
    parse=parse,
    whole=whole,
    stream=stream,
    body=ResponseBody,
    reply=ResponseReply,
)
SOCKET = Socket(path="/v1/responses", parse=parse_message, stream=stream_lines, error=error_event)
