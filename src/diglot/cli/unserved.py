"""The store told in the server's words, for `list` and `show` where no server runs.

It goes through the same table rows as a request would, so that both ways give the same answer.
Neighbours: `dialects.ollama` writes, `store` reads.
"""

from __future__ import annotations

import asyncio

import msgspec

from diglot.dialects.ollama.models import TAGS
from diglot.dialects.ollama.show import SHOW
from diglot.dialects.operation import Stamp, Wire
from diglot.services.catalog import Catalog
from diglot.settings import Settings
from diglot.store.elsewhere import stores_elsewhere
from diglot.store.local import LocalStore

_NOWHEN = Stamp(id="", now=0.0)


def tags(settings: Settings) -> bytes:
    """Return what `GET /api/tags` would give of these models."""
    return TAGS.whole(None, _NOWHEN, asyncio.run(_catalog(settings).list())).body


def show(settings: Settings, model: str) -> bytes:
    """Return what `POST /api/show` would give. Raises ModelNotFound, ModelBroken, InvalidField."""
    view = SHOW.parse(Wire(body=msgspec.json.encode({"model": model}))).view
    return SHOW.whole(view, _NOWHEN, asyncio.run(_catalog(settings).card(model, verbose=False))).body


def _catalog(settings: Settings) -> Catalog:
    return Catalog((LocalStore(settings.model_folder), *stores_elsewhere(settings)))
