"""`POST /api/pull` and `POST /api/push`: models on their way, a line for each step.

Both stream unless `stream` is false; then the one object of the last line is the whole answer. Ollama's clients
look for `"status":"success"` and show a bar for each line with a digest.

Invariant: a stream that went well ends in `success`, and no other does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from diglot.core.errors import (
    AccessRefused,
    AnyFault,
    InvalidField,
    ModelUnnamed,
    NotOffered,
    UpstreamFailed,
    WrongDigest,
)
from diglot.core.events import Stage, Step
from diglot.core.model import InvalidName
from diglot.core.request import Pull, Push
from diglot.core.source import read_source
from diglot.dialects.ollama.errors import ErrorReply, Wording
from diglot.dialects.ollama.fields import refuse
from diglot.dialects.ollama.wire import named, read
from diglot.dialects.operation import NDJSON, Operation, Parsed, Rendered, Stamp, Wire
from diglot.framing import ndjson

_SHOWN: Final = 12
"""Digits of a digest that stand in a line."""


class PullBody(msgspec.Struct, frozen=True, kw_only=True):
    """What to get. The CLI and the JS client write `name`, the Python client `model`."""

    model: str | None = None
    name: str | None = None
    insecure: bool | None = None
    stream: bool | None = None
    username: str | None = None
    password: str | None = None


class PushBody(PullBody, frozen=True, kw_only=True):
    """What to bring away; the fields are those of `PullBody`."""


class StatusReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step. `total` and `completed` are bytes of the content `digest`."""

    status: str
    digest: str = ""
    total: int = 0
    completed: int = 0


class Steps:
    """Renders the steps of a model on its way. `words` says what a stage is called."""

    def __init__(self, words: Callable[[Step], str], wording: Callable[[AnyFault], str]) -> None:
        self._words = words
        self._wording = wording

    def feed(self, step: Step, now: float) -> bytes:  # noqa: ARG002  no line of this kind tells the time
        """Render one step."""
        digest = str(step.digest) if step.digest and step.stage in {"receive", "send"} else ""
        reply = StatusReply(status=self._words(step), digest=digest, total=step.total, completed=step.completed)
        return ndjson.encode(msgspec.json.encode(reply))

    def beat(self) -> bytes:
        """Render nothing."""
        return b""

    def close(self) -> bytes:
        """Render nothing: the last line said that it was the last."""
        return b""

    def fail(self, fault: AnyFault) -> bytes:
        """Render the line that ends a broken stream."""
        return ndjson.encode(msgspec.json.encode(ErrorReply(self._wording(fault))))


class MovingWording(Wording, frozen=True):
    """How a transfer speaks of faults: what a registry did is never the status of our own answer."""

    def render(self, fault: AnyFault) -> Rendered:
        """Return the whole reply."""
        rendered = super().render(fault)
        abroad = isinstance(fault, NotOffered | AccessRefused | UpstreamFailed | WrongDigest)
        return msgspec.structs.replace(rendered, status=500) if abroad else rendered

    def _sentence(self, fault: AnyFault) -> str:
        match fault:
            case NotOffered(reason=""):
                return "pull model manifest: file does not exist"
            case WrongDigest():
                return f"digest mismatch, file must be downloaded again: want {fault.expected}, got {fault.found}"
            case _:
                return super()._sentence(fault)


PULL_WORDS: Final[Mapping[Stage, str]] = MappingProxyType(
    {
        "find": "pulling manifest",
        "receive": "pulling",
        "convert": "converting model",
        "verify": "verifying sha256 digest",
        "write": "writing manifest",
        "tidy": "removing unused layers",
        "done": "success",
    }
)
PUSH_WORDS: Final[Mapping[Stage, str]] = MappingProxyType(
    {"find": "retrieving manifest", "send": "pushing", "write": "pushing manifest", "done": "success"}
)
WORDING: Final = MovingWording()


def words_of(table: Mapping[Stage, str]) -> Callable[[Step], str]:
    """Return what says a step in the words of a table, with what it is about behind them."""

    def words(step: Step) -> str:
        about = step.digest.hex[:_SHOWN] if step.digest else step.subject
        return f"{table[step.stage]} {about}".rstrip()

    return words


def success(_view: None, _stamp: Stamp, _answer: None) -> Rendered:
    """Write the whole answer."""
    return Rendered(msgspec.json.encode(StatusReply(status="success")))


def _refuse_account(body: PullBody) -> None:
    for field in ("username", "password"):
        refuse(field, getattr(body, field), "registries are told who asks by the key of this machine")


def _parse_pull(wire: Wire) -> Parsed:
    body = read(_PULL, wire)
    _refuse_account(body)
    name = body.model or body.name
    if not name:
        raise InvalidField("model", "invalid model name")
    try:
        read_source(name)
    except InvalidName as error:
        raise InvalidField("model", f"invalid model name: {error.reason}") from error
    return Parsed(Pull(name, insecure=bool(body.insecure)), stream=body.stream is not False)


def _parse_push(wire: Wire) -> Parsed:
    body = read(_PUSH, wire)
    _refuse_account(body)
    name = named(body.model) or named(body.name)
    if name is None:
        raise ModelUnnamed
    return Parsed(Push(name, insecure=bool(body.insecure)), stream=body.stream is not False)


_PULL: Final = msgspec.json.Decoder(PullBody)
_PUSH: Final = msgspec.json.Decoder(PushBody)

PULL: Final = Operation(
    method="POST",
    path="/api/pull",
    summary="Get a model from a registry, from Hugging Face or from a URL",
    parse=_parse_pull,
    whole=success,
    steps=lambda _view, _stamp: Steps(words_of(PULL_WORDS), WORDING.of),
    stream_type=NDJSON,
    body=PullBody,
    reply=StatusReply,
    error=WORDING.render,
)
PUSH: Final = Operation(
    method="POST",
    path="/api/push",
    summary="Bring a model to its registry",
    parse=_parse_push,
    whole=success,
    steps=lambda _view, _stamp: Steps(words_of(PUSH_WORDS), WORDING.of),
    stream_type=NDJSON,
    body=PushBody,
    reply=StatusReply,
    error=WORDING.render,
)
