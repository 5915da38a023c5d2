"""Models that exist without files, so that a scripted server needs no download. Implements `ModelStore`.

Invariant: the models are the same on every machine, digests included.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from diglot.core.errors import ModelNotFound
from diglot.core.model import Anatomy, Capabilities, Model, ModelCard, ModelDetails, ModelRef
from diglot.engines.scripted.script import Script

_BORN = 1_760_000_000 * 10**9


class ScriptedModels:
    """A store of three models: `scripted:latest` chats, `scripted-embed:latest` embeds, `scripted-rerank:latest` ranks."""

    def __init__(self, script: Script) -> None:
        chat = Capabilities(
            completion=True, tools=True, vision=True, thinking=True, template_tools=True, template_thinks=True
        )
        self._models = (
            _model("scripted", capabilities=chat, script=script, age=0),
            _model("scripted-embed", capabilities=Capabilities(embedding=True), script=script, age=1),
            _model("scripted-rerank", capabilities=Capabilities(rerank=True), script=script, age=2),
        )

    def list(self) -> tuple[Model, ...]:
        """Return all."""
        return self._models

    def resolve(self, ref: ModelRef) -> Model:
        """Return one. Raises ModelNotFound."""
        for model in self._models:
            if model.ref == ref:
                return model
        raise ModelNotFound(str(ref))

    def card(self, ref: ModelRef, *, verbose: bool = False) -> ModelCard:  # noqa: ARG002  nothing is long here
        """Return what a header would say."""
        model = self.resolve(ref)
        info = {
            "general.architecture": "scripted",
            "general.parameter_count": model.anatomy.parameter_count,
            "scripted.context_length": model.anatomy.context_length,
            "scripted.embedding_length": model.anatomy.embedding_length,
        }
        return ModelCard(model=model, info=info, tensors=())


def _model(name: str, *, capabilities: Capabilities, script: Script, age: int) -> Model:
    return Model(
        ref=ModelRef(name),
        digest=hashlib.sha256(name.encode()).hexdigest(),
        size=1_000_000,
        modified_at=_BORN - age * 10**9,
        weights=Path(f"{name}.gguf"),
        details=ModelDetails(
            family="scripted",
            families=("scripted",),
            parameter_size="1M",
            quantization_level="F16",
            context_length=script.window,
            embedding_length=script.dimensions,
        ),
        capabilities=capabilities,
        anatomy=Anatomy(
            architecture="scripted",
            parameter_count=1_000_000,
            context_length=script.window,
            embedding_length=script.dimensions,
        ),
    )
