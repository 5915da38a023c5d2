"""The vigil over a child that owes answers, on a transport that a test holds in its hand."""

# ruff: noqa: ARG002, D102  the port says what its methods do, and gives them arguments

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping

import pytest

from diglot.engines.llamacpp.vigil import Vigil
from diglot.engines.peer.transport import ConnectionLost, Method, Reply
from tests.services.world import settle

SHORT = 0.02


class Answer:
    """An empty answer."""

    status = 200
    headers: Mapping[str, str] = {}

    async def pieces(self) -> AsyncGenerator[bytes]:
        yield b"[]"


class Server:
    """Answers nothing but questions after its slots, in one of three ways."""

    def __init__(self, way: str = "answers") -> None:
        self.way = way
        self.questions = 0
        self.asked = asyncio.Event()
        self.work = asyncio.Event()
        self.closed = False

    @contextlib.asynccontextmanager
    async def send(self, method: Method, path: str, body: bytes = b"") -> AsyncIterator[Reply]:
        if method == "GET":
            self.questions += 1
            self.asked.set()
            if self.way == "refuses":
                raise ConnectionLost("refused")
            if self.way == "hangs":
                await asyncio.Event().wait()
        else:
            await self.work.wait()
        yield Answer()

    async def close(self) -> None:
        self.closed = True


class Watched:
    """A vigil over a server, and whether that was given up."""

    def __init__(self, way: str) -> None:
        self.server = Server(way)
        self.given_up = asyncio.Event()
        self.vigil = Vigil(self.server, patience=SHORT, give_up=self.given_up.set)

    async def ask(self) -> None:
        async with self.vigil.send("POST", "/v1/chat/completions"):
            pass


@pytest.mark.parametrize("way", ["hangs", "refuses"])
async def test_who_owes_an_answer_and_gives_no_sign_of_life_is_given_up(way: str) -> None:
    watched = Watched(way)
    asking = asyncio.create_task(watched.ask())
    await watched.given_up.wait()
    assert not asking.done()
    watched.server.work.set()
    await asking
    await settle()
    assert len(asyncio.all_tasks()) == 1


async def test_who_is_slow_and_tells_of_its_slots_is_never_given_up() -> None:
    watched = Watched("answers")
    asking = [asyncio.create_task(watched.ask()) for _ in range(2)]
    for _ in range(10):
        await watched.server.asked.wait()
        watched.server.asked.clear()
    assert not watched.given_up.is_set()
    watched.server.work.set()
    await asyncio.gather(*asking)
    await settle()
    assert len(asyncio.all_tasks()) == 1


async def test_who_owes_nothing_is_not_asked() -> None:
    watched = Watched("hangs")
    watched.server.work.set()
    for _ in range(3):
        await watched.ask()
    await settle()
    assert len(asyncio.all_tasks()) == 1
    assert watched.server.questions == 0
    assert not watched.given_up.is_set()


async def test_who_leaves_ends_the_watch() -> None:
    watched = Watched("hangs")
    asking = asyncio.create_task(watched.ask())
    await watched.server.asked.wait()
    asking.cancel()
    await asyncio.wait({asking})
    await settle()
    assert len(asyncio.all_tasks()) == 1
    await watched.vigil.close()
    assert watched.server.closed
