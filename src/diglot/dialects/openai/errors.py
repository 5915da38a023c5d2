"""Faults in OpenAI's words: the one table from a kind of fault to status, type, param and code.

Source: OpenAI's error object (`message`, `type`, `param`, `code`) and the codes that its clients look at
(`model_not_found`, `context_length_exceeded`). OpenAI's own packages try again by themselves on 408, 409, 429 and
from 500 up, which is why only what may be better next time stands there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import assert_never

import msgspec

from diglot.core.errors import (
    AccessRefused,
    AnyFault,
    BodyTooLarge,
    BrokenCompaction,
    Busy,
    Cancelled,
    CompactionFailed,
    ContextExceeded,
    EngineCrashed,
    EngineFailed,
    Forbidden,
    HeadTooLarge,
    InvalidField,
    KeyMissing,
    LoadFailed,
    MalformedBody,
    ModelBroken,
    ModelForeign,
    ModelIncapable,
    ModelNotFound,
    ModelUnnamed,
    NoModel,
    NoSpace,
    NothingGained,
    NotOffered,
    ResponsesUnavailable,
    TooMany,
    TooSlow,
    UnknownCoding,
    UnknownPath,
    UnknownResponse,
    UnsupportedField,
    UpstreamFailed,
    WrongDigest,
    WrongMethod,
)
from diglot.dialects.operation import Rendered

_REQUEST = "invalid_request_error"
_SERVER = "server_error"
_ModelFault = (
    ModelUnnamed
    | ModelNotFound
    | ModelIncapable
    | NoModel
    | ModelBroken
    | LoadFailed
    | Busy
    | EngineCrashed
    | EngineFailed
    | UpstreamFailed
    | Cancelled
)


class ErrorDetailReply(msgspec.Struct, frozen=True):
    """What went wrong. `param` names a field of the request, `code` is a word for programs."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorReply(msgspec.Struct, frozen=True):
    """The body of every answer that is no success."""

    error: ErrorDetailReply


class _Form(msgspec.Struct, frozen=True):
    """How one kind of fault looks. `message` is the fault's own unless given."""

    status: HTTPStatus
    code: str
    kind: str = _REQUEST
    param: str | None = None
    message: str = ""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


def render_error(fault: AnyFault) -> Rendered:
    """Render a fault as a whole reply."""
    form = _form(fault)
    return Rendered(body=msgspec.json.encode(_reply(fault, form)), status=form.status, headers=form.headers)


def error_data(fault: AnyFault) -> bytes:
    """Render a fault as the JSON that ends a stream; OpenAI's packages raise on it."""
    return msgspec.json.encode(_reply(fault, _form(fault)))


def _reply(fault: AnyFault, form: _Form) -> ErrorReply:
    message = form.message or fault.message
    return ErrorReply(ErrorDetailReply(message=message, type=form.kind, param=form.param, code=form.code))


