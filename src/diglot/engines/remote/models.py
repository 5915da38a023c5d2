"""The models of remote servers as a store. Implements `core.ports.ModelStore`.

A listing is kept for a while, so that choosing a model costs no round trip, and a server that is down is not
asked for every request. Neighbours: `listing` asks, `loader` looks up what a name stands for.

Invariant: a server that cannot be reached hides its own models and nothing else.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from diglot.core.errors import ModelNotFound, UpstreamFailed
from diglot.core.model import Model, ModelCard, ModelRef
from diglot.engines.remote.listing import SLOTS, Offer, address_of, list_offers

_log = logging.getLogger(__name__)
_FRESH_SECONDS = 10.0


class RemoteModels:
    """All models of the servers at `urls`. Safe to use from several threads."""

    def __init__(self, urls: Sequence[str], *, key: str = "") -> None:
        self.key = key
        self._addresses = tuple(dict.fromkeys(map(address_of, urls)))
        self._offers: dict[str, dict[str, Offer]] = {}
        self._expires = 0.0
        self._lock = threading.Lock()

    def list(self) -> tuple[Model, ...]:
        """Return all models, the newest first."""
        return tuple(sorted((offer.model for offer in self._all().values()), key=lambda model: -model.modified_at))

    def resolve(self, ref: ModelRef) -> Model:
        """Return the model of that name. Raises ModelNotFound."""
        return self.offer(ref).model

    def card(self, ref: ModelRef, *, verbose: bool = False) -> ModelCard:  # noqa: ARG002  nothing long is known
        """Return what the server says of a model. Raises ModelNotFound."""
        offer = self.offer(ref)
        anatomy = offer.model.anatomy
        info = {
            "general.architecture": anatomy.architecture,
            "general.parameter_count": anatomy.parameter_count,
            f"{anatomy.architecture}.context_length": anatomy.context_length,
            f"{anatomy.architecture}.embedding_length": anatomy.embedding_length,
        }
        return ModelCard(model=offer.model, info={name: value for name, value in info.items() if value}, tensors=())

    def offer(self, ref: ModelRef) -> Offer:
        """Return what a name stands for. Raises ModelNotFound."""
        try:
            return self._all()[ref]
        except KeyError:
            raise ModelNotFound(str(ref)) from None

    def slots(self, ref: ModelRef) -> int:
        """Return how many answers that model makes at the same time, from what is known without asking."""
        offers = [offer for some in self._offers.values() for offer in some.values() if offer.model.ref == ref]
        return offers[0].slots if offers else SLOTS

    def _all(self) -> dict[ModelRef, Offer]:
        with self._lock:
            if time.monotonic() >= self._expires:
                for address in self._addresses:
                    self._refresh(address)
                self._expires = time.monotonic() + _FRESH_SECONDS
            found: dict[ModelRef, Offer] = {}
            for offers in self._offers.values():
                for offer in offers.values():
                    found.setdefault(offer.model.ref, offer)
            return found

    def _refresh(self, address: str) -> None:
        try:
            self._offers[address] = list_offers(address, key=self.key, known=self._offers.get(address, {}))
        except UpstreamFailed as fault:
            if self._offers.pop(address, None) is not None or not self._expires:
                _log.warning("%s (%s)", fault, fault.detail)
