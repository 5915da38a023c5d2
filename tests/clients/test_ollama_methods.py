"""Every public method of the `ollama` package for Python, of both its clients, against a real process.

The methods are read off the package, so that one that a new version brings fails here until it is covered. What a
method returns has to be of the type that the package itself declares for it. What the answers hold is asked elsewhere
(`test_ollama_python`, `test_ollama_models`, `test_making`). The package for JS goes the same way in `js/methods.mjs`.
"""

from __future__ import annotations

import inspect
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import ollama
import pytest

from tests.serving import Served, serving
from tests.store.arriving import WEIGHTS
from tests.store.gguf_bytes import LLAMA, gguf
from tests.store.registry import Registry, registry

HELLO: Final = [{"role": "user", "content": "hello"}]
CHAT, EMBED = "scripted", "scripted-embed"


class Way(msgspec.Struct, frozen=True):
    """One way to call a method: what it is called with, and what comes back."""

    call: Callable[[Any, World], Any]
    returns: type = ollama.StatusResponse
    stream: bool = False


class World(msgspec.Struct, frozen=True):
    """What the calls are about: a registry with a model, and a file."""

    there: Registry
    file: Path

    @property
    def tiny(self) -> str:
        """The model of the registry."""
        return f"{self.there.host}/library/tiny:1"


WAYS: Final[dict[str, tuple[Way, ...]]] = {
    "chat": (
        Way(lambda client, _: client.chat(CHAT, HELLO), ollama.ChatResponse),
        Way(lambda client, _: client.chat(CHAT, HELLO, stream=True), ollama.ChatResponse, stream=True),
    ),
    "generate": (
        Way(lambda client, _: client.generate(CHAT, "hello"), ollama.GenerateResponse),
        Way(lambda client, _: client.generate(CHAT, "hello", stream=True), ollama.GenerateResponse, stream=True),
    ),
    "embed": (Way(lambda client, _: client.embed(EMBED, ["one", "two"]), ollama.EmbedResponse),),
    "embeddings": (Way(lambda client, _: client.embeddings(EMBED, "one"), ollama.EmbeddingsResponse),),
    "pull": (
        Way(lambda client, world: client.pull(world.tiny, insecure=True), ollama.ProgressResponse),
        Way(
            lambda client, world: client.pull(world.tiny, insecure=True, stream=True),
            ollama.ProgressResponse,
            stream=True,
        ),
    ),
    "list": (Way(lambda client, _: client.list(), ollama.ListResponse),),
    "ps": (Way(lambda client, _: client.ps(), ollama.ProcessResponse),),
    "show": (Way(lambda client, world: client.show(world.tiny), ollama.ShowResponse),),
    "create_blob": (Way(lambda client, world: client.create_blob(world.file), str),),
    "create": (
        Way(lambda client, world: client.create("made", from_=world.tiny, system="Be brief."), ollama.ProgressResponse),
        Way(
            lambda client, world: client.create("made", from_=world.tiny, stream=True),
            ollama.ProgressResponse,
            stream=True,
        ),
    ),
    "copy": (Way(lambda client, world: client.copy(world.tiny, f"{world.there.host}/me/copy:1")),),
    "push": (
        Way(lambda client, world: client.push(f"{world.there.host}/me/copy:1", insecure=True), ollama.ProgressResponse),
        Way(
            lambda client, world: client.push(f"{world.there.host}/me/copy:1", insecure=True, stream=True),
            ollama.ProgressResponse,
            stream=True,
        ),
    ),
    "delete": (Way(lambda client, world: client.delete(f"{world.there.host}/me/copy:1")),),
}
"""All that a server on this machine answers, in an order in which each finds what it needs."""

ELSEWHERE: Final = frozenset({"web_fetch", "web_search"})
"""These go to ollama.com, whatever the client's host is."""
DECIDING: Final = "systemone"
"""Asks a model of a kind of its own for decisions; there is no such model here."""
OWN: Final = frozenset({"close"})
"""These ask nobody."""


def public(client: type) -> set[str]:
    return {name for name, member in inspect.getmembers(client, callable) if not name.startswith("_")}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("methods"), "--engine", "scripted") as server:
        yield server


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    file = tmp_path_factory.mktemp("file") / "weights.gguf"
    file.write_bytes(gguf({**LLAMA, "general.name": "Sent"}))
    with registry() as there:
        there.put("library/tiny:1", ("model", WEIGHTS), ("system", b"Be brief."))
        yield World(there, file)


@pytest.mark.parametrize("client", [ollama.Client, ollama.AsyncClient])
def test_no_method_is_left_out(client: type) -> None:
    assert public(client) == WAYS.keys() | ELSEWHERE | OWN | {DECIDING}


def test_every_method_answers_in_its_own_type(served: Served, world: World) -> None:
    with ollama.Client(served.url, trust_env=False) as client:
        for name, ways in WAYS.items():
            for way in ways:
                answer = way.call(client, world)
                answers = list(answer) if way.stream else [answer]
                assert answers, name
                assert {type(each) for each in answers} == {way.returns}, name
        assert client.pull(world.tiny, insecure=True).status == "success"


async def test_every_method_for_coroutines_answers_in_its_own_type(served: Served, world: World) -> None:
    async with ollama.AsyncClient(served.url, trust_env=False) as client:
        for name, ways in WAYS.items():
            for way in ways:
                answer = await way.call(client, world)
                answers = [each async for each in answer] if way.stream else [answer]
                assert answers, name
                assert {type(each) for each in answers} == {way.returns}, name


def test_a_decision_is_refused_in_words(served: Served) -> None:
    questions: Any = {"angry": {"type": "noul", "instructions": "Is the customer angry?"}}
    with (
        ollama.Client(served.url, trust_env=False) as client,
        pytest.raises(ollama.ResponseError, match="404") as caught,
    ):
        client.systemone(CHAT, "I want my money back.", questions)
    assert caught.value.status_code == 404


def test_the_methods_that_leave_this_machine_ask_for_a_key_first(served: Served) -> None:
    with ollama.Client(served.url, trust_env=False) as client:
        with pytest.raises(ValueError, match="Bearer token"):
            client.web_search("x")
        with pytest.raises(ValueError, match="Bearer token"):
            client.web_fetch("http://x")


def test_every_method_of_the_package_for_js_answers(served: Served, world: World, node: Path, js_clients: Path) -> None:
    env = {**os.environ, "SERVED_URL": served.url, "TINY": world.tiny, "HOST": world.there.host, "NO_PROXY": "*"}
    command = [str(node), "--test-reporter=spec", str(js_clients / "methods.mjs")]
    done = subprocess.run(command, env=env, cwd=js_clients, capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fail 0" in done.stdout
