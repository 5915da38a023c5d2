"""The openresponses compliance suite against a server of ours: `make conformance SUITE=DIR`.

DIR is a checkout of the suite in which `bun install` has been run; bun itself is on the PATH or comes from npm. Nothing
of the suite is kept here: what it checks is also checked by tests of our own. Neighbour: `tests.serving`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.serving import serving_script

SCRIPT: Final = {
    "replies": [
        {"when": "weather", "call": [{"name": "get_weather", "arguments": {"location": "Brno"}}]},
        {"echo": True},
    ]
}


def main(suite: str, *options: str) -> int:
    """Run the suite and return its exit code. `options` go to it, such as `--filter basic-response`."""
    bun = ["bun"] if shutil.which("bun") else ["npx", "--yes", "bun"]
    with tempfile.TemporaryDirectory() as home, serving_script(Path(home), SCRIPT) as served:
        where = ["--base-url", f"{served.url}/v1", "--api-key", "any", "--model", "scripted"]
        command = [*bun, "run", "bin/compliance-test.ts", *where, *options]
        return subprocess.run(command, cwd=suite, check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit("say where the suite is: make conformance SUITE=DIR")
    sys.exit(main(*sys.argv[1:]))
