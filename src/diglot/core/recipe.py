"""Recipes: of what a new model is made.

Values only; whether the contents are there, and what kind they are, is found out by whoever makes the model.
Neighbours: `core.request.CreateModel` carries one, `store.making` follows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from diglot.core.digest import Digest


class Example(msgspec.Struct, frozen=True):
    """A message that comes with a model and stands before every conversation."""

    role: str
    content: str


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into a model: all of the model `base`, or `files` by the names that their maker gave them.

    What is set here goes before what the base has; `licences` are added to its own. `parameters` are settings by
    their names in Ollama's protocol. `quantization` is the element type that matrices are stored as, the one they
    have if empty. `marks` are words that are kept with the model for other servers and have no effect here.
    """

    base: str = ""
    files: Mapping[str, Digest] = msgspec.field(default_factory=dict)
    adapters: Mapping[str, Digest] = msgspec.field(default_factory=dict)
    template: str = ""
    system: str = ""
    licences: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = msgspec.field(default_factory=dict)
    messages: tuple[Example, ...] = ()
    quantization: str = ""
    marks: Mapping[str, str] = msgspec.field(default_factory=dict)
