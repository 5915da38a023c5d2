"""Names with slashes, over HTTP, on every path of both protocols; models of three places behind one server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.serving import serving_script
from tests.store.gguf_bytes import BERT, gguf
from tests.store.test_elsewhere import lay, lay_in_cache

NAME: Final = "hf.co/Owner/Repo-GGUF:Q4_K_M"
OTHER: Final = "hf.co/owner/other:Q8_0"
HELLO: Final = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A client of a server with a folder and a cache beside its own store."""
    root: Path = tmp_path_factory.mktemp("places")
    lay(root / "folder" / "embedder.gguf", gguf(BERT))
    lay_in_cache(root / "cache", "Owner/Repo-GGUF", "Repo-Q4_K_M.gguf", gguf())
    flags = ("--folders", str(root / "folder"), "--hub-cache", str(root / "cache"))
    with serving_script(root / "home", {}, *flags) as served, served.http() as client:
        yield client


@pytest.mark.parametrize("name", [NAME, NAME.lower(), "HF.co/owner/repo-gguf:q4_k_m"])
def test_a_model_is_met_by_its_name_in_any_case_of_letters(http: httpx2.Client, name: str) -> None:
    assert http.get(f"/v1/models/{name}").json()["id"] == name
    assert http.post("/api/show", json={"model": name}).json()["details"]["family"] == "llama"
    chat = http.post("/api/chat", json={"model": name, "messages": HELLO, "stream": False}).json()
    assert (chat["model"], chat["message"]["content"]) == (name, "Hello")
    assert http.post("/v1/chat/completions", json={"model": name, "messages": HELLO}).json()["model"] == name
    assert http.post("/v1/responses", json={"model": name, "input": "Hello"}).json()["model"] == name
    assert NAME in {each["name"] for each in http.get("/api/ps").json()["models"]}


def test_models_of_all_places_are_listed_on_both_protocols(http: httpx2.Client) -> None:
    named = {NAME, "embedder:latest", "scripted:latest"}
    assert named <= {each["name"] for each in http.get("/api/tags").json()["models"]}
    assert named <= {each["id"] for each in http.get("/v1/models").json()["data"]}


def test_what_is_read_only_is_refused_a_change_and_may_be_the_base_of_a_model(http: httpx2.Client) -> None:
    for name in (NAME, "embedder"):
        answer = http.request("DELETE", "/api/delete", json={"model": name})
        assert answer.status_code == 403
        assert "only read here" in answer.json()["error"]
    made = http.post("/api/create", json={"model": OTHER, "from": NAME, "system": "Hi.", "stream": False})
    assert made.json() == {"status": "success"}
    assert http.get(f"/v1/models/{OTHER}").json()["id"] == OTHER
    assert http.post("/api/copy", json={"source": OTHER, "destination": "me/mine:Q8"}).status_code == 200
    assert http.post("/api/show", json={"model": "me/mine:q8"}).json()["system"] == "Hi."
    for name in (OTHER, "me/mine:Q8"):
        assert http.request("DELETE", "/api/delete", json={"name": name}).status_code == 200


def test_documents_are_ranked(http: httpx2.Client) -> None:
    body = {"query": "the sea", "documents": ["a stone", "the sea"], "top_n": 1, "return_documents": True}
    [best] = http.post("/v1/rerank", json=body).json()["results"]
    assert (best["index"], best["document"]) == (1, {"text": "the sea"})
    refused = http.post("/v1/rerank", json={**body, "model": "scripted"})
    assert refused.status_code == 400
    assert "does not support rerank" in refused.json()["error"]["message"]
