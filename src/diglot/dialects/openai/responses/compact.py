"""POST /v1/responses/compact: a conversation in, a shorter one out.

What comes out is what the next request begins with: all that the user said, then one item that stands for the rest.
The body is that of a response, for clients send what they would have sent there. Neighbours: `body`, `output`.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.request import Compacting
from diglot.core.result import Result
from diglot.dialects.openai.body import decode
from diglot.dialects.openai.responses.body import ResponseBody, understand, without_answer
from diglot.dialects.openai.responses.ids import item_id, response_id
from diglot.dialects.openai.responses.output import compaction_reply, input_replies
from diglot.dialects.openai.responses.reply import UsageReply, encode, usage_reply
from diglot.dialects.operation import Operation, Parsed, Rendered, Stamp, Wire


class CompactionReply(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation, folded up."""

    id: str
    object: Literal["response.compaction"] = "response.compaction"
    created_at: int
    output: list[Any]
    usage: UsageReply


_DECODER = msgspec.json.Decoder(ResponseBody)


def parse(wire: Wire) -> Parsed:
    """Read a request. It is never streamed, and stored only if it says so."""
    body = decode(wire.body, _DECODER)
    if not body.model:
        raise InvalidField("model", "is required")
    if body.background:
        raise UnsupportedField("background", "a conversation is compacted while the client waits")
    understood = understand(body, wire.allowance, keep=False)
    if understood.trigger:
        raise InvalidField("input", "a compaction_trigger belongs to /v1/responses")
    respond = without_answer(understood.respond)
    generation = replace(respond.generation, compacting=Compacting(instead=True))
    return Parsed(request=replace(respond, generation=generation), notes=understood.notes)


def whole(view: None, stamp: Stamp, result: Result) -> Rendered:  # noqa: ARG001  It echoes nothing.
    """Render what the next request begins with."""
    compacted = result.compacted
    assert compacted is not None  # noqa: S101  That is what was asked for.
    item = compaction_reply(compacted.item, id=item_id("cmp", stamp.id, 0))
    reply = CompactionReply(
        id=response_id(stamp.id),
        created_at=int(stamp.now),
        output=[*input_replies(compacted.kept, stamp.id), item],
        usage=usage_reply(compacted.usage),
    )
    return Rendered(body=encode(reply))


OPERATION = Operation(
    method="POST",
    path="/v1/responses/compact",
    summary="Fold a conversation up.",
    parse=parse,
    whole=whole,
    body=ResponseBody,
    reply=CompactionReply,
)
