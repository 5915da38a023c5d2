"""What Ollama's command line sends for each command, in its order and its words, and what it must find in the answers.

Recorded from its source (cmd/cmd.go, api/client.go): it sends every field that Go does not leave out, decodes
strictly into Go's types, cuts digests without looking and divides by durations.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import httpx2
import pytest

from tests.serving import CHAT, EMBEDDING, Served

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

UNARY: Final = {
    "content-type": "application/json",
    "accept": "application/json",
    "user-agent": "ollama/0.34.0 (amd64 linux) Go/go1.24.1",
}
STREAMING: Final = {**UNARY, "accept": "application/x-ndjson"}
SHOW: Final = {"template": "", "verbose": False, "options": None, "system": ""}


class Cli:
    """Ollama's client: how it asks and what it takes for an answer."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http

    def heartbeat(self) -> None:
        """Ask whether anybody is there, as every command does first."""
        answer = self._http.head("/", headers=UNARY)
        assert answer.status_code < 400
        assert answer.content == b""

    def get(self, path: str) -> dict[str, Any]:
        """Get an object."""
        return self._decoded(self._http.get(path, headers=UNARY))

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send an object and get one."""
        return self._decoded(self._http.post(path, headers=UNARY, json=body))

    def stream(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Send an object and get lines, none of which is empty, too long or an error."""
        answer = self._http.post(path, headers=STREAMING, json=body)
        assert answer.status_code < 400, answer.text
        lines = answer.text.removesuffix("\n").split("\n")
        assert all(0 < len(line) < 8_000_000 for line in lines)
        found = [json.loads(line) for line in lines]
        assert not any(line.get("error") for line in found)
        assert found[-1]["done"]
        return found

    def refusal(self, path: str, body: dict[str, Any]) -> tuple[int, str]:
        """Send an object and return the status and the text of the error."""
        answer = self._http.post(path, headers=UNARY, json=body)
        error = answer.json()["error"]
        assert isinstance(error, str)
        return answer.status_code, error

    def _decoded(self, answer: httpx2.Response) -> dict[str, Any]:
        assert answer.status_code < 400, answer.text
        return dict(answer.json())


@pytest.fixture
def cli(real: Served) -> Iterator[Cli]:
    with real.http() as http:
        yield Cli(http)


@pytest.fixture
def scripted_cli(scripted: Served) -> Iterator[Cli]:
    with scripted.http() as http:
        yield Cli(http)


def named(name: str) -> dict[str, Any]:
    """Return the body by which `run` and `stop` ask what a model is."""
    return {"model": name, **SHOW, "name": ""}


def preload(name: str, **more: Any) -> dict[str, Any]:
    """Return the body that loads a model."""
    empty = {"prompt": "", "suffix": "", "system": "", "template": ""}
    return {"model": name, **empty, "options": {}, **more}


def test_version(cli: Cli) -> None:
    assert cli.get("/api/version")["version"].count(".") == 2


def test_list_cuts_digests_and_reads_times(cli: Cli) -> None:
    cli.heartbeat()
    for model in cli.get("/api/tags")["models"]:
        assert len(model["digest"][:12]) == 12
        assert isinstance(model["size"], int)
        assert datetime.fromisoformat(model["modified_at"][:19] + "+00:00") <= datetime.now(UTC)
        assert model["name"].partition(":")[2]


@pytest.mark.parametrize("flag", ["license", "modelfile", "parameters", "system", "template"])
def test_show_with_a_flag_prints_a_text(cli: Cli, flag: str) -> None:
    cli.heartbeat()
    shown = cli.post("/api/show", {"model": "", **SHOW, "name": CHAT})
    assert isinstance(shown[flag], str)
    assert bool(shown[flag]) == (flag in {"license", "modelfile", "template"})


@pytest.mark.parametrize("verbose", [False, True])
def test_show_prints_a_table_of_numbers(cli: Cli, *, verbose: bool) -> None:
    for name in (CHAT, EMBEDDING):
        shown = cli.post("/api/show", {"model": "", **SHOW, "verbose": verbose, "name": name})
        info, architecture = shown["model_info"], shown["model_info"]["general.architecture"]
        for key in (f"{architecture}.context_length", f"{architecture}.embedding_length", "general.parameter_count"):
            assert isinstance(info[key], int | float)
        assert shown["details"]["parameter_size"]
        assert shown["details"]["quantization_level"]
        assert isinstance(shown["details"]["families"], list)
        assert set(shown["capabilities"]) <= {"completion", "tools", "insert", "vision", "embedding", "thinking"}
        assert bool(info["tokenizer.ggml.tokens"]) == verbose
        for tensor in shown["tensors"]:
            assert isinstance(tensor["name"], str)
            assert isinstance(tensor["type"], str)
            assert all(isinstance(size, int) for size in tensor["shape"])


