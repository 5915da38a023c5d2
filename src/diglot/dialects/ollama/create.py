"""`POST /api/create`: a new model, of another one or of contents that were sent before, a line for each step.

The command line reads the Modelfile itself and sends what stands in it; an older way, the Modelfile as a text, is
refused by name as Ollama refuses it. Neighbours: `moving` has the lines.

Invariant: a stream that went well ends in `success`, and no other does.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from diglot.core.digest import Digest
from diglot.core.errors import InvalidField
from diglot.core.events import Stage, Step
from diglot.core.model import InvalidName, ModelRef
from diglot.core.modelfile import MARKS, ROLES
from diglot.core.recipe import Example, Recipe
from diglot.core.request import CreateModel
from diglot.core.source import read_source
from diglot.dialects.ollama.fields import refuse
from diglot.dialects.ollama.moving import PULL_WORDS, WORDING, StatusReply, Steps, success, words_of
from diglot.dialects.ollama.options import OptionsBody, type_word
from diglot.dialects.ollama.wire import read
from diglot.dialects.operation import NDJSON, Operation, Parsed, Wire


class MessageBody(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is to stand before every conversation."""

    role: str
    content: str = ""
    thinking: str | None = None
    images: list[str] | None = None
    tool_calls: list[Any] | None = None


class CreateBody(msgspec.Struct, frozen=True, kw_only=True):
    """What to make. `files` and `adapters` are names with the digests of contents."""

    model: str | None = None
    name: str | None = None
    stream: bool | None = None
    from_: str | None = msgspec.field(default=None, name="from")
    files: dict[str, str] | None = None
    adapters: dict[str, str] | None = None
    template: str | None = None
    system: str | None = None
    license: str | list[str] | None = None
    parameters: dict[str, Any] | None = None
    messages: list[MessageBody] | None = None
    quantize: str | None = None
    quantization: str | None = None
    renderer: str | None = None
    parser: str | None = None
    requires: str | None = None
    modelfile: str | None = None
    path: str | None = None
    remote_host: str | None = None
    info: dict[str, Any] | None = None


CREATE_WORDS: Final[Mapping[Stage, str]] = MappingProxyType(
    {**PULL_WORDS, "reuse": "using existing layer", "make": "creating new layer"}
)
_DECODER: Final = msgspec.json.Decoder(CreateBody)
_OPTIONS: Final = frozenset(OptionsBody.__struct_fields__)


def _words(step: Step) -> str:
    if step.stage in {"reuse", "make"}:
        return f"{CREATE_WORDS[step.stage]} {step.digest}"
    return words_of(CREATE_WORDS)(step)


def parse(wire: Wire) -> Parsed:
    """Read a request."""
    body = read(_DECODER, wire)
    wire.allowance.admit_messages(len(body.messages or ()), field="messages")
    name = body.model or body.name or ""
    _require_name("model", name)
    refuse("modelfile", body.modelfile, "send what stands in it, in fields of its own; diglot create reads Modelfiles")
    refuse("path", body.path, "no file of this machine is opened for a client; send it to /api/blobs")
    refuse("remote_host", body.remote_host, "models are run here")
    refuse("info", body.info, "a model's header is kept as it is")
    base = body.from_ or ""
    if not base and not body.files:
        raise InvalidField("from", "neither 'from' or 'files' was specified")
    if base and body.files:
        raise InvalidField("files", "a model is made from another one or of files, not of both")
    if base:
        _require_source(base)
    recipe = Recipe(
        base=base,
        files=_digests("files", body.files),
        adapters=_digests("adapters", body.adapters),
        template=body.template or "",
        system=body.system or "",
        licences=_licences(body.license),
        parameters=_parameters(body.parameters or {}),
        messages=tuple(_example(place, each) for place, each in enumerate(body.messages or ())),
        quantization=body.quantize or body.quantization or "",
        marks={mark: value for mark in MARKS if (value := getattr(body, mark))},
    )
    return Parsed(CreateModel(name, recipe), stream=body.stream is not False, notes=_notes(recipe))


def _notes(recipe: Recipe) -> tuple[str, ...]:
    if not recipe.template:
        return ()
    return (
        "a template in Go's notation is kept with the model, which renders prompts with the one of its own weights",
    )


def _require_name(field: str, name: str) -> None:
    try:
        ModelRef.parse(name)
    except InvalidName as error:
        raise InvalidField(field, "invalid model name") from error


def _require_source(name: str) -> None:
    try:
        read_source(name)
    except InvalidName as error:
        raise InvalidField("from", f"from: invalid model name: {error.reason}") from error


def _digests(field: str, named: Mapping[str, str] | None) -> dict[str, Digest]:
    found: dict[str, Digest] = {}
    for name, digest in (named or {}).items():
        try:
            found[name] = Digest.parse(digest)
        except ValueError as error:
            raise InvalidField(f"{field}.{name}", "invalid digest format") from error
    return found


def _licences(given: str | list[str] | None) -> tuple[str, ...]:
    return tuple(text for text in ([given] if isinstance(given, str) else given or ()) if text)


def _parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are given, of the types that the options of a request have."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if isinstance(stop := chosen.get("stop"), str):
        chosen["stop"] = [stop]
    for name, value in chosen.items():
        if name not in _OPTIONS:
            raise InvalidField(f"parameters.{name}", "there is no parameter of this name")
        try:
            msgspec.convert({name: value}, OptionsBody)
        except msgspec.ValidationError as error:
            kind = type_word(name)
            raise InvalidField(f"parameters.{name}", f'option "{name}" must be of type {kind}') from error
    return chosen


def _example(place: int, body: MessageBody) -> Example:
    field = f"messages[{place}]"
    role = body.role.lower()
    if role not in ROLES:
        raise InvalidField(f"{field}.role", f"it is {', '.join(ROLES)}, not {body.role[:40]!r}")
    refuse(f"{field}.images", body.images, "examples are of text")
    refuse(f"{field}.tool_calls", body.tool_calls, "examples are of text")
    return Example(role, body.content)


CREATE: Final = Operation(
    method="POST",
    path="/api/create",
    summary="Make a model of another one, or of files that were sent before",
    parse=parse,
    whole=success,
    steps=lambda _view, _stamp: Steps(_words, WORDING.of),
    stream_type=NDJSON,
    body=CreateBody,
    reply=StatusReply,
    error=WORDING.render,
)
