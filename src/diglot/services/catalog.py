"""The catalogue: which model a request means.

It reads the store and remembers which models were used last. It loads nothing. Neighbours: `core.model`
holds the name grammar, `services.residency` loads what is chosen here.

Invariant: a name that was given is never replaced by another model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from diglot.core.errors import InvalidField, ModelIncapable, ModelNotFound, NoModel
from diglot.core.model import Capability, InvalidName, Model, ModelCard, ModelRef
from diglot.core.ports import ModelStore

_ABILITY_WORD: Final[Mapping[Capability, str]] = {Capability.COMPLETION: "chat", Capability.EMBEDDING: "embedding"}


class Catalog:
    """The models of one or more stores; the first store that knows a name has it."""

    def __init__(self, stores: Sequence[ModelStore], *, embedding_model: str = "") -> None:
        self._stores = tuple(stores)
        self._chosen = {Capability.EMBEDDING: embedding_model}
        self._last: dict[Capability, ModelRef] = {}

    async def list(self) -> tuple[Model, ...]:
        """Return every model once, the newest first."""
        return await asyncio.to_thread(self._list)

    async def card(self, name: str, *, verbose: bool) -> ModelCard:
        """Return all there is to know of a model."""
        return await asyncio.to_thread(self._card, read_name(name), name, verbose=verbose)

    async def find(self, name: str) -> Model:
        """Return the model of that name."""
        return await asyncio.to_thread(self._resolve, read_name(name), name)

    async def choose(self, name: str | None, ability: Capability) -> Model:
        """Return the named model, or the one to take when none is named, and remember it as used last.

        Without a name: the chosen one, the one used last, the newest. `NoModel` if there is none;
        `ModelIncapable` if the named one lacks the ability.
        """
        model = await asyncio.to_thread(self._choose, name, ability)
        self._last[ability] = model.ref
        return model

    def _choose(self, name: str | None, ability: Capability) -> Model:
        name = name or self._chosen.get(ability)
        if name:
            model = self._resolve(read_name(name), name)
            if ability not in model.capabilities:
                raise ModelIncapable(name, ability=_ABILITY_WORD.get(ability, str(ability)))
            return model
        able = [model for model in self._list() if ability in model.capabilities]
        if not able:
            raise NoModel(ability=_ABILITY_WORD.get(ability, str(ability)))
        last = self._last.get(ability)
        return next((model for model in able if model.ref == last), able[0])

    def _list(self) -> tuple[Model, ...]:
        seen: dict[ModelRef, Model] = {}
        for store in self._stores:
            for model in store.list():
                seen.setdefault(model.ref, model)
        return tuple(sorted(seen.values(), key=lambda model: -model.modified_at))

    def _resolve(self, ref: ModelRef, name: str) -> Model:
        for store in self._stores:
            try:
                return store.resolve(ref)
            except ModelNotFound:
                continue
        raise ModelNotFound(name)

    def _card(self, ref: ModelRef, name: str, *, verbose: bool) -> ModelCard:
        for store in self._stores:
            try:
                return store.card(ref, verbose=verbose)
            except ModelNotFound:
                continue
        raise ModelNotFound(name)


def read_name(name: str) -> ModelRef:
    """Read a name as a client wrote it. `InvalidField` on `model` if it is outside the grammar."""
    try:
        return ModelRef.parse(name)
    except InvalidName as error:
        raise InvalidField("model", error.reason) from error
