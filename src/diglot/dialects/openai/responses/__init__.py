"""Responses: items in, items out, with a memory. `create` is the heart, `compact` and `count` are beside it, `stored` behind.

Nouns: `body` (what is sent), `input` and `parts` (its items), `tools`, `calls` (kinds of calls), `output` (items as
they go out), `reply` (the response object), `stream` (its events), `failure`, `ids`, `raw`.
"""

from diglot.dialects.openai.responses import compact, count, create, stored

OPERATIONS = (
    create.OPERATION,
    compact.OPERATION,
    count.OPERATION,
    stored.GET,
    stored.DELETE,
    stored.ITEMS,
    stored.CANCEL,
)
SOCKETS = (create.SOCKET,)

__all__ = ["OPERATIONS", "SOCKETS"]
