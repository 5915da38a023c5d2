"""The examples of the README run as they stand, against a real server with a scripted engine.

Only the address and the names of the models are replaced: the scripted engine has names of its own. `console`
blocks are for a person and are not run; `test_pages` looks at what they name.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import Block, blocks_of

SAID: Final = "Hello yourself, from a script."
PLACES: Final = {"smollm2:135m": "scripted", "all-minilm:l6-v2": "scripted-embed"}
BLOCKS: Final = blocks_of("README.md")


def examples(language: str) -> pytest.MarkDecorator:
    found = [block for block in BLOCKS if block.language == language]
    assert found, f"no {language} in the README"
    return pytest.mark.parametrize("block", found, ids=lambda block: f"line{block.line}")


def adapted(block: Block, base: str) -> str:
    """Return the text of an example for this server."""
    text = block.text.replace("http://127.0.0.1:11435", base)
    for name, scripted in PLACES.items():
        text = text.replace(name, scripted)
    return text


def run(command: list[str], text: str, folder: Path) -> str:
    """Run a program on a text and return what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    ended = subprocess.run(
        command, input=text, cwd=folder, env=clean, capture_output=True, text=True, timeout=50, check=False
    )
    assert not ended.returncode, ended.stderr
    return ended.stdout


@examples("python")
def test_a_python_example_prints_an_answer(block: Block, scripted: str, empty_folder: Path) -> None:
    printed = run([sys.executable, "-W", "error", "-"], adapted(block, scripted), empty_folder)
    if "tool_choice" in block.text:
        assert set(json.loads(printed)) == {"city"}
    else:
        assert printed.strip() == SAID


@examples("js")
def test_a_js_example_prints_an_answer(block: Block, scripted: str, node: Path, js_clients: Path) -> None:
    printed = run([str(node), "--input-type=module", "-"], adapted(block, scripted), js_clients)
    assert printed.strip() == ("32" if "embeddings" in block.text else SAID)


@pytest.mark.skipif(shutil.which("curl") is None, reason="this machine has no curl")
@examples("sh")
def test_a_shell_example_prints_answers(block: Block, scripted: str, empty_folder: Path) -> None:
    lines = run(["sh", "-e"], adapted(block, scripted), empty_folder)
    said = [json.loads(line) for line in lines.replace("}{", "}\n{").splitlines()]
    assert "".join(each["message"]["content"] for each in said if "message" in each) == SAID
    assert [each["choices"][0]["message"]["content"] for each in said if "choices" in each] == [SAID]


def test_every_other_block_is_one_that_a_person_reads() -> None:
    assert {block.language for block in BLOCKS} <= {"python", "js", "sh", "console", "yaml", "json"}


@examples("json")
def test_a_json_example_is_json(block: Block) -> None:
    json.loads(block.text)


def test_the_readme_asks_for_the_python_that_the_project_asks_for() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=")
    assert f"Python {oldest} or later" in (Path(__file__).parents[2] / "README.md").read_text()
