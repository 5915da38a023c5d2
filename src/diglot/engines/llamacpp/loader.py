"""The loader: a model of the store becomes an engine in a child process.

Neighbours: `sizing` chooses window and cache, `process` starts the child, `vigil` watches it, `engine` comes out.

Invariant: a load that fails or is cancelled leaves no process behind.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping

from diglot.core.model import Model
from diglot.core.ports import Ids, LoadProgress, Pictures
from diglot.core.request import LoadOptions
from diglot.engines.llamacpp.engine import LlamaEngine
from diglot.engines.llamacpp.launch import Launch
from diglot.engines.llamacpp.process import ChildProcess
from diglot.engines.llamacpp.sizing import Limits, Sizes, sizes_of
from diglot.engines.llamacpp.vigil import Vigil
from diglot.engines.peer.wire import Wire

_log = logging.getLogger(__name__)
# What a child may hold beside what its sizes say, before it is taken for one that runs away.
_CEILING_FACTOR = 2
_CEILING_SLACK = 4 * 1024**3  # A long text takes much while it is read, and no header says how much.


class LlamaLoader:
    """Loads GGUF models. Implements `EngineLoader`.

    `program` is a `llama-server` binary to use instead of the library, `environment` what its processes inherit,
    `patience` how many seconds they may give no sign of life. `pictures` makes what llama.cpp does not read, WebP, into
    what it does.
    """

    def __init__(
        self,
        *,
        ids: Ids,
        limits: Limits,
        program: str | None = None,
        environment: Mapping[str, str] | None = None,
        patience: float = 300.0,
        pictures: Pictures | None = None,
    ) -> None:
        self._ids = ids
        self._limits = limits
        self._program = program
        self._environment = environment
        self._patience = patience
        self._pictures = pictures

    def estimate(self, model: Model, options: LoadOptions) -> int:
        """Return the bytes that loading would take."""
        return sizes_of(model, options, self._limits).memory

    def window(self, model: Model, options: LoadOptions) -> int:
        """Return the context window that loading would give."""
        return sizes_of(model, options, self._limits).window

    def slots(self, model: Model) -> int:  # noqa: ARG002  the port has it
        """Return how many answers are made at the same time."""
        return self._limits.slots

    async def load(self, model: Model, options: LoadOptions, progress: LoadProgress) -> LlamaEngine:
        """Load a model. Raises LoadFailed."""
        sizes = sizes_of(model, options, self._limits)
        key = secrets.token_urlsafe(24)
        launch = self._launch(model, options, sizes=sizes, key=key)
        child = await ChildProcess.start(
            launch,
            name=model.name,
            progress=progress,
            environment=self._environment,
            patience=self._patience,
            ceiling=_CEILING_FACTOR * sizes.memory + _CEILING_SLACK,
        )
        if not model.capabilities.template_tools and model.capabilities.completion:
            _log.info("%s: its chat template knows no tools, they will be listed in the system text", model.name)
        if not model.anatomy.template and model.capabilities.completion:
            _log.warning("%s: it brings no chat template; conversations are put to it in ChatML", model.name)
        wire = Vigil(Wire(child.port, key=key), patience=self._patience, give_up=child.give_up)
        return LlamaEngine(model, child, transport=wire, sizes=sizes, ids=self._ids, pictures=self._pictures)

    def _launch(self, model: Model, options: LoadOptions, *, sizes: Sizes, key: str) -> Launch:
        encodes = not model.capabilities.completion
        return Launch(
            model=str(model.weights),
            key=key,
            window=sizes.window,
            pool=sizes.pool,
            slots=sizes.slots,
            threads=options.threads or max(1, self._limits.cores - (0 if encodes else 1)),
            batch_threads=options.threads or self._limits.cores,
            batch=sizes.batch,
            saved=sizes.saved >> 20,
            embedding=encodes,
            pooling=model.anatomy.pooling if encodes else None,
            projector=str(model.projector) if model.projector else None,
            adapters=tuple(map(str, model.adapters)),
            gpu_layers=options.gpu_layers,
            main_gpu=options.main_gpu,
            use_mmap=options.use_mmap,
            program=self._program,
        )
