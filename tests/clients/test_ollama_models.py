"""The `ollama` package for Python moves models: every method that does, streamed and not, against a real process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ollama
import pytest

from tests.serving import Served, serving
from tests.store.arriving import WEIGHTS
from tests.store.gguf_bytes import LLAMA, gguf
from tests.store.registry import Registry, digest_of, registry


@pytest.fixture(scope="module")
def there() -> Iterator[Registry]:
    with registry() as offered:
        offered.put("library/tiny:1", ("model", WEIGHTS), ("system", b"Be brief."))
        yield offered


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a store of its own; what it answers comes from a script."""
    with serving(tmp_path_factory.mktemp("moving"), "--engine", "scripted") as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[ollama.Client]:
    with ollama.Client(served.url, trust_env=False) as client:
        yield client


@pytest.fixture
def tiny(client: ollama.Client, there: Registry) -> str:
    """A model that is here, by its name."""
    name = f"{there.host}/library/tiny:1"
    client.pull(name, insecure=True)
    return name


def test_a_pull_streams_its_steps(client: ollama.Client, there: Registry) -> None:
    name = f"{there.host}/library/tiny:1"
    steps = list(client.pull(name, insecure=True, stream=True))
    assert steps[0].status == "pulling manifest"
    assert [step.status for step in steps[-3:]] == ["verifying sha256 digest", "writing manifest", "success"]
    (last,) = [step for step in steps if step.digest == digest_of(WEIGHTS) and step.completed == step.total]
    assert last.total == len(WEIGHTS)
    assert name in [model.model for model in client.list().models]


def test_a_pull_is_one_status_without_a_stream(client: ollama.Client, there: Registry) -> None:
    assert client.pull(f"{there.host}/library/tiny:1", insecure=True).status == "success"


def test_a_model_that_was_pulled_is_shown_and_answers(client: ollama.Client, tiny: str) -> None:
    shown = client.show(tiny)
    assert shown.modelinfo
    assert shown.modelinfo["general.architecture"] == "llama"
    assert "SYSTEM Be brief." in (shown.modelfile or "").replace('"', "")
    assert client.chat(tiny, [{"role": "user", "content": "hello"}]).message.content


def test_what_the_registry_lacks_is_an_error_with_and_without_a_stream(client: ollama.Client, there: Registry) -> None:
    for stream in (False, True):
        with pytest.raises(ollama.ResponseError, match="pull model manifest: file does not exist"):
            list(client.pull(f"{there.host}/library/none", insecure=True, stream=stream))


def test_a_copy_is_pushed_and_removed(client: ollama.Client, there: Registry, tiny: str) -> None:
    copy = f"{there.host}/me/copy:2"
    assert client.copy(tiny, copy).status == "success"
    steps = list(client.push(copy, insecure=True, stream=True))
    assert [steps[0].status, steps[-2].status, steps[-1].status] == [
        "retrieving manifest",
        "pushing manifest",
        "success",
    ]
    assert there.manifests["me/copy:2"] == there.manifests["library/tiny:1"]
    assert client.push(copy, insecure=True).status == "success"
    assert client.delete(copy).status == "success"
    with pytest.raises(ollama.ResponseError, match=f"model '{copy}' not found") as raised:
        client.delete(copy)
    assert raised.value.status_code == 404


def test_what_is_not_here_cannot_be_copied_or_pushed(client: ollama.Client, there: Registry) -> None:
    with pytest.raises(ollama.ResponseError, match='model "none" not found') as raised:
        client.copy("none", "x")
    assert raised.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match="not found"):
        client.push(f"{there.host}/me/none", insecure=True)


def test_a_content_is_kept_once(client: ollama.Client, served: Served, tmp_path: Path) -> None:
    file = tmp_path / "file.gguf"
    file.write_bytes(gguf({**LLAMA, "general.name": "Sent"}) + bytes(5_000_000))
    digest = digest_of(file.read_bytes())
    assert client.create_blob(file) == client.create_blob(file) == digest
    kept = served.home / "models" / "blobs" / digest.replace(":", "-")
    assert kept.read_bytes() == file.read_bytes()
    with served.http() as http:
        assert http.head(f"/api/blobs/{digest}").status_code == 200
        assert http.post(f"/api/blobs/{digest}", content=b"whatever").status_code == 200
        assert http.head("/api/blobs/sha256:" + "0" * 64).status_code == 404
        wrong = http.post("/api/blobs/sha256:" + "0" * 64, content=b"other")
        assert (wrong.status_code, wrong.json()["error"][:25]) == (400, "digest mismatch, expected")
    assert not list(kept.parent.glob(".incoming-*"))


def test_a_client_that_leaves_in_the_middle_of_a_content_leaves_nothing(served: Served) -> None:
    def half() -> Iterator[bytes]:
        yield bytes(3_000_000)
        raise KeyError

    with served.http() as http, pytest.raises(KeyError):
        http.post("/api/blobs/sha256:" + "0" * 64, content=half())
    with served.http() as http:
        assert http.head("/api/blobs/sha256:" + "0" * 64).status_code == 404
        assert http.post(f"/api/blobs/{digest_of(b'x')}", content=b"x").status_code == 201
    assert not [path for path in (served.home / "models" / "blobs").iterdir() if path.name.endswith("0" * 64)]


async def test_the_asynchronous_client_does_the_same(served: Served, there: Registry) -> None:
    name = f"{there.host}/library/tiny:1"
    client = ollama.AsyncClient(served.url, trust_env=False)
    steps = [step async for step in await client.pull(name, insecure=True, stream=True)]
    assert steps[-1].status == "success"
    assert (await client.copy(name, "async:1")).status == "success"
    assert (await client.delete("async:1")).status == "success"
    await client._client.aclose()  # noqa: SLF001  this client has no close of its own
