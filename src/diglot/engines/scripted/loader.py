"""The loader of scripted engines, and the gates that a test holds. Neighbours: `engine`.

Invariant: every engine it ever loaded is in `loaded`, so that a test can look at what became of it.
"""

from __future__ import annotations

import asyncio

from diglot.core.errors import LoadFailed
from diglot.core.model import Model
from diglot.core.ports import LoadProgress
from diglot.core.request import LoadOptions
from diglot.engines.scripted.engine import Gate, ScriptedEngine
from diglot.engines.scripted.script import Script


class ScriptedLoader:
    """Loads any model as one that answers from `script`. Implements `core.ports.EngineLoader`."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or Script()
        self.loaded: list[ScriptedEngine] = []
        self._gates: dict[str, Gate] = {}

    def gate(self, name: str) -> Gate:
        """Return the gate of that name, whether or not an answer has come to it yet."""
        return self._gates.setdefault(name, Gate())

    def estimate(self, model: Model, options: LoadOptions) -> int:  # noqa: ARG002  the port has it
        """Return the size of the model's files."""
        return model.size

    def window(self, model: Model, options: LoadOptions) -> int:  # noqa: ARG002  the port has it
        """Return what the script says."""
        return self.script.window

    def slots(self, model: Model) -> int:  # noqa: ARG002  the port has it
        """Return what the script says."""
        return self.script.slots

    async def load(self, model: Model, options: LoadOptions, progress: LoadProgress) -> ScriptedEngine:  # noqa: ARG002
        """Load, in the steps of the script. Raises LoadFailed if the script says so."""
        for step in range(self.script.steps):
            progress(model.size * (step + 1) // self.script.steps, model.size)
            await asyncio.sleep(0)
        if self.script.load_fault:
            raise LoadFailed(model.name, reason="the script says so")
        engine = ScriptedEngine(model, self.script, self._gates)
        self.loaded.append(engine)
        return engine
