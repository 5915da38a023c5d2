"""What a start does not load: each import here was once measured as too slow or too large.

Only the names of loaded modules are looked at; `make bench` measures the time.
"""

import subprocess
import sys
from typing import Final

from tests.house.source import within

HEAVY: Final = ("PIL", "gguf", "huggingface_hub", "numpy", "safetensors", "xllamacpp")
SERVER: Final = ("httpx2", "starlette", "uvicorn")
VERSION: Final = """
from diglot.cli.main import main
sys.argv = ["diglot", "--version"]
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
"""


def loaded(code: str, *packages: str) -> list[str]:
    """Run code in a fresh interpreter and give those of the packages that it has loaded."""
    command = [sys.executable, "-c", f"import sys\n{code}\nprint('loaded', *sys.modules)"]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    modules = output.splitlines()[-1].split()
    return [package for package in packages if any(within(module, package) for module in modules)]


def test_the_version_loads_neither_server_nor_engine() -> None:
    assert not loaded(VERSION, *SERVER, *HEAVY)


def test_the_server_loads_no_converter_and_no_engine() -> None:
    assert not loaded("import diglot.app", *HEAVY)


def test_the_server_loads_no_http_client_before_it_calls_others() -> None:
    assert not loaded("import diglot.app", "httpx2")


def test_a_heavy_import_is_seen() -> None:
    assert loaded("import safetensors.numpy", *HEAVY) == ["numpy", "safetensors"]
