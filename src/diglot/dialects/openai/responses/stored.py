"""Stored responses: shown, listed by what was sent, deleted, stopped.

Neighbours: `reply` and `output` write them; `create` makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.foreign import UNREADABLE
from diglot.core.request import CancelResponse, FetchResponse, ForgetResponse
from diglot.core.result import Stored
from diglot.dialects.openai.responses.ids import bare_id, response_id
from diglot.dialects.openai.responses.output import input_replies
from diglot.dialects.openai.responses.reply import ResponseReply, encode, stored_reply
from diglot.dialects.operation import Operation, Parsed, Rendered, Stamp, Wire

_PATH = "/v1/responses/{id}"
_MOST = 100
_USUAL = 20


class DeletedReply(msgspec.Struct, frozen=True):
    """A response that is no more."""

    id: str
    object: Literal["response"] = "response"
    deleted: bool = True


class ItemsReply(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the items that were sent with a response."""

    object: Literal["list"] = "list"
    data: Sequence[Any]
    first_id: str | None
    last_id: str | None
    has_more: bool


class PageView(msgspec.Struct, frozen=True):
    """Which of the items are wanted."""

    descending: bool
    limit: int
    after: str | None


class _Named(msgspec.Struct):
    id: str | None = None


def parse_one(wire: Wire) -> Parsed:
    """Read a request for a response."""
    if wire.query.get("stream", "").lower() == "true":
        raise UnsupportedField("stream", "a stored response is shown as it stands; ask again until it is done")
    return Parsed(request=FetchResponse(bare_id(wire.path["id"])))


def whole_one(view: None, stamp: Stamp, stored: Stored) -> Rendered:  # noqa: ARG001  It has its own id and time.
    """Render a response."""
    return Rendered(body=encode(stored_reply(stored)))


def parse_delete(wire: Wire) -> Parsed:
    """Read a request to delete."""
    bare = bare_id(wire.path["id"])
    return Parsed(request=ForgetResponse(bare), view=bare)


def whole_deleted(view: str, stamp: Stamp, answer: None) -> Rendered:  # noqa: ARG001  There is nothing left.
    """Render that it is gone."""
    return Rendered(body=encode(DeletedReply(response_id(view))))


def parse_cancel(wire: Wire) -> Parsed:
    """Read a request to stop."""
    return Parsed(request=CancelResponse(bare_id(wire.path["id"])))


def parse_items(wire: Wire) -> Parsed:
    """Read a request for what was sent."""
    order = wire.query.get("order", "desc")
    limit = wire.query.get("limit", str(_USUAL))
    if order not in ("asc", "desc"):
        raise InvalidField("order", "must be asc or desc")
    if not (limit.isascii() and limit.isdecimal() and len(limit) <= len(str(_MOST)) and 1 <= int(limit) <= _MOST):
        raise InvalidField("limit", f"must be a number from 1 to {_MOST}")
    view = PageView(descending=order == "desc", limit=int(limit), after=wire.query.get("after") or None)
    return Parsed(request=FetchResponse(bare_id(wire.path["id"])), view=view)


def whole_items(view: PageView, stamp: Stamp, stored: Stored) -> Rendered:  # noqa: ARG001  Items have their own ids.
    """Render a page of items."""
    data = [msgspec.Raw(encode(item)) for item in input_replies(stored.input, stored.id)]
    ids = [_id_of(item) for item in data]
    if view.descending:
        data, ids = data[::-1], ids[::-1]
    if view.after is not None and view.after not in ids:
        raise InvalidField("after", "no item has this id")
    begin = 0 if view.after is None else ids.index(view.after) + 1
    end = begin + view.limit
    shown = ids[begin:end]
    reply = ItemsReply(
        data=data[begin:end],
        first_id=shown[0] if shown else None,
        last_id=shown[-1] if shown else None,
        has_more=end < len(data),
    )
    return Rendered(body=encode(reply))


def _id_of(item: msgspec.Raw) -> str | None:
    try:
        return msgspec.json.decode(bytes(item), type=_Named).id
    except UNREADABLE:
        return None


GET = Operation(
    method="GET",
    path=_PATH,
    summary="Show a stored response.",
    parse=parse_one,
    whole=whole_one,
    reply=ResponseReply,
)
DELETE = Operation(
    method="DELETE",
    path=_PATH,
    summary="Delete a stored response.",
    parse=parse_delete,
    whole=whole_deleted,
    reply=DeletedReply,
)
CANCEL = Operation(
    method="POST",
    path=f"{_PATH}/cancel",
    summary="Stop a response that runs in the background.",
    parse=parse_cancel,
    whole=whole_one,
    reply=ResponseReply,
)
ITEMS = Operation(
    method="GET",
    path=f"{_PATH}/input_items",
    summary="List what was sent with a response.",
    parse=parse_items,
    whole=whole_items,
    reply=ItemsReply,
)
