"""Models made by real clients on a real server, whose base lies in a store of Ollama's that is only read."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import ollama
import openai
import pytest

from tests.clients.test_ollama_cli import STREAMING, UNARY
from tests.serving import CHAT, EMBEDDING, Served, serving, starter_folder
from tests.store.encoders import GOLDEN, RERANKER, lay_encoder

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

HELLO: Final[Any] = [{"role": "user", "content": "Tell me a long story."}]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with an empty store of its own, that reads another one."""
    home = tmp_path_factory.mktemp("making")
    theirs = starter_folder()
    before = {path for path in theirs.rglob("*") if path.is_file()}
    flags = ("--read-ollama", "--ollama-models", str(theirs), "--threads", "1", "--window", "2048")
    with serving(home, *flags) as served:
        yield served
    assert {path for path in theirs.rglob("*") if path.is_file()} == before


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[ollama.Client]:
    with ollama.Client(served.url, trust_env=False) as client:
        yield client


@pytest.fixture(scope="module")
def made(client: ollama.Client) -> str:
    """A model of another one, with much that is set."""
    statuses = [
        line.status or ""
        for line in client.create(
            "made",
            from_=CHAT,
            system="Be brief.",
            license="Mine",
            parameters={"num_predict": 5, "temperature": 0.0, "num_ctx": 512, "stop": ["<never>"]},
            messages=[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hi."}],
            stream=True,
        )
    ]
    assert statuses[-2:] == ["writing manifest", "success"]
    assert any(status.startswith("creating new layer sha256:") for status in statuses)
    return "made"


def windows(client: ollama.Client) -> dict[str, int]:
    return {model.model or "": model.context_length or 0 for model in client.ps().models}


def test_models_of_the_other_store_are_listed_and_answer(client: ollama.Client) -> None:
    assert {CHAT, EMBEDDING} <= {model.model for model in client.list().models}
    assert client.chat(CHAT, HELLO, options={"num_predict": 2}).eval_count == 2
    with pytest.raises(ollama.ResponseError, match="only read here"):
        client.delete(CHAT)


def test_it_shows_what_was_set_as_a_modelfile_that_makes_it_again(client: ollama.Client, made: str) -> None:
    shown = client.show(made)
    assert shown.modelfile
    assert "SYSTEM Be brief.\n" in shown.modelfile
    assert "PARAMETER num_ctx 512\n" in shown.modelfile
    assert "MESSAGE assistant Hi.\n" in shown.modelfile
    assert "LICENSE Mine\n" in shown.modelfile
    assert (shown.parameters or "").splitlines()[0] == f"{'num_predict':<30} 5"
    assert shown.details
    assert shown.details.parent_model == CHAT


def test_what_was_set_is_in_force_on_every_dialect(client: ollama.Client, served: Served, made: str) -> None:
    answer = client.chat(made, HELLO)
    assert (answer.eval_count, answer.done_reason) == (5, "length")
    assert windows(client)["made:latest"] == 512
    assert client.generate(made, "Tell me a long story.").eval_count == 5
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0) as other:
        chat = other.chat.completions.create(model=made, messages=HELLO)
        assert chat.usage
        assert chat.usage.completion_tokens == 5
        assert chat.usage.prompt_tokens == answer.prompt_eval_count
        response = other.responses.create(model=made, input="Tell me a long story.")
        assert response.usage
        assert response.usage.output_tokens == 5
        assert response.usage.input_tokens == answer.prompt_eval_count
    assert client.chat(made, HELLO, options={"num_predict": 2}).eval_count == 2


def test_an_option_of_loading_loads_anew_and_a_request_without_one_does_not(client: ollama.Client) -> None:
    short: dict[str, Any] = {"num_predict": 1}
    client.chat(CHAT, HELLO, options={**short, "num_ctx": 256})
    assert windows(client)[CHAT] == 256
    client.chat(CHAT, HELLO, options={**short, "num_ctx": 1024})
    assert windows(client)[CHAT] == 1024


