"""Ids: how responses and their items are named.

A response is stored under its bare id and shown with `resp_` before it. An item's id is made of its response's id
and its place, so that the same answer always has the same ids and an id that comes back tells where the item is.
"""

from __future__ import annotations

import re

from diglot.core.request import Reference

_RESPONSE = "resp_"
_ITEM = re.compile(r"[a-z]+_(?P<response>[A-Za-z0-9]+)_(?P<place>\d{1,9})")


def response_id(bare: str) -> str:
    """Return the id as clients see it."""
    return _RESPONSE + bare


def bare_id(shown: str) -> str:
    """Return the id under which a response is stored."""
    return shown.removeprefix(_RESPONSE)


def item_id(prefix: str, response: str, place: int | str) -> str:
    """Return the id of an item of the response `response` (bare)."""
    return f"{prefix}_{response}_{place}"


def reference_of(item: str, *, field: str) -> Reference | None:
    """Return where an item is, if the id is one of ours for an item of an output."""
    found = _ITEM.fullmatch(item)
    return Reference(found["response"], output=int(found["place"]), field=field) if found else None
