"""An engine in a child process: the peer client, the child it talks to, and the ledger of their shared cache.

Neighbours: `loader` makes it, `process` is the child, `vigil` notices when it hangs, `engines.peer` is the client. It deliberately keeps no queue:
admission lets in no more answers than there are slots.

Invariant: once the child is dead, `alive` is false for good and every request ends in EngineCrashed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from msgspec.structs import replace

from diglot.core.errors import Cancelled, EngineCrashed, EngineFailed, Fault, InvalidField, ModelIncapable
from diglot.core.events import Event
from diglot.core.items import pictures_in, with_pictures
from diglot.core.model import Capabilities, Model
from diglot.core.ports import Ids, Pictures
from diglot.core.request import Conversation, Embedding, Generation, RawPrompt, Rerank
from diglot.core.result import Embedded, Ranked
from diglot.engines.llamacpp.filling import with_gap
from diglot.engines.llamacpp.ledger import Ledger
from diglot.engines.llamacpp.process import ChildProcess
from diglot.engines.llamacpp.sizing import Sizes
from diglot.engines.peer.body import Target
from diglot.engines.peer.client import Peer
from diglot.engines.peer.counting import count
from diglot.engines.peer.faults import Blame
from diglot.engines.peer.hosts import LLAMA_CPP
from diglot.engines.peer.ranking import rerank
from diglot.engines.peer.transport import Transport
from diglot.engines.peer.vectors import embed


class LlamaEngine:
    """A model that is loaded in a child. Implements `core.ports.Engine`."""

    def __init__(
        self,
        model: Model,
        child: ChildProcess,
        *,
        transport: Transport,
        sizes: Sizes,
        ids: Ids,
        pictures: Pictures | None = None,
    ) -> None:
        self._model = model
        self._pictures = pictures
        self._child = child
        self._sizes = sizes
        self._ledger = Ledger(sizes.pool) if sizes.pool < sizes.window * sizes.slots else None
        self._peer = Peer(
            transport,
            target=Target(model.name, LLAMA_CPP, template_tools=model.capabilities.template_tools, window=sizes.window),
            blame=Blame(model.name, window=sizes.window),
            lost=self._lost,
            ids=ids,
        )

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return self._model.capabilities

    @property
    def window(self) -> int:
        """The context window, in tokens."""
        return self._sizes.window

    @property
    def slots(self) -> int:
        """How many answers are made at the same time."""
        return self._sizes.slots

    @property
    def alive(self) -> bool:
        """Whether the child runs."""
        return self._child.alive

    @property
    def memory(self) -> int:
        """Resident bytes of the child, or the estimate where the system does not say."""
        return self._child.memory or self._sizes.memory

    @property
    def accelerator_memory(self) -> int:
        """Unknown: llama.cpp's server does not say what it put where."""
        return 0

    @property
    def pid(self) -> int:
        """The process id of the child."""
        return self._child.pid

    async def generate(self, request: Generation) -> AsyncGenerator[Event]:
        """Answer a request."""
        request = await self._prepared(request)
        ledger = self._ledger
        events = self._peer.generate(request) if ledger is None else self._sharing(ledger, request)
        async with aclosing(events):
            async for event in events:
                yield event

    async def count(self, request: Generation) -> int:
        """Return the tokens of the prompt."""
        return await count(self._peer, await self._prepared(request))

    async def embed(self, request: Embedding) -> Embedded:
        """Return a vector for each input."""
        if not self.capabilities.embedding:
            raise ModelIncapable(self._model.name, ability="embedding")
        for each in request.inputs:
            if not isinstance(each, str):
                self._known(each, field="input")
        return await embed(self._peer, request, window=self.window)

    async def rerank(self, request: Rerank) -> Ranked:
        """Return a score for each document."""
        if not self.capabilities.rerank:
            raise ModelIncapable(self._model.name, ability="rerank")
        return await rerank(self._peer, request, window=self.window)

    async def close(self) -> None:
        """End the child."""
        await self._child.stop()
        await self._peer.close()

    async def _sharing(self, ledger: Ledger, request: Generation) -> AsyncGenerator[Event]:
        """Answer once there is room in the shared cache for the most that this request can become."""
        most, limit = self.window, request.sampling.max_tokens
        if not ledger.fits(most) and limit is not None and limit >= 0:
            most = min(most, await count(self._peer, request) + limit)
        async with ledger.hold(most), aclosing(self._peer.generate(request)) as events:
            async for event in events:
                yield event

    async def _prepared(self, request: Generation) -> Generation:
        """Refuse what the model cannot do, and turn a prompt with a gap into tokens."""
        name = self._model.name
        if not self.capabilities.completion:
            raise ModelIncapable(name, ability="completion")
        self._known(request.sampling.logit_bias or (), field="logit_bias")
        match request.prompt:
            case Conversation(items):
                images = pictures_in(items)
                if images and not self.capabilities.vision:
                    raise ModelIncapable(name, ability="vision")
                if images and self._pictures:
                    items = with_pictures(items, await self._pictures.readable(images))
                    return replace(request, prompt=Conversation(items))
            case RawPrompt(suffix=str()) as prompt:
                marks = self._model.anatomy.fill
                if marks is None:
                    raise ModelIncapable(name, ability="insert")
                return await with_gap(self._peer, request, prompt, marks=marks)
            case RawPrompt(content=tuple() as tokens):
                self._known(tokens, field="prompt")
            case _:
                pass
        return request

    def _known(self, tokens: Iterable[int], *, field: str) -> None:
        """Refuse tokens that the model does not have. llama.cpp names no field, or ignores them."""
        size = self._model.anatomy.vocabulary
        strange = next((token for token in tokens if token < 0 or token >= size > 0), None)
        if strange is not None:
            raise InvalidField(field, f"{strange} is no token of the model, which has {size}")

    async def _lost(self, how: str) -> Fault:
        if self._child.stopped:
            return Cancelled("the model was unloaded")
        detail = await self._child.detail()
        if self._child.alive:
            return EngineFailed(f"the engine of model {self._model.name!r} broke off", detail=f"{how}\n{detail}")
        return EngineCrashed(self._model.name, how=self._child.given_up, detail=f"{how}\n{detail}")
