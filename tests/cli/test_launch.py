"""`diglot launch`: an agent started on a local model, and no file of the user's touched."""

import json
import os
import shlex
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from diglot.cli.verbs.launch import codex_arguments
from tests.cli.conftest import Diglot


def settings_of(arguments: list[str]) -> dict[str, object]:
    """Return what `-c` sets, read as Codex reads it: a dotted key and a TOML value."""
    given = [after for option, after in pairwise(arguments) if option == "-c"]
    return {name: tomllib.loads(f"x = {value}")["x"] for name, _, value in (each.partition("=") for each in given)}


def test_codex_is_pointed_at_the_server_and_told_to_leave_compaction_to_it() -> None:
    settings = settings_of(list(codex_arguments("http://127.0.0.1:11435/", model="m:1")))
    assert settings == {
        "model_provider": "diglot",
        "model_providers.diglot.name": "OpenAI",
        "model_providers.diglot.base_url": "http://127.0.0.1:11435/v1",
        "model_providers.diglot.wire_api": "responses",
        "model_providers.diglot.env_key": "DIGLOT_AGENT_TOKEN",
        "model_providers.diglot.model_catalog_url": "http://127.0.0.1:11435/v1/models",
        "web_search": "disabled",
    }


def test_a_model_name_with_quotes_does_no_harm() -> None:
    assert codex_arguments('http://x"y', model="m")[5].startswith('model_providers.diglot.base_url="http://x\\"y')


AGENT = """#!{python}
import json, os, sys
print(json.dumps([sys.argv[1:], os.environ["DIGLOT_AGENT_TOKEN"]]))
"""


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `codex` that tells how it was called."""
    program = tmp_path / "codex"
    program.write_text(AGENT.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return program


def test_the_agent_is_started_on_a_model_that_chats_with_what_the_user_gave_it_last(agent: Path, served: str) -> None:
    line = [sys.executable, "-m", "diglot", "launch", "codex", "--url", served, "--", "exec", "--json", "do it"]
    output = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60).stdout
    arguments, token = json.loads(output)
    assert arguments[-5:] == ["-m", "scripted:latest", "exec", "--json", "do it"]
    assert token == "local"


def test_show_prints_a_line_that_a_shell_can_run(diglot: Diglot, served: str) -> None:
    printed = diglot("launch", "codex", "--url", served, "--show", "--", "exec", "say 'hi'").out
    assert shlex.split(printed)[0] == "DIGLOT_AGENT_TOKEN=local"
    assert shlex.split(printed)[-2:] == ["exec", "say 'hi'"]


def test_a_model_is_named_to_the_agent_as_the_catalogue_names_it(diglot: Diglot, served: str) -> None:
    printed = diglot("launch", "codex", "--url", served, "--show", "--model", "Scripted").out
    assert shlex.split(printed)[-1] == "scripted:latest"


def test_a_model_that_the_server_does_not_have_is_said_at_once(diglot: Diglot, served: str) -> None:
    outcome = diglot("launch", "codex", "--url", served, "--show", "--model", "another")
    assert outcome.code == 1
    assert "scripted:latest" in outcome.err


def test_without_the_agent_it_says_how_to_get_it(diglot: Diglot, served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    outcome = diglot("launch", "codex", "--url", served)
    assert outcome.code == 1
    assert "npm install" in outcome.err


def test_without_a_server_it_says_how_to_start_one(diglot: Diglot) -> None:
    outcome = diglot("launch", "codex", "--url", "http://127.0.0.1:9")
    assert outcome.code == 1
    assert "diglot serve" in outcome.err
