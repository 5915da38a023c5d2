"""A real server as docs/proxy.md sets it up, and nginx before it."""

from collections.abc import Iterator
from typing import Final

import httpx2
import pytest

from tests.proxy.nginx import ANN, KEY, NAME, Proxy, program, proxying
from tests.serving import Served, serving_script

SCRIPT: Final = {"replies": [{"when": "hang", "say": ["Hel", "lo"], "hang": True}, {"echo": True}], "slots": 1}


@pytest.fixture(scope="session")
def diglot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server with the settings of the page."""
    program()
    flags = ("--hosts", NAME, "--key", KEY, "--max-body", str(8 * 1024 * 1024))
    with serving_script(tmp_path_factory.mktemp("behind"), SCRIPT, *flags) as served:
        yield served


@pytest.fixture(scope="session")
def proxy(tmp_path_factory: pytest.TempPathFactory, diglot: Served) -> Iterator[Proxy]:
    """Nginx before it."""
    with proxying(tmp_path_factory.mktemp("nginx"), int(diglot.url.rpartition(":")[2])) as running:
        yield running


@pytest.fixture
def ann(proxy: Proxy) -> Iterator[httpx2.Client]:
    """A client with the token of a user."""
    with proxy.client(ANN) as client:
        yield client