def test_run_with_a_prompt_generates(cli: Cli) -> None:
    cli.heartbeat()
    assert "completion" in cli.post("/api/show", named(CHAT))["capabilities"]
    options = {"num_predict": 4}
    lines = cli.stream("/api/generate", preload(CHAT) | {"prompt": "Hi", "options": options, "context": None})
    assert "".join(line["response"] for line in lines)
    for number in ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration", "eval_count"):
        assert lines[-1][number] > 0


def test_run_without_a_prompt_loads_then_chats_turn_by_turn(cli: Cli) -> None:
    cli.heartbeat()
    for _ in range(2):
        cli.post("/api/show", named(CHAT))
    (loaded,) = cli.stream("/api/generate", preload(CHAT, keep_alive="5m0s"))
    assert loaded["done_reason"] == "load"
    messages = [{"role": "user", "content": "Say hello."}]
    lines: list[dict[str, Any]] = []
    for _ in range(2):
        body = {"model": CHAT, "messages": messages, "format": "", "options": {"num_predict": 4}}
        turn = cli.stream("/api/chat", body)
        lines += turn
        said = "".join(line["message"]["content"] for line in turn)
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "Go on."}]
    assert all(line["message"]["role"] == "assistant" for line in lines)


def test_run_on_a_model_that_thinks_asks_for_it(scripted_cli: Cli) -> None:
    assert "thinking" in scripted_cli.post("/api/show", named("scripted"))["capabilities"]
    scripted_cli.stream("/api/generate", preload("scripted", think=True))
    body = {"model": "scripted", "messages": [{"role": "user", "content": "think"}], "options": {}, "think": True}
    lines = scripted_cli.stream("/api/chat", body)
    assert "".join(line["message"].get("thinking", "") for line in lines) == "Let me see."


def test_run_on_a_model_that_cannot_think_is_told_in_words_it_knows(cli: Cli) -> None:
    status, error = cli.refusal("/api/generate", preload(CHAT, think=True))
    assert status == 400
    assert error == f'"{CHAT}" does not support thinking'


def test_run_on_a_model_that_embeds_embeds(cli: Cli) -> None:
    assert "embedding" in cli.post("/api/show", named(EMBEDDING))["capabilities"]
    body = {"model": EMBEDDING, "input": "A cat sleeps.", "options": None}
    assert len(cli.post("/api/embed", body)["embeddings"][0]) == 384


def test_run_on_a_model_that_is_not_there_is_404_and_so_pulled(cli: Cli) -> None:
    assert cli.refusal("/api/show", named("nowhere")) == (404, "model 'nowhere:latest' not found")


def test_ps_tells_processor_and_time(cli: Cli) -> None:
    cli.stream("/api/generate", preload(CHAT, keep_alive=-1))
    cli.heartbeat()
    (model,) = [each for each in cli.get("/api/ps")["models"] if each["name"] == CHAT]
    assert model["size"] > 0
    assert 0 <= model["size_vram"] <= model["size"]
    assert datetime.fromisoformat(model["expires_at"][:19] + "+00:00").year > datetime.now(UTC).year + 20
    assert model["context_length"] == 2048
    assert len(model["digest"][:12]) == 12


def test_stop_unloads(cli: Cli) -> None:
    cli.stream("/api/generate", preload(CHAT))
    cli.heartbeat()
    cli.post("/api/show", named(CHAT))
    (last,) = cli.stream("/api/generate", preload(CHAT) | {"options": None, "keep_alive": "0s"})
    assert last["done_reason"] == "unload"
    assert CHAT not in {each["name"] for each in cli.get("/api/ps")["models"]}


def test_stop_on_a_model_that_is_not_there_says_so(cli: Cli) -> None:
    body = preload("nowhere") | {"options": None, "keep_alive": "0s"}
    assert "not found" in cli.refusal("/api/generate", body)[1]


def test_what_only_a_cloud_has_is_an_error_in_text(cli: Cli) -> None:
    status, error = cli.refusal("/api/me", {})
    assert status in {401, 404}
    assert error


def test_launch_codex_finds_what_it_writes_down(scripted_cli: Cli) -> None:
    scripted_cli.heartbeat()
    with pytest.raises(AssertionError):  # Whatever the error: it falls back on what it has built in.
        scripted_cli.get("/api/experimental/model-recommendations")
    assert scripted_cli.get("/api/status")["cloud"]["disabled"] is True
    scripted_cli.post("/api/show", named("scripted"))
    listed = {model["name"]: model for model in scripted_cli.get("/api/tags")["models"]}
    assert listed["scripted:latest"]["details"]["context_length"] == 4096
    assert {"tools", "vision"} <= set(listed["scripted:latest"]["capabilities"])
