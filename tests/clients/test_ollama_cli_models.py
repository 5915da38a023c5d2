"""What Ollama's command line sends to move models: pull, run of a model that is not here, cp, push, rm and create.

Recorded from its source (cmd/cmd.go), as `test_ollama_cli`: requests in their order, with the bodies and headers that its
client in Go sends, and what it reads of the answers. It cuts labels out of digests without looking.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.clients.test_ollama_cli import SHOW, STREAMING, UNARY, Cli, named, preload
from tests.serving import Served, serving
from tests.store.arriving import WEIGHTS
from tests.store.gguf_bytes import LLAMA, gguf
from tests.store.registry import Registry, digest_of, registry

NOT_FOUND: Final = "pull model manifest: file does not exist"
"""The very words by which it knows that a model may be had of its cloud."""


class Mover(Cli):
    """Ollama's client where it moves models."""

    def steps(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Send an object and get lines up to success."""
        lines = self.lines(path, body)
        assert not [line for line in lines if line.get("error")]
        assert lines[-1] == {"status": "success"}
        for line in lines:
            assert isinstance(line["status"], str)
            if "digest" in line:  # The label of a bar is cut out of it.
                assert len(line["digest"].removeprefix("sha256:")) == 64
                assert all(isinstance(line.get(number, 0), int) for number in ("total", "completed"))
        return lines

    def lines(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Send an object and get lines, whatever they say."""
        answer = self._http.post(path, headers=STREAMING, json=body)
        assert answer.headers["content-type"].startswith(("application/x-ndjson", "application/json"))
        return [json.loads(line) for line in answer.text.removesuffix("\n").split("\n")]

    def done(self, method: str, path: str, body: dict[str, Any]) -> None:
        """Send an object and look at nothing but the status."""
        assert self._http.request(method, path, headers=UNARY, json=body).status_code == 200

    def send(self, content: bytes) -> str:
        """Send a content as `create` does: at once, and called JSON whatever it is."""
        digest = digest_of(content)
        answer = self._http.post(f"/api/blobs/{digest}", headers=UNARY, content=content)
        assert answer.status_code in {200, 201}
        return digest


@pytest.fixture(scope="module")
def there() -> Iterator[Registry]:
    with registry() as offered:
        offered.put("library/tiny:1", ("model", WEIGHTS), ("license", b"Mine"))
        yield offered


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("cli"), "--engine", "scripted") as server:
        yield server


@pytest.fixture
def cli(served: Served) -> Iterator[Mover]:
    with served.http() as http:
        yield Mover(http)


@pytest.fixture
def tiny(cli: Mover, there: Registry) -> str:
    """A model that is here, by its name."""
    name = f"{there.host}/library/tiny:1"
    cli.steps("/api/pull", wanted(name))
    return name


def wanted(name: str) -> dict[str, Any]:
    """Return the body of `pull --insecure`."""
    return {"model": "", "username": "", "password": "", "name": name, "insecure": True}


def test_pull_shows_a_bar_for_each_content(cli: Mover, there: Registry) -> None:
    cli.heartbeat()
    lines = cli.steps("/api/pull", wanted(f"{there.host}/library/tiny:1"))
    said = [line["status"] for line in lines]
    assert said[0] == "pulling manifest"
    assert said[-3:-1] == ["verifying sha256 digest", "writing manifest"]
    bars = [line for line in lines if "digest" in line]
    assert {line["digest"] for line in bars} == set(there.blobs)
    assert all(line["status"] == f"pulling {line['digest'].removeprefix('sha256:')[:12]}" for line in bars)
    last = {line["digest"]: line for line in bars}
    assert all(line["completed"] == line["total"] for line in last.values())


def test_pull_of_what_is_not_offered_is_told_in_words_it_knows(cli: Mover, there: Registry) -> None:
    cli.heartbeat()
    name = f"{there.host}/library/none"
    assert NOT_FOUND in cli.lines("/api/pull", wanted(name))[-1]["error"]
    assert cli.refusal("/api/show", named(f"{name}:cloud"))[0] == 404  # It then asks whether its cloud has it.


def test_run_of_a_model_that_is_not_here_pulls_it_first(cli: Mover, there: Registry) -> None:
    name = f"{there.host}/library/tiny:1"
    cli.steps("/api/pull", wanted(name))
    cli.done("DELETE", "/api/delete", {"model": "", "name": name})
    cli.heartbeat()
    status, error = cli.refusal("/api/show", named(name))
    assert (status, "not found" in error) == (404, True)
    cli.steps("/api/pull", wanted(name))
    for _ in range(2):
        assert "completion" in cli.post("/api/show", named(name))["capabilities"]
    (loaded,) = cli.stream("/api/generate", preload(name))
    assert loaded["done_reason"] == "load"


