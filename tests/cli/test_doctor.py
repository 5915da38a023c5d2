"""What the doctor finds, who answers at a port, and what `serve` says of one that is taken."""

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from diglot.cli.port import Answers, bind_error, who_answers
from diglot.core.events import Step
from diglot.core.model import ModelRef
from diglot.core.recipe import Recipe
from diglot.settings import Settings
from diglot.store.local import LocalStore
from diglot.store.making import make
from tests.cli.conftest import Diglot
from tests.cli.stub import Answer, stub
from tests.serving import free_port
from tests.store.gguf_bytes import LLAMA, gguf


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A free port, which is the one of the settings."""
    found = free_port()
    monkeypatch.setenv("DIGLOT_PORT", str(found))
    return found


def examined(diglot: Diglot, *arguments: str) -> Any:
    outcome = diglot("doctor", "--json", *arguments)
    report = json.loads(outcome.out)
    assert outcome.code == any(finding["wrong"] for finding in report["findings"])
    return report


def wrongs(report: Any) -> list[str]:
    return [finding["what"] for finding in report["findings"] if finding["wrong"]]


def test_where_all_is_well_it_tells_what_there_is(diglot: Diglot, port: int) -> None:
    report = examined(diglot)
    assert not wrongs(report)
    assert report["hardware"]["cores"] >= 1
    assert report["hardware"]["devices"]
    assert report["engine_version"]
    assert report["answers"] == "nobody"
    assert [finding["remedy"] for finding in report["findings"]] == ["diglot pull starter"]


def test_it_speaks_to_people_too(diglot: Diglot, port: int) -> None:
    outcome = diglot("doctor")
    assert outcome.code == 0
    assert f"127.0.0.1:{port}" in outcome.out
    assert "note   there is no model yet" in outcome.out


def test_models_are_told_with_the_memory_they_take(diglot: Diglot, port: int, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(gguf())
    diglot("pull", str(tmp_path / "m.gguf"))
    report = examined(diglot, "--memory", "1000")
    assert report["models"][0]["name"] == "m:latest"
    assert report["models"][0]["memory"] > 0
    assert "m:latest wants" in report["findings"][0]["what"]


def test_a_broken_model_is_wrong(diglot: Diglot, port: int, home: Path) -> None:
    manifest = home / "models/manifests/registry.ollama.ai/library/m/latest"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{")
    report = examined(diglot)
    assert wrongs(report)[0].startswith("m:latest cannot be used: ")


def test_a_folder_that_is_a_file_is_wrong(diglot: Diglot, port: int, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert wrongs(examined(diglot, "--models", str(file))) == [f"{file} cannot be written to"]


def test_a_program_that_is_none_is_wrong(diglot: Diglot, port: int) -> None:
    assert wrongs(examined(diglot, "--llama-server", "/nowhere")) == ["/nowhere is no program"]


def test_a_script_that_cannot_be_played_is_wrong(diglot: Diglot, port: int, tmp_path: Path) -> None:
    (tmp_path / "script").write_text("[]")
    report = examined(diglot, "--engine", "scripted", "--script", str(tmp_path / "script"))
    assert wrongs(report)[0].startswith("the script cannot be played")


def test_an_open_address_without_a_key_is_noted(diglot: Diglot, port: int) -> None:
    found = [finding["what"] for finding in examined(diglot, "--host", "0.0.0.0")["findings"]]
    assert f"whoever reaches 0.0.0.0:{port} can use the models" in found


def test_a_running_diglot_is_known(diglot: Diglot, served: str) -> None:
    report = examined(diglot, "--port", str(urlsplit(served).port))
    assert report["answers"] == "diglot"
    assert not wrongs(report)


def test_serve_says_that_diglot_runs_already(diglot: Diglot, served: str) -> None:
    outcome = diglot("serve", "--port", str(urlsplit(served).port))
    assert outcome.code == 1
    assert outcome.err == f"Error: Diglot already runs at {served}. Take another port with: diglot serve --port N\n"


@pytest.mark.parametrize(
    ("answer", "who", "said"),
    [
        (
            lambda path: (200, {"version": "0.30.0"}) if path == "/api/version" else (404, {}),
            "ollama",
            "Ollama answers",
        ),
        (lambda _: (404, {}), "another program", "another program uses"),
        (lambda _: (200, ["no", "object"]), "another program", "another program uses"),
        (lambda _: (401, {"error": "no"}), "another program", "another program uses"),
    ],
)
def test_another_server_is_told_apart(diglot: Diglot, answer: Answer, who: str, said: str) -> None:
    with stub(answer) as url:
        port = str(urlsplit(url).port)
        report = examined(diglot, "--port", port)
        outcome = diglot("serve", "--port", port)
    assert report["answers"] == who
    assert wrongs(report) == [f"127.0.0.1:{port} is taken by {who}"]
    assert outcome.code == 1
    assert said in outcome.err


def test_a_program_that_says_nothing_is_another_program(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = Settings(home=home, port=server.getsockname()[1])
        assert bind_error(settings.host, settings.port) is not None
        assert who_answers(settings, patience=0.05) is Answers.OTHER


def test_a_free_port_has_nobody(home: Path, port: int) -> None:
    assert bind_error("127.0.0.1", port) is None
    assert who_answers(Settings(home=home, port=port)) is Answers.NOBODY


def test_what_others_have_and_is_not_served_is_a_note_with_the_reason(
    diglot: Diglot, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = LocalStore(tmp_path / "theirs")
    (tmp_path / "m.gguf").write_bytes(gguf({key: value for key, value in LLAMA.items() if "template" not in key}))
    steps: list[Step] = []
    weights = theirs.take(tmp_path / "m.gguf")
    recipe = Recipe(files={"m.gguf": weights}, template="{{ .Prompt }}")
    make(theirs, ModelRef("raw"), recipe, base=None, tell=steps.append)
    far = theirs.root / "manifests" / "registry.ollama.ai" / "library" / "far" / "latest"
    far.parent.mkdir()
    far.write_text("{}")
    monkeypatch.setenv("DIGLOT_READ_OLLAMA", "true")
    monkeypatch.setenv("DIGLOT_OLLAMA_MODELS", str(theirs.root))
    report = examined(diglot)
    assert not wrongs(report)
    assert [model["name"] for model in report["models"]] == ["raw:latest"]
    told = " ".join(finding["what"] for finding in report["findings"])
    assert "far:latest of another program is not served: its manifest is damaged" in told
    assert "raw:latest answers raw prompts only" in told
