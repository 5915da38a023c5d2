"""Streams through nginx: what comes does so before the rest is made. A gate of the script holds the rest back."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
import websockets

from diglot import app
from diglot.engines.scripted.loader import ScriptedLoader
from diglot.engines.scripted.models import ScriptedModels
from diglot.engines.scripted.script import Reply, Script
from diglot.settings import Settings
from tests.http.world import Serving, serving
from tests.proxy.nginx import ANN, KEY, NAME, NOBODY, Proxy, as_its_name, proxying
from tests.serving import Served

SCRIPT: Final = Script(
    replies=(Reply(when="two halves", say=("first ", "second"), gate="between", after=1), Reply(echo=True))
)
MESSAGES: Final = [{"role": "user", "content": "Say two halves"}]
STREAMS: Final[dict[str, dict[str, Any]]] = {
    "/api/chat": {"messages": MESSAGES},
    "/api/generate": {"prompt": "Say two halves"},
    "/v1/chat/completions": {"messages": MESSAGES, "stream": True},
    "/v1/responses": {"input": "Say two halves", "stream": True},
}


class Behind:
    """The server in this process, so that a test holds its gates, and nginx before it in another."""

    def __init__(self, served: Serving, proxy: Proxy, loader: ScriptedLoader) -> None:
        self.served = served
        self.proxy = proxy
        self.loader = loader

    def client(self) -> httpx2.AsyncClient:
        """Return a client with the token of a user."""

        async def named(request: httpx2.Request) -> None:
            as_its_name(request)

        return httpx2.AsyncClient(
            base_url=f"https://127.0.0.1:{self.proxy.port}",
            headers={"Host": NAME, **ANN},
            event_hooks={"request": [named]},
            verify=self.proxy.trust,
            trust_env=False,
            timeout=60.0,
        )


@asynccontextmanager
async def behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Behind]:
    """Serve the script behind nginx."""
    loader = ScriptedLoader(SCRIPT)
    monkeypatch.setattr(app, "engines_of", lambda *_, **__: (loader, (ScriptedModels(SCRIPT),)))
    settings = Settings(home=folder / "home", read_ollama=False, key=KEY, hosts=(NAME,))
    (folder / "nginx").mkdir()
    async with serving(app.build(settings)) as served:
        with proxying(folder / "nginx", served.port) as proxy:
            yield Behind(served, proxy, loader)


@pytest.mark.parametrize("path", STREAMS)
async def test_the_first_words_arrive_before_the_last_are_made(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with behind(tmp_path, monkeypatch) as house, house.client() as client:
        body = {"model": "scripted", **STREAMS[path]}
        async with client.stream("POST", path, json=body) as stream:
            pieces = stream.aiter_text()
            come = await anext(pieces)
            while "first " not in come:
                come += await anext(pieces)
            gate = house.loader.gate("between")
            await gate.reached.wait()
            assert "second" not in come
            gate.open.set()
            rest = "".join([piece async for piece in pieces])
    assert "second" in rest


async def test_over_a_websocket_the_first_words_arrive_before_an_end_that_never_comes(
    proxy: Proxy, diglot: Served
) -> None:
    request = {"type": "response.create", "model": "scripted", "input": "hang"}
    async with proxy.socket(ANN) as socket:
        await socket.send(json.dumps(request))
        kinds: list[str] = []
        while kinds.count("response.output_text.delta") < 2:
            kinds.append(json.loads(await socket.recv())["type"])
    async with proxy.socket(ANN) as socket:  # Whoever left has freed the only slot.
        await socket.send(json.dumps(request | {"input": "Hi"}))
        while kinds[-1] != "response.completed":
            kinds.append(json.loads(await socket.recv())["type"])
    assert kinds.count("response.completed") == 1
    assert not diglot.log_has("Traceback")


@pytest.mark.parametrize("token", [NOBODY, {"Authorization": f"Bearer {KEY}"}])
async def test_a_websocket_without_a_token_is_not_opened(proxy: Proxy, token: dict[str, str]) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        await proxy.socket(token)
    assert refused.value.response.status_code == 401


async def test_connections_to_the_server_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with behind(tmp_path, monkeypatch) as house:
        for _ in range(5):
            async with house.client() as client:
                assert (await client.get("/api/tags")).status_code == 200
        assert len(house.served.server.server_state.connections) == 1