def test_the_window_is_set_by_the_extension_of_v1_too(client: ollama.Client, served: Served) -> None:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0) as other:
        other.chat.completions.create(model=CHAT, messages=HELLO, max_tokens=1, extra_body={"num_ctx": 768})
        assert windows(client)[CHAT] == 768
        body = {"options": {"num_ctx": 640}, "keep_alive": "-1"}
        other.chat.completions.create(model=CHAT, messages=HELLO, max_tokens=1, extra_body=body)
        assert windows(client)[CHAT] == 640


def test_a_model_is_made_of_files_that_were_sent(client: ollama.Client, served: Served, tmp_path: Path) -> None:
    folder = lay_encoder(tmp_path / "ranker", RERANKER, tokenizer=GOLDEN / "unigram.json")
    files = {path.name: client.create_blob(path) for path in folder.iterdir() if path.is_file()}
    assert client.create("ranker", files=files, quantize="f32").status == "success"
    assert client.create("ranker", files=files, stream=False).status == "success"
    body = {"model": "ranker", "query": "the cat", "documents": ["the bear", "Hello"], "top_n": 1}
    with served.http() as http:
        answer = http.post("/v1/rerank", json=body)
    assert [each["index"] for each in answer.json()["results"]] == [1]
    weights = Path(client.show("ranker").modelfile.split("FROM ")[3].split("\n")[0])  # type: ignore[union-attr]
    assert client.create("again", files={"ranker.gguf": client.create_blob(weights)}).status == "success"


def test_what_cannot_be_made_is_an_error(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="neither 'from' or 'files' was specified") as caught:
        client.create("none")
    assert caught.value.status_code == 400
    with pytest.raises(ollama.ResponseError, match="quantize: weights in GGUF are kept as they are"):
        client.create("none", from_=CHAT, quantize="q4_K_M")


def test_the_command_line_of_ollama_creates(served: Served, tmp_path: Path) -> None:
    """`ollama create mine -f Modelfile`, with FROM and ADAPTER resolved by itself; then `/save mine-too`."""
    with served.http() as http:
        assert http.head("/", headers=UNARY).status_code == 200
        weights = (starter_folder() / "blobs").glob("sha256-*")
        content = max(weights, key=lambda path: path.stat().st_size).read_bytes()
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        sent = http.post(f"/api/blobs/{digest}", headers=UNARY, content=content)
        assert sent.status_code in {200, 201}
        body = {
            "model": "mine",
            "files": {"model.gguf": digest},
            "system": "Be brief.",
            "parameters": {"num_predict": 3, "stop": ["x"]},
            "name": "",
        }
        created = http.post("/api/create", headers=STREAMING, json=body)
        assert created.status_code == 200
        assert created.text.endswith('{"status":"success"}\n')
        saved = {
            "model": "mine-too",
            "from": "mine",
            "system": "Be long.",
            "parameters": {"num_ctx": 1024},
            "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hi.", "thinking": "Hm."}],
            "name": "",
        }
        assert http.post("/api/create", headers=STREAMING, json=saved).text.endswith('{"status":"success"}\n')
        shown = http.post("/api/show", json={"model": "mine-too"}).json()
        assert shown["system"] == "Be long."
        assert shown["messages"][1] == {"role": "assistant", "content": "Hi."}
        assert shown["parameters"].split() == ["num_predict", "3", "stop", '"x"', "num_ctx", "1024"]


def test_the_package_for_js_creates(node: Path, js_clients: Path, served: Served) -> None:
    env = {**os.environ, "MAKING_URL": served.url, "MAKING_BASE": CHAT, "NO_PROXY": "*"}
    done = subprocess.run(
        [node, "--test-reporter=spec", js_clients / "making.mjs"],
        env=env,
        cwd=js_clients,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