def test_cp_looks_at_the_status_only(cli: Mover, tiny: str) -> None:
    cli.heartbeat()
    cli.done("POST", "/api/copy", {"source": tiny, "destination": "Copied"})
    assert "Copied:latest" in [model["name"] for model in cli.get("/api/tags")["models"]]
    assert cli.refusal("/api/copy", {"source": "none", "destination": "x"}) == (404, 'model "none" not found')


def test_push_says_something_before_it_shows_bars(cli: Mover, there: Registry, tiny: str) -> None:
    copy = f"{there.host}/me/pushed:1"
    cli.done("POST", "/api/copy", {"source": tiny, "destination": copy})
    cli.heartbeat()
    lines = cli.steps("/api/push", {"model": "", "insecure": True, "username": "", "password": "", "name": copy})
    assert lines[0] == {"status": "retrieving manifest"}
    assert "digest" in lines[1]
    assert there.manifests["me/pushed:1"] == there.manifests["library/tiny:1"]


def test_rm_stops_each_model_and_removes_it(cli: Mover, tiny: str) -> None:
    for name in ("one", "two:x"):
        cli.done("POST", "/api/copy", {"source": tiny, "destination": name})
    cli.heartbeat()
    for name in ("one", "two:x"):
        cli.post("/api/show", named(name))
        (last,) = cli.stream("/api/generate", preload(name) | {"options": None, "keep_alive": "0s"})
        assert last["done_reason"] == "unload"
        cli.done("DELETE", "/api/delete", {"model": "", "name": name})
        assert cli.refusal("/api/show", named(name))[0] == 404


def test_create_sends_each_file_and_then_the_recipe(cli: Mover) -> None:
    weights = gguf({**LLAMA, "general.name": "Sent"})
    adapter = gguf({"general.architecture": "llama", "general.type": "adapter", "adapter.type": "lora"})
    recipe = {
        "model": "made",
        "files": {"weights.gguf": cli.send(weights)},
        "adapters": {"lora.gguf": cli.send(adapter)},
        "template": "{{ .Prompt }}",
        "license": ["MIT"],
        "system": "Be brief.",
        "parameters": {"temperature": 0.5, "stop": ["a", "b"], "num_ctx": 512},
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hi."}],
        "renderer": "qwen3-coder",
        "parser": "qwen3-coder",
        "requires": "0.14.0",
        "name": "",
    }
    lines = cli.steps("/api/create", recipe)
    assert [line["status"] for line in lines][-2] == "writing manifest"
    shown = cli.post("/api/show", {"model": "", **SHOW, "name": "made"})
    assert (shown["system"], shown["license"], shown["requires"]) == ("Be brief.", "MIT", "0.14.0")
    for line in ("RENDERER qwen3-coder", "PARSER qwen3-coder", "REQUIRES 0.14.0", "ADAPTER ", "PARAMETER num_ctx 512"):
        assert line in shown["modelfile"]


def test_a_chat_is_saved_and_another_model_loaded(cli: Mover, tiny: str) -> None:
    """`/save mine`, then `/load mine`, `/show info` and `/set think` in the conversation of `run`."""
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hi."}]
    saved = {"model": "mine", "from": tiny, "system": "Be long.", "parameters": {"seed": 3}, "messages": messages}
    cli.steps("/api/create", {**saved, "name": ""})
    assert cli.post("/api/show", named("mine"))["messages"] == messages
    cli.stream("/api/generate", preload("mine"))
    told = {"model": "", "name": "mine", "verbose": False, "template": "", "system": "Other.", "options": {"seed": 4}}
    shown = cli.post("/api/show", told)
    assert shown["system"] == "Other."
    assert "PARAMETER seed 4" in shown["modelfile"]


def test_a_name_may_say_that_the_model_is_here_or_in_a_cloud(cli: Mover, tiny: str) -> None:
    assert cli.post("/api/show", named(f"{tiny}:local"))["model_info"]
    (loaded,) = cli.stream("/api/generate", preload("scripted:local"))
    assert loaded["model"] == "scripted:local"
    cli.done("POST", "/api/copy", {"source": f"{tiny}:local", "destination": "near:local"})
    assert "near:latest" in [model["name"] for model in cli.get("/api/tags")["models"]]
    cli.done("DELETE", "/api/delete", {"model": "", "name": "near:local"})
    for name in ("scripted:cloud", "scripted:7b-cloud", "scripted:7b:cloud"):
        status, error = cli.refusal("/api/generate", preload(name))
        assert (status, error) == (404, f"model '{name}' not found")
    for path, body in (("/api/show", named("scripted:local:cloud")), ("/api/generate", preload("x-cloud:local"))):
        status, error = cli.refusal(path, body)
        assert status == 400
        assert "use either :local or :cloud, not both" in error
