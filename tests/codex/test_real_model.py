"""Codex on a real model, the smallest there is: what it says matters little, that the session goes on matters."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from tests.codex.agent import Codex
from tests.serving import CHAT, serving, starter_folder

SETTINGS = {
    "model_auto_compact_token_limit": "1000",  # Less than its own prompt: it compacts before every turn but the first.
    "sandbox_mode": '"read-only"',  # This model may call anything.
    # What the smallest model has no use for (docs/codex.md).
    "features.multi_agent": "false",
    "features.goals": "false",
    "features.view_image": "false",
    "skills.bundled.enabled": "false",
}


def of_few_words(folder: Path) -> Path:
    """Return a store in which the starter model stops after its first word, and says the same each time."""
    name, tag = CHAT.split(":")
    place = Path("manifests/registry.ollama.ai/library") / name / tag
    manifest = json.loads((starter_folder() / place).read_text())
    (folder / place).parent.mkdir(parents=True)
    (folder / "blobs").mkdir()
    for part in (manifest["config"], *manifest["layers"]):
        blob = Path("blobs") / part["digest"].replace(":", "-")
        os.link(starter_folder() / blob, folder / blob)
    parameters = json.dumps({"temperature": 0, "seed": 1, "stop": [" ", "\n"]}).encode()
    digest = hashlib.sha256(parameters).hexdigest()
    (folder / f"blobs/sha256-{digest}").write_bytes(parameters)
    layer = {"mediaType": "application/vnd.ollama.image.params", "digest": f"sha256:{digest}", "size": len(parameters)}
    manifest["layers"].append(layer)
    (folder / place).write_text(json.dumps(manifest))
    return folder


@pytest.mark.timeout(600)
def test_a_session_on_a_real_model_is_compacted_before_its_second_turn_and_goes_on(
    codex: Codex, tmp_path: Path
) -> None:
    flags = ("--models", str(of_few_words(tmp_path / "models")), "--window", "6144", "--threads", "1")
    with serving(tmp_path / "home", *flags) as served:
        first = codex.exec(served.url, "The port is 8123. Say yes.", model=CHAT, settings=SETTINGS)
        assert first.code == 0, first.shown()
        assert not served.log_has("compacted ")
        second = codex.exec(served.url, "resume", first.thread, "Say no.", model=CHAT, settings=SETTINGS)
        assert second.code == 0, second.shown()
        assert served.log_count("compacted ") == 1
    assert second.said
    assert second.last["usage"]["cached_input_tokens"] > 1000  # The summary was asked for in the conversation itself.
    assert [line["type"] for line in codex.written()].count("compacted") == 1
