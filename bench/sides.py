"""The two sides that are compared: Diglot in a process of its own, and the engine without it.

The engine alone is loaded by Diglot's own loader, out of the same store and with the same settings, so that
threads, batches, cache and slots are the same; it is then asked over its own HTTP.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psutil

from diglot.app import RandomIds, engines_of
from diglot.core.model import ModelRef
from diglot.core.request import LoadOptions
from diglot.engines.llamacpp.engine import LlamaEngine
from diglot.engines.peer.transport import Transport
from diglot.settings import Settings
from diglot.store.local import LocalStore
from diglot.store.starter import fetch_starter

ROOT = Path(__file__).parent.parent
MODELS = ROOT / ".tools/models"
CHAT = "smollm2:135m"
EMBEDDING = "all-minilm:l6-v2"
SLOTS = 8
_PATIENCE = 120.0


def starter_models() -> LocalStore:
    """Return a store that has the starter models."""
    store = LocalStore(MODELS)
    fetch_starter(store)
    return store


class Served:
    """A server that runs."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, *, ready: float) -> None:
        self.process = process
        self.port = port
        self.ready = ready

    @property
    def resident(self) -> int:
        """Bytes of memory that the server process holds, without its engines."""
        return int(psutil.Process(self.process.pid).memory_info().rss)


@contextmanager
def served(home: Path, *flags: str, cores: Sequence[int] = ()) -> Iterator[Served]:
    """Run `diglot serve`, on some cores only where that can be had. `ready` is the seconds from start to healthy."""
    port = free_port()
    command = [sys.executable, "-m", "diglot", "serve", "--port", str(port), "--home", str(home), "--log", "warning"]
    begun = time.perf_counter()
    with subprocess.Popen([*command, *flags], stderr=subprocess.DEVNULL, env=surroundings()) as process:
        try:
            pin(process.pid, cores)
            wait_for(port, process)
            yield Served(process, port, ready=time.perf_counter() - begun)
        finally:
            process.terminate()


def surroundings() -> dict[str, str]:
    """Return the environment of what is measured: ours, without what changes what Diglot does or how it starts."""
    strange = ("DIGLOT_", "PYTHONDONTWRITEBYTECODE")  # The latter makes every start compile everything anew.
    return {name: value for name, value in os.environ.items() if not name.startswith(strange)}


def pin(pid: int, cores: Sequence[int]) -> None:
    """Keep a process on some cores, where the system can do that."""
    if cores and hasattr(psutil.Process, "cpu_affinity"):
        psutil.Process(pid).cpu_affinity(list(cores))


def free_port() -> int:
    """Return a port of the loopback interface that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server that was started answers. RuntimeError if it does not."""
    deadline = time.perf_counter() + _PATIENCE
    while process.poll() is None and time.perf_counter() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as wire:
                wire.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                if b" 200 " in wire.recv(64):
                    return
        except OSError:
            time.sleep(0.005)
    raise RuntimeError("the server did not become healthy")


@asynccontextmanager
async def engine_alone(name: str, settings: Settings) -> AsyncIterator[Transport]:
    """Load a model as the server with these settings would, and give a client for the engine's own HTTP."""
    loader, _ = engines_of(settings, RandomIds())
    model = await asyncio.to_thread(LocalStore(settings.model_folder).resolve, ModelRef.parse(name))
    options = model.defaults.load.over(LoadOptions(gpu_layers=settings.gpu_layers))
    engine = await loader.load(model, options, lambda _done, _total: None)
    assert isinstance(engine, LlamaEngine)
    try:
        yield engine._peer._transport  # noqa: SLF001  the very connection that Diglot would use
    finally:
        await engine.close()
