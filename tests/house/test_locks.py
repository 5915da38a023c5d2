"""What the locks hold: a hash for everything, and no address, so that any index can serve them."""

import json
import re
from typing import Final

import pytest

from tests.house.source import ROOT

ADDRESS: Final = re.compile(r"\w+://|^\s*-|@ ", re.MULTILINE)
LOCKS: Final = [path.name for path in sorted((ROOT / "requirements").glob("*.txt"))]


def faults(lock: str) -> list[str]:
    """Find what does not belong into a lock."""
    without_hash = [line for line in lock.splitlines() if re.match(r"[a-z0-9]", line) and not line.endswith("\\")]
    options = [line for line in lock.splitlines() if ADDRESS.search(line.removeprefix("    --hash=sha256:"))]
    return without_hash + options


@pytest.mark.parametrize("name", LOCKS)
def test_a_python_lock_holds_hashes_and_no_address(name: str) -> None:
    assert not faults((ROOT / "requirements" / name).read_text())


@pytest.mark.parametrize(
    "line", ["--index-url https://host/simple", "--find-links /wheels", "a @ https://host/a.whl", "click==8.5.1"]
)
def test_a_line_that_does_not_belong_is_seen(line: str) -> None:
    assert faults(f"msgspec==0.23.0 \\\n    --hash=sha256:00\n{line}\n")


def test_torch_is_not_locked() -> None:
    assert not [
        name for name in LOCKS if re.search(r"^torch\b", (ROOT / "requirements" / name).read_text(), re.MULTILINE)
    ]


@pytest.mark.parametrize("folder", ["tests/clients/js", "tests/codex"])
def test_a_js_lock_holds_hashes_and_no_address(folder: str) -> None:
    lock = json.loads((ROOT / folder / "package-lock.json").read_text())
    packages = {name: facts for name, facts in lock["packages"].items() if name}
    assert packages
    assert not [name for name, facts in packages.items() if "resolved" in facts or "integrity" not in facts]
