"""A model in several files answers as the same model in one, through the real engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from diglot.core.model import ModelRef
from diglot.store.local import LocalStore
from tests.serving import CHAT, Served, serving, starter_folder
from tests.store.splitting import cut
from tests.store.test_elsewhere import lay_in_cache


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that reads a folder and a cache with a starter model in parts, and has it whole."""
    folder = tmp_path_factory.mktemp("split")
    weights = LocalStore(starter_folder()).resolve(ModelRef.parse(CHAT)).weights
    parts = cut(weights, folder / "files", "cut", count=3)
    for path in parts:
        lay_in_cache(folder / "hub", "owner/Cut-GGUF", path.name.replace("cut", "Cut-Q4_1"), path.read_bytes())
    flags = ("--models", str(starter_folder()), "--folders", str(folder / "files"), "--hub-cache", str(folder / "hub"))
    with serving(folder / "home", *flags, "--threads", "1", "--window", "512", "--no-starter") as server:
        yield server


@pytest.mark.parametrize("name", ["cut", "hf.co/owner/Cut-GGUF:Q4_1"])
def test_it_answers_as_the_whole_one(served: Served, name: str) -> None:
    body = {"prompt": "Once upon a time", "raw": True, "stream": False, "options": {"temperature": 0, "num_predict": 8}}
    with served.http() as client:
        answers = [client.post("/api/generate", json={"model": model, **body}).json() for model in (CHAT, name)]
        shown = client.post("/api/show", json={"model": name}).json()
        whole = client.post("/api/show", json={"model": CHAT}).json()
    assert answers[0]["response"]
    assert answers[1]["response"] == answers[0]["response"]
    assert len(shown["tensors"]) == len(whole["tensors"])
    assert shown["details"]["parameter_size"] == whole["details"]["parameter_size"]


def test_a_model_whose_part_lacks_is_an_error_that_says_so(
    served: Served, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path: Path = next(served.home.parent.glob("files/cut-00002-*"))
    content = path.read_bytes()
    path.unlink()
    try:
        with served.http() as client:
            answer = client.post("/api/generate", json={"model": "cut", "prompt": "x"})
        assert "of its 3 parts 1 is missing: 2" in answer.json()["error"]
    finally:
        path.write_bytes(content)
