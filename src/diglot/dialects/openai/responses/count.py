"""POST /v1/responses/input_tokens: how long the prompt of a response would be."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from diglot.core.errors import InvalidField
from diglot.core.request import CountTokens
from diglot.dialects.openai.body import decode
from diglot.dialects.openai.responses.body import ResponseBody, understand, without_answer
from diglot.dialects.openai.responses.reply import encode
from diglot.dialects.operation import Operation, Parsed, Rendered, Stamp, Wire


class InputTokensReply(msgspec.Struct, frozen=True):
    """The count."""

    input_tokens: int
    object: Literal["response.input_tokens"] = "response.input_tokens"


_DECODER = msgspec.json.Decoder(ResponseBody)


def parse(wire: Wire) -> Parsed:
    """Read a request, the same as for a response."""
    understood = understand(decode(wire.body, _DECODER), wire.allowance, keep=False)
    if understood.trigger:
        raise InvalidField("input", "there is no prompt behind a compaction_trigger")
    respond = replace(without_answer(understood.respond), keep=False, echo=b"")
    return Parsed(request=CountTokens(respond), notes=understood.notes)


def whole(view: None, stamp: Stamp, count: int) -> Rendered:  # noqa: ARG001  A count has no id.
    """Render the count."""
    return Rendered(body=encode(InputTokensReply(count)))


OPERATION = Operation(
    method="POST",
    path="/v1/responses/input_tokens",
    summary="Count the tokens of a prompt.",
    parse=parse,
    whole=whole,
    body=ResponseBody,
    reply=InputTokensReply,
)
