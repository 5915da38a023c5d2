"""What every test stands on: no network but loopback, and the same examples on every run.

Coroutine tests run by themselves (pytest-asyncio, auto). The JS clients and Node are laid by
`tools/setup dev`; the fixtures here only say where.
"""

import ipaddress
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import HealthCheck, settings

ROOT: Final = Path(__file__).parent.parent

settings.register_profile("house", derandomize=True, deadline=None)
settings.register_profile(  # For `make fuzz`: other examples each time, and many.
    "fuzz", max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("house")


@pytest.fixture(scope="session", autouse=True)
def no_proxy_to_here() -> Iterator[None]:
    """Let clients reach this machine without the proxy that it may have, and the processes that tests start too."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("no_proxy", "NO_PROXY"):
            patch.setenv(name, ",".join(filter(None, (os.environ.get(name), "localhost", "127.0.0.1", "::1"))))
        yield


@pytest.fixture(scope="session", autouse=True)
def loopback_only() -> Iterator[None]:
    """Fail a test whose own process connects to another machine."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
        yield


def _guarded(connect: Any) -> Any:
    def connect_near(self: socket.socket, address: Any) -> Any:
        if self.family in {socket.AF_INET, socket.AF_INET6} and not _is_loopback(address[0]):
            pytest.fail(f"a test connects to {address}, which is not this machine")
        return connect(self, address)

    return connect_near


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture
def no_blocking() -> Iterator[BlockBuster]:
    """Raise where the code under test blocks the event loop."""
    with blockbuster_ctx() as guard:
        yield guard


@pytest.fixture(scope="session")
def node() -> Path:
    """Node 18 or later: this machine's, or the one from the package index."""
    return ROOT / "tests/clients/js/node_modules/.bin/node"


@pytest.fixture(scope="session")
def js_clients() -> Path:
    """The folder whose scripts can import `openai` and `ollama`."""
    return ROOT / "tests/clients/js"
