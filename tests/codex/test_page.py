"""The settings that docs/codex.md tells a person to write down, given to the real Codex as they stand there."""

from pathlib import Path

import pytest

from tests.codex.agent import Codex, asked
from tests.docs.pages import blocks_of
from tests.serving import serving_script

pytestmark = pytest.mark.timeout(300)
PROVIDER, LEAN = (block.text for block in blocks_of("docs/codex.md") if block.language == "toml")


def test_what_is_written_down_for_good_does_without_arguments(codex: Codex, tmp_path: Path) -> None:
    words = ["exec", "--json", "--skip-git-repo-check", "hello"]
    with serving_script(tmp_path / "home", {"window": 32_000, "replies": [{"say": "Hello yourself."}]}) as served:
        settings = PROVIDER.replace("http://127.0.0.1:11435", served.url).replace("smollm2:135m", "scripted:latest")
        (codex.home / "config.toml").write_text(settings)
        run = codex.run(codex.env(), [*codex.bare(), *words])
        (codex.home / "config.toml").write_text(settings + LEAN)
        codex.run(codex.env(), [*codex.bare(), *words])
        usual, lean = asked(served)
    assert run.said == ["Hello yourself."], run.shown()
    assert not run.items("error")  # Such as that the model is not in the catalogue.
    assert len(lean) < len(usual) / 2
