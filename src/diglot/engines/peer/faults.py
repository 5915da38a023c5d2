"""Faults of a server, told from its status and the fields of its error.

The only place that knows how llama.cpp, vLLM and others say what is wrong. The text of an error is looked at
in one case only, marked below, where a server offers no field. It goes to the log; what a client sees of it
is short, and never an answer. Sources: llama.cpp `server-task.cpp`, vLLM `entrypoints/openai/protocol.py`,
OpenAI's error object; measured in docs/engines.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from diglot.core.errors import (
    Busy,
    ContextExceeded,
    EngineFailed,
    Fault,
    InvalidField,
    ModelIncapable,
    ModelNotFound,
    UpstreamFailed,
)
from diglot.core.foreign import UNREADABLE
from diglot.core.request import Generation, PlainText

MAX_ERROR = 64 * 1024
_SHOWN = 300
_LONGEST_WAIT = 3600.0
# vLLM before 0.20 and SGLang say it in words only.
_TOO_LONG = re.compile(r"maximum context length|context length is only|longer than the model's context", re.IGNORECASE)


class _Error(msgspec.Struct):
    message: str = ""
    type: str | None = None
    code: int | str | None = None
    param: str | None = None
    n_prompt_tokens: int = 0
    n_ctx: int = 0


class _Body(msgspec.Struct):
    error: _Error | None = None
    message: str = ""
    type: str | None = None
    code: int | str | None = None
    param: str | None = None


class Blame(msgspec.Struct, frozen=True):
    """Who failed: the name of the model, its window if known, and the address if the server is somebody else's."""

    model: str
    window: int = 0
    where: str | None = None

    def failed(self, reason: str, *, detail: str = "") -> Fault:
        """Return the fault for a server that makes no sense."""
        if self.where is not None:
            return UpstreamFailed(self.where, reason=reason, detail=detail)
        return EngineFailed(f"the engine of model {self.model!r} failed: {reason}", detail=detail)


def fault_of(
    status: int, body: bytes, *, blame: Blame, headers: Mapping[str, str], request: Generation | None
) -> Fault:
    """Return what a status other than 200, or an error in a stream, means for the client."""
    error, detail = _read(body), body[:MAX_ERROR].decode(errors="replace")
    if _too_long(error):
        return ContextExceeded(tokens=error.n_prompt_tokens, window=error.n_ctx or blame.window)
    match status:
        case 400 | 422 if request is not None:
            fault = _refused(error, request, blame=blame, detail=detail)
        case 401 | 403:
            fault = blame.failed("it does not accept the key", detail=detail)
        case 404 if blame.where is not None:
            fault = ModelNotFound(blame.model)
        case 429 | 503:
            fault = Busy(retry_after=_seconds(headers.get("retry-after", "")))
        case 501:
            fault = ModelIncapable(blame.model, ability="this kind of request")
        case _:
            fault = blame.failed(f"it answered with status {status}", detail=detail)
    return fault


def _too_long(error: _Error) -> bool:
    return (
        error.type == "exceed_context_size_error"  # llama.cpp
        or error.code == "context_length_exceeded"  # OpenAI
        or error.param == "input_tokens"  # vLLM
        or (error.type in (None, "BadRequestError", "invalid_request_error") and bool(_TOO_LONG.search(error.message)))
    )


def _refused(error: _Error, request: Generation, *, blame: Blame, detail: str) -> Fault:
    """Blame a part of the client's own making: of a body written here, that is the schemas."""
    reason = error.message.rpartition("failed: ")[2][:_SHOWN] or "the engine refused it"
    if error.param and blame.where is not None:
        return InvalidField(error.param, reason)
    if not isinstance(request.format, PlainText):
        return InvalidField("format", reason)
    if request.tools:
        return InvalidField("tools", reason)
    return blame.failed("it refused the request", detail=detail)


def _read(body: bytes) -> _Error:
    try:
        read = msgspec.json.decode(body, type=_Body)
    except UNREADABLE:
        return _Error()
    return read.error or _Error(read.message, read.type, read.code, read.param)


def _seconds(text: str) -> float:
    return min(float(text), _LONGEST_WAIT) if text.isdecimal() else 1.0