def _form(fault: AnyFault) -> _Form:  # noqa: C901, PLR0911, PLR0912  A table, a line or two for each kind.
    """Return the form of a fault: of the request itself here, of Responses and of models below."""
    match fault:
        case MalformedBody():
            return _Form(HTTPStatus.BAD_REQUEST, "malformed_body")
        case InvalidField():
            return _Form(HTTPStatus.BAD_REQUEST, "invalid_value", param=fault.field)
        case UnsupportedField():
            return _Form(HTTPStatus.BAD_REQUEST, "unsupported_parameter", param=fault.field)
        case ContextExceeded():
            return _Form(HTTPStatus.BAD_REQUEST, "context_length_exceeded")
        case HeadTooLarge():
            return _Form(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "head_too_large")
        case TooSlow():
            return _Form(HTTPStatus.REQUEST_TIMEOUT, "request_timeout")
        case BodyTooLarge():
            return _Form(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "request_too_large")
        case UnknownCoding():
            return _Form(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unknown_coding")
        case TooMany():
            return _Form(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"too_many_{fault.kind.replace(' ', '_')}", param=fault.field
            )
        case UnknownPath():
            return _Form(HTTPStatus.NOT_FOUND, "unknown_url")
        case WrongMethod():
            allow = {"Allow": ", ".join(fault.allowed)}
            return _Form(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", headers=allow)
        case Forbidden():
            return _Form(HTTPStatus.FORBIDDEN, "forbidden")
        case KeyMissing():
            return _Form(HTTPStatus.UNAUTHORIZED, "invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
        case BrokenCompaction() | NothingGained() | UnknownResponse() | CompactionFailed() | ResponsesUnavailable():
            return _of_responses(fault)
        case WrongDigest() | ModelForeign() | NotOffered() | NoSpace() | AccessRefused():
            return _of_contents(fault)
        case _:
            return _of_models(fault)


def _of_responses(
    fault: BrokenCompaction | NothingGained | UnknownResponse | CompactionFailed | ResponsesUnavailable,
) -> _Form:
    match fault:
        case BrokenCompaction():
            return _Form(HTTPStatus.BAD_REQUEST, "invalid_compaction_item", param=fault.field)
        case NothingGained():
            return _Form(HTTPStatus.BAD_REQUEST, "compaction_gains_nothing")
        case UnknownResponse():
            message = f"no response 'resp_{fault.response}' is stored here"
            if fault.field is None:
                return _Form(HTTPStatus.NOT_FOUND, "response_not_found", message=message)
            code = "previous_response_not_found"
            return _Form(HTTPStatus.BAD_REQUEST, code, param=fault.field, message=message)
        case CompactionFailed():
            return _Form(HTTPStatus.INTERNAL_SERVER_ERROR, "compaction_failed", kind=_SERVER)
        case ResponsesUnavailable():
            return _Form(HTTPStatus.SERVICE_UNAVAILABLE, "responses_unavailable", kind=_SERVER)
        case _:
            assert_never(fault)


def _of_contents(fault: WrongDigest | ModelForeign | NotOffered | NoSpace | AccessRefused) -> _Form:
    """Return the form of a fault about what models are made of, which no path of this dialect moves."""
    match fault:
        case WrongDigest():
            return _Form(HTTPStatus.BAD_REQUEST, "wrong_digest")
        case ModelForeign():
            return _Form(HTTPStatus.FORBIDDEN, "model_foreign", param="model")
        case NotOffered():
            return _Form(HTTPStatus.NOT_FOUND, "model_not_offered", param="model")
        case NoSpace():
            return _Form(HTTPStatus.INSUFFICIENT_STORAGE, "no_space", kind=_SERVER)
        case AccessRefused():
            return _Form(HTTPStatus.BAD_GATEWAY, "access_refused", kind=_SERVER)
        case _:
            assert_never(fault)


def _of_models(fault: _ModelFault) -> _Form:  # noqa: C901, PLR0911  As above.
    match fault:
        case ModelUnnamed():
            return _Form(HTTPStatus.BAD_REQUEST, "missing_required_parameter", param="model")
        case ModelNotFound():
            return _Form(HTTPStatus.NOT_FOUND, "model_not_found", param="model")
        case ModelIncapable():
            return _Form(HTTPStatus.BAD_REQUEST, "model_incapable", param="model")
        case NoModel():
            message = f"no {fault.ability} model loaded"
            return _Form(HTTPStatus.SERVICE_UNAVAILABLE, "no_model", kind=_SERVER, message=message)
        case ModelBroken():
            return _Form(HTTPStatus.INTERNAL_SERVER_ERROR, "model_broken", kind=_SERVER, param="model")
        case LoadFailed():
            return _Form(HTTPStatus.INTERNAL_SERVER_ERROR, "model_load_failed", kind=_SERVER, param="model")
        case Busy():
            wait = {"Retry-After": str(max(1, math.ceil(fault.retry_after)))}
            return _Form(HTTPStatus.SERVICE_UNAVAILABLE, "server_busy", kind=_SERVER, headers=wait)
        case EngineCrashed():
            return _Form(HTTPStatus.INTERNAL_SERVER_ERROR, "engine_crashed", kind=_SERVER)
        case EngineFailed():
            message = fault.message if fault.id in fault.message else f"{fault.message} (log id {fault.id})"
            return _Form(HTTPStatus.INTERNAL_SERVER_ERROR, "engine_failed", kind=_SERVER, message=message)
        case UpstreamFailed():
            return _Form(HTTPStatus.BAD_GATEWAY, "upstream_failed", kind=_SERVER)
        case Cancelled():
            return _Form(HTTPStatus.SERVICE_UNAVAILABLE, "cancelled", kind=_SERVER)
        case _:
            assert_never(fault)
