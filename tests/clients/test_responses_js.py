"""The `openai` package's Responses for JS, against a real server on a scripted model."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.clients.test_responses_python import SCRIPT
from tests.serving import serving_script


@pytest.mark.timeout(180)
def test_the_package_for_js_holds_responses(node: Path, js_clients: Path, tmp_path: Path) -> None:
    with serving_script(tmp_path, SCRIPT) as served:
        done = subprocess.run(
            [node, "--test-reporter=spec", js_clients / "responses.mjs"],
            env={**os.environ, "SCRIPTED_URL": served.url, "NO_PROXY": "*"},
            cwd=js_clients,
            capture_output=True,
            text=True,
            check=False,
            timeout=170,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fail 0" in done.stdout
