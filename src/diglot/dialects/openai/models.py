"""GET /v1/models and GET /v1/models/{id}: what is on disk, models that embed among them.

The list is two in one: `data` for OpenAI's clients, `models` for Codex. Neighbour: `codex_catalog`.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

from diglot.core.model import Model, ModelCard
from diglot.core.request import ListModels, ShowModel
from diglot.dialects.openai.chunks import encode
from diglot.dialects.openai.codex_catalog import CodexModelReply, codex_models
from diglot.dialects.operation import Operation, Parsed, Rendered, Stamp, Wire

_SECOND = 1_000_000_000


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """One model. `created` is when its files last changed, in seconds since the epoch."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ModelsReply(msgspec.Struct, frozen=True, kw_only=True):
    """All models, the newest first."""

    object: Literal["list"] = "list"
    data: list[ModelReply]
    models: list[CodexModelReply]


def _model(model: Model, name: str) -> ModelReply:
    return ModelReply(id=name, created=model.modified_at // _SECOND, owned_by=model.ref.namespace)


def parse_list(wire: Wire) -> Parsed:  # noqa: ARG001  A list asks for nothing.
    """Read a request for the list."""
    return Parsed(request=ListModels())


def whole_list(view: None, stamp: Stamp, models: tuple[Model, ...]) -> Rendered:  # noqa: ARG001  It has no id.
    """Render the list, with a tag that changes with it."""
    body = encode(ModelsReply(data=[_model(model, model.name) for model in models], models=codex_models(models)))
    return Rendered(body=body, headers={"ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"'})


def parse_one(wire: Wire) -> Parsed:
    """Read a request for one model. Its name may hold slashes and colons, and comes back as it was written."""
    name = wire.path["id"]
    return Parsed(request=ShowModel(model=name), view=name)


def whole_one(view: str, stamp: Stamp, card: ModelCard) -> Rendered:  # noqa: ARG001  It has no id.
    """Render one model."""
    return Rendered(body=encode(_model(card.model, view)))


LIST = Operation(
    method="GET",
    path="/v1/models",
    summary="List the models.",
    parse=parse_list,
    whole=whole_list,
    reply=ModelsReply,
)
ONE = Operation(
    method="GET",
    path="/v1/models/{id:path}",
    summary="Show one model.",
    parse=parse_one,
    whole=whole_one,
    reply=ModelReply,
)
