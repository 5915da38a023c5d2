"""Failure: a fault when the response has begun, or on a WebSocket, in words that make clients do the right thing.

Codex tries a failed response again unless its code says that this is of no use. So what is wrong with the request is
`invalid_prompt`, a prompt that is too long has its own code, and a server that is busy says when to come back.
"""

from __future__ import annotations

from http import HTTPStatus

from diglot.core.errors import AnyFault, Busy, ContextExceeded
from diglot.dialects.openai.errors import render_error
from diglot.dialects.openai.responses.reply import ErrorReply, encode


def failure(fault: AnyFault) -> ErrorReply:
    """Return the error of a response that failed."""
    match fault:
        case ContextExceeded():
            return ErrorReply("context_length_exceeded", fault.message)
        case Busy():
            return ErrorReply("rate_limit_exceeded", f"{fault.message}; try again in {fault.retry_after:g}s")
        case _ if render_error(fault).status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return ErrorReply("invalid_prompt", fault.message)
        case _:
            return ErrorReply("server_error", fault.message)


def error_event(fault: AnyFault) -> bytes:
    """Return a fault as a message of a WebSocket: status and headers, which HTTP would have, stand in it."""
    rendered = render_error(fault)
    head = {"type": "error", "status": int(rendered.status), "headers": dict(rendered.headers)}
    return encode(head)[:-1] + b"," + rendered.body[1:]
