"""The packages for JS against real servers: each script is a file of tests of Node's own runner."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.serving import Served


@pytest.mark.timeout(400)  # Real engines, on whatever machine this is.
@pytest.mark.parametrize("script", ["openai.mjs", "ollama.mjs"])
def test_the_package_for_js_is_served(
    node: Path, js_clients: Path, real: Served, scripted: Served, script: str
) -> None:
    env = {**os.environ, "REAL_URL": real.url, "SCRIPTED_URL": scripted.url, "NO_PROXY": "*"}
    done = subprocess.run(
        [node, "--test-reporter=spec", js_clients / script],
        env=env,
        cwd=js_clients,
        capture_output=True,
        text=True,
        check=False,
        timeout=390,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fail 0" in done.stdout
