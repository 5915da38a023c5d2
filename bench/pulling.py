"""Pulling: a model from a registry on this machine, beside a plain download of the same bytes.

Both are processes of their own, and the registry, which is nginx, is a third. The plain download is one connection of the same
HTTP client that writes what comes to a file, unchecked. Ours takes the bytes in parts, hashes them, keeps
account of what is there, and brings them to the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from bench.report import Line, at_least, ratios
from bench.sides import free_port, wait_for
from bench.weights import weights
from tools.nginx import libraries, nginx

SIZE: Final = 512 << 20
_NAME: Final = "library/large:1"

# A registry of its time is written in Go or C. One in Python would be measured instead: it took as much of the processor
# as the pull, and there are two of them.
_REGISTRY: Final = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/errors;
events {{ }}
http {{
    access_log off;
    sendfile on;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location = / {{ return 200; }}
        location = /v2/library/large/manifests/1 {{ alias {folder}/manifest; }}
        location ~ ^/v2/library/large/blobs/sha256:(.*)$ {{ alias {folder}/sha256-$1; }}
    }}
}}
"""
_PLAIN: Final = """
import sys, time
import httpx2

begun, spent = time.perf_counter(), time.process_time()
with httpx2.stream("GET", sys.argv[1], headers={"accept-encoding": "identity"}) as response, open(sys.argv[2], "wb") as file:
    for piece in response.iter_raw():
        file.write(piece)
print(time.perf_counter() - begun, time.process_time() - spent)
"""
_OURS: Final = """
import sys, time
import uvloop  # The loop that the server runs on.
from pathlib import Path
from diglot.app import SystemClock
from diglot.core.source import read_source
from diglot.store.local import LocalStore
from diglot.store.registry import pull as _  # As the other program has its client before the clock runs.
from diglot.store.supply import Reach, StoreSupply

async def pull():
    supply = StoreSupply(LocalStore(Path(sys.argv[2])), Reach(identity=Path("none")), clock=SystemClock())
    begun, spent = time.perf_counter(), time.process_time()
    async for _ in supply.pull(read_source(sys.argv[1]), insecure=True):
        pass
    print(time.perf_counter() - begun, time.process_time() - spent)

uvloop.run(pull())
"""


def pulling(scale: float) -> Iterator[Line]:
    """Yield the lines. `scale` is 1 for a full run."""
    rounds = max(2, round(11 * scale))
    program = nginx()
    if program is None:
        print("a pull is measured from nginx, and this machine has none", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        digest = _lay(folder)
        with _registry(program, folder) as host:
            plain, ours = [], []
            for number in range(rounds):
                plain.append(_run(_PLAIN, f"http://{host}/v2/library/large/blobs/{digest}", folder / f"plain{number}"))
                ours.append(_run(_OURS, f"{host}/{_NAME}", folder / f"models{number}"))
    rates = [SIZE / run.seconds / 1e6 for run in plain], [SIZE / run.seconds / 1e6 for run in ours]
    yield Line("plain download over loopback", tuple(rates[0]), "{:.0f}", unit="MB/s")
    yield Line(
        "pull of the same bytes", tuple(rates[1]), "{:.0f}", unit="MB/s", note="hashed, in parts, brought to the disk"
    )
    yield Line("pull against a plain download", ratios(rates[1], rates[0]), "{:.2f}", target=at_least(0.9))
    for what, runs in (("a plain download", plain), ("a pull", ours)):
        spent = tuple(run.processor / SIZE * 1e9 for run in runs)
        yield Line(f"processor time of {what}", spent, "{:.2f}", unit="s/GB")


def _lay(folder: Path) -> str:
    """Lay a model of one large tensor into a folder, as the registry has it; returns the digest of its weights."""
    chunk = os.urandom(1 << 20)
    with (folder / "weights").open("wb") as file:
        file.write(weights(SIZE))
        for _ in range(SIZE >> 20):
            file.write(chunk)
    config = b'{"model_format":"gguf"}'
    (folder / "config").write_bytes(config)
    layers = {}
    for kind in ("weights", "config"):
        with (folder / kind).open("rb") as file:
            digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        size = (folder / kind).stat().st_size
        (folder / kind).rename(folder / digest.replace(":", "-"))
        layers[kind] = {"mediaType": f"application/vnd.ollama.image.{kind}", "digest": digest, "size": size}
    layers["weights"]["mediaType"] = "application/vnd.ollama.image.model"
    manifest = {"schemaVersion": 2, "config": layers["config"], "layers": [layers["weights"]]}
    (folder / "manifest").write_text(json.dumps(manifest))
    return str(layers["weights"]["digest"])


@contextlib.contextmanager
def _registry(program: Path, folder: Path) -> Iterator[str]:
    """Run nginx as the registry, and say where."""
    port = free_port()
    configuration = folder / "nginx.conf"
    configuration.write_text(_REGISTRY.format(folder=folder, port=port))
    command = [str(program), "-p", str(folder), "-c", str(configuration)]
    with subprocess.Popen(command, env=os.environ | libraries(program), stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port, process)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


class _Run(msgspec.Struct, frozen=True):
    """How long it took, by the clock and by the processor."""

    seconds: float
    processor: float


def _run(program: str, url: str, target: Path) -> _Run:
    """Run a program that fetches, and remove what it has fetched."""
    command = [sys.executable, "-c", program, url, str(target)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    seconds, processor = map(float, told.split())
    return _Run(seconds, processor)
