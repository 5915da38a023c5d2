"""The `ollama` package for JS moves models, against a real process and a registry."""

import os
import subprocess
from pathlib import Path

from tests.serving import serving
from tests.store.arriving import WEIGHTS
from tests.store.registry import registry


def test_the_package_for_js_moves_models(node: Path, js_clients: Path, tmp_path: Path) -> None:
    with registry() as there, serving(tmp_path / "home", "--engine", "scripted") as served:
        there.put("library/tiny:1", ("model", WEIGHTS))
        env = {**os.environ, "SERVED_URL": served.url, "REGISTRY_HOST": there.host, "NO_PROXY": "*"}
        done = subprocess.run(
            [node, "--test-reporter=spec", js_clients / "moving.mjs"],
            env=env,
            cwd=js_clients,
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fail 0" in done.stdout
