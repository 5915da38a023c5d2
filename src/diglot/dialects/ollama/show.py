"""`POST /api/show`: all there is to know of a model.

The CLI names the model in `name` and everybody else in `model`; both are read. `system` and `options` change
nothing but what is shown. Neighbours: `modelfile` writes the texts, `models` the details.

Invariant: `model_info` is always an object, and its numbers are numbers.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from diglot.core.errors import ModelUnnamed
from diglot.core.model import ModelCard
from diglot.core.request import ShowModel
from diglot.dialects.ollama.errors import Wording
from diglot.dialects.ollama.modelfile import modelfile, parameter_lines
from diglot.dialects.ollama.models import DetailsReply, capabilities_of, details_of
from diglot.dialects.ollama.timestamps import rfc3339_ns
from diglot.dialects.ollama.wire import named, read
from diglot.dialects.operation import Operation, Parsed, Rendered, Stamp, Wire

_COPILOT: Final = "GitHubCopilotChat/"
_ELSEWHERE: Final = ("general.name", "tokenizer.chat_template")
"""Header fields that are no part of `model_info`: the one misleads, the other is `template`."""


class ShowBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body."""

    model: str | None = None
    name: str | None = None
    verbose: bool | None = None
    system: str | None = None
    template: Any = None
    options: dict[str, Any] | None = None


class ExampleReply(msgspec.Struct, frozen=True):
    """A message that comes with a model."""

    role: str
    content: str


class TensorReply(msgspec.Struct, frozen=True):
    """A tensor of the file."""

    name: str
    type: str
    shape: tuple[int, ...]


class ShowReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer."""

    license: str
    modelfile: str
    parameters: str
    template: str
    system: str
    details: DetailsReply
    messages: list[ExampleReply] | None = None
    model_info: dict[str, Any]
    projector_info: dict[str, Any] | None = None
    tensors: list[TensorReply]
    capabilities: tuple[str, ...]
    modified_at: str
    requires: str | None = None


DECODER: Final = msgspec.json.Decoder(ShowBody)
WORDING: Final = Wording(full_name=True)


class ShowView(msgspec.Struct, frozen=True):
    """What rendering needs: `basename` is what GitHub Copilot is to read as the model's name."""

    system: str
    options: dict[str, Any]
    basename: str | None


def parse(wire: Wire) -> Parsed:
    """Read a request."""
    body = read(DECODER, wire)
    name = named(body.model) or named(body.name)
    if name is None:
        raise ModelUnnamed
    copilot = wire.headers.get("user-agent", "").startswith(_COPILOT)
    view = ShowView(body.system or "", body.options or {}, name if copilot else None)
    return Parsed(ShowModel(name, verbose=bool(body.verbose)), view)


def whole(view: ShowView, _stamp: Stamp, card: ModelCard) -> Rendered:
    """Write the answer."""
    model = card.model
    system = view.system or model.defaults.system
    parameters = model.defaults.parameters
    info = {key: value for key, value in card.info.items() if key not in _ELSEWHERE}
    if view.basename:
        info["general.basename"] = view.basename
    reply = ShowReply(
        license="\n".join(card.licences),
        modelfile=modelfile(card, system=system, parameters={**parameters, **view.options}),
        parameters=parameter_lines(parameters),
        template=card.chat_template or model.defaults.template,
        system=system,
        details=details_of(model),
        messages=[ExampleReply(each.role, each.content) for each in model.defaults.messages] or None,
        model_info=info,
        projector_info=None if card.projector_info is None else dict(card.projector_info),
        tensors=[TensorReply(each.name, each.type, each.shape) for each in card.tensors],
        capabilities=capabilities_of(model),
        modified_at=rfc3339_ns(model.modified_at),
        requires=model.defaults.marks.get("requires"),
    )
    return Rendered(msgspec.json.encode(reply))


SHOW: Final = Operation(
    method="POST",
    path="/api/show",
    summary="Show all there is to know of a model",
    parse=parse,
    whole=whole,
    body=ShowBody,
    reply=ShowReply,
    error=WORDING.render,
)
