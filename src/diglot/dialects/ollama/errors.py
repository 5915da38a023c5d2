"""Faults in Ollama's words: one table from every kind to a status and a sentence.

Clients show these sentences and some recognise them (`not found`, `does not support thinking`), and they differ
from endpoint to endpoint: that is a `Wording`. Neighbours: `core.errors` is the closed set.

Invariant: every fault becomes `{"error": text}`, whatever happened.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, assert_never

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
from diglot.core.model import InvalidName, ModelRef
from diglot.dialects.operation import Rendered

_CANCELLED: Final = 499
"""The status that Ollama took over from nginx: the client closed the request."""
_ABILITIES: Final = ("chat", "completion")


class ErrorReply(msgspec.Struct, frozen=True):
    """What every error looks like."""

    error: str


class Wording(msgspec.Struct, frozen=True):
    """How one endpoint speaks. `task` is what a model that cannot do it does not support."""

    task: str = "chat"
    not_found: str = "model '{name}' not found"
    full_name: bool = False
    too_long: str = "the prompt is longer than the context length currently available to the model"
    advice: str = 'shorten it, set options.num_ctx higher, or send "truncate": true to leave out the oldest messages'

    def of(self, fault: AnyFault) -> str:
        """Return the sentence, as text that can be encoded even where it quotes what cannot."""
        return self._sentence(fault).encode(errors="replace").decode()

    def _sentence(self, fault: AnyFault) -> str:
        match fault:
            case InvalidField():
                text = _on_field(fault.field, fault.reason)
            case ContextExceeded():
                text = f"{self.too_long}; {fault.message}; {self.advice}"
            case ModelUnnamed():
                text = "model is required"
            case ModelNotFound():
                text = self.not_found.format(name=_full(fault.name) if self.full_name else fault.name)
            case ModelIncapable():
                text = f'"{fault.name}" does not support {self.task if fault.ability in _ABILITIES else fault.ability}'
            case Busy():
                text = "server busy, please try again.  maximum pending requests exceeded"
            case EngineFailed() if fault.id:
                text = f"{fault.message} (the log has more under {fault.id})"
            case Cancelled():
                text = "request canceled"
            case _:
                text = fault.message
        return text

    def render(self, fault: AnyFault) -> Rendered:
        """Return the whole reply."""
        body = msgspec.json.encode(ErrorReply(self.of(fault)))
        return Rendered(body, _status(fault), headers=_headers(fault))


def _status(fault: AnyFault) -> int:  # noqa: C901, PLR0912  one case for each status
    match fault:
        case MalformedBody() | InvalidField() | UnsupportedField() | ContextExceeded() | BrokenCompaction():
            status = 400
        case ModelUnnamed() | ModelIncapable() | NothingGained() | WrongDigest():
            status = 400
        case KeyMissing():
            status = 401
        case Forbidden() | ModelForeign():
            status = 403
        case ModelNotFound() | UnknownPath() | UnknownResponse() | NotOffered():
            status = 404
        case WrongMethod():
            status = 405
        case TooSlow():
            status = 408
        case BodyTooLarge() | TooMany():
            status = 413
        case UnknownCoding():
            status = 415
        case HeadTooLarge():
            status = 431
        case Cancelled():
            status = _CANCELLED
        case EngineCrashed() | EngineFailed() | LoadFailed() | ModelBroken() | CompactionFailed():
            status = 500
        case UpstreamFailed() | AccessRefused():
            status = 502
        case Busy() | NoModel() | ResponsesUnavailable():
            status = 503
        case NoSpace():
            status = 507
        case _:
            assert_never(fault)
    return status


def _headers(fault: AnyFault) -> Mapping[str, str]:
    match fault:
        case WrongMethod():
            return {"allow": ", ".join(fault.allowed)}
        case Busy():
            return {"retry-after": str(max(1, math.ceil(fault.retry_after)))}
        case KeyMissing():
            return {"www-authenticate": "Bearer"}
        case _:
            return {}


def _on_field(field: str, reason: str) -> str:
    """Name the field, unless the sentence (often Ollama's own) already does."""
    plain = re.fullmatch(r"(\w+)(?:\[\d+\])?", field.removeprefix("options."))
    return reason if plain and re.search(rf"\b{plain[1]}\b", reason) else f"{field}: {reason}"


def _full(name: str) -> str:
    try:
        return str(ModelRef.parse(name))
    except InvalidName:
        return name
