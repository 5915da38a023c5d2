"""Pictures that llama.cpp does not read reach it in a form that it does."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import pytest
from msgspec.structs import replace

from diglot.core.errors import Fault
from diglot.core.items import Image, Message
from diglot.core.model import Capabilities
from diglot.core.request import Conversation
from diglot.engines.llamacpp.engine import LlamaEngine
from diglot.engines.llamacpp.sizing import Sizes
from diglot.engines.peer.transport import ConnectionLost, Method, Reply
from tests.services.world import generation, model

WEBP, PNG = Image(b"RIFF", "image/webp"), Image(b"PNG", "image/png")


class Deaf:
    """Remembers what was sent, and answers nothing."""

    def __init__(self) -> None:
        self.sent = b""

    def send(self, method: Method, path: str, body: bytes = b"") -> AbstractAsyncContextManager[Reply]:  # noqa: ARG002
        """Take it."""
        self.sent += body
        raise ConnectionLost("as it was meant")

    async def close(self) -> None:
        """Do nothing."""


class Painter:
    """Paints everything anew."""

    async def fetched(self, images: Sequence[Image]) -> tuple[Image, ...]:
        """Return them."""
        return tuple(images)

    async def check(self, images: Sequence[Image]) -> None:
        """Find nothing wrong."""

    async def readable(self, images: Sequence[Image]) -> tuple[Image, ...]:
        """Return one picture for each."""
        return (PNG,) * len(images)


class Child:
    """One that runs."""

    alive = True
    stopped = True


async def test_a_picture_goes_to_llama_cpp_in_a_form_that_it_reads() -> None:
    transport = Deaf()
    engine = LlamaEngine(
        model(able=Capabilities(completion=True, vision=True)),
        cast("Any", Child()),
        transport=transport,
        sizes=Sizes(window=100, pool=200, batch=8, slots=2, saved=0, memory=1),
        ids=cast("Any", None),
        pictures=Painter(),
    )
    asked = replace(generation(), prompt=Conversation((Message("user", (WEBP,)),)))
    with pytest.raises(Fault):
        await anext(engine.generate(asked))
    assert b"data:image/png;base64,UE5H" in transport.sent
    assert b"webp" not in transport.sent
