"""A shelf of a thousand models: how long it takes to list them, and to show one.

The store is made on the fly, in its layout and without the store's own code, with contents of its own for each model.
The first start reads a header of every file; what is derived of it is kept, so that later ones read none.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.report import Line
from bench.sides import served
from bench.weights import weights

MODELS = 1000
_VOCABULARY = 32_000


def shelf(scale: float) -> Iterator[Line]:
    """Yield the lines. `scale` is 1 for a full run."""
    rounds = max(5, round(25 * scale))
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        _fill(home / "models")
        flags = ("--no-starter", "--no-read-ollama")
        with served(home, *flags) as server:
            first = server.ready
        with served(home, *flags) as server:
            wire = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
            _took(wire, "GET", "/api/tags")
            lists = tuple(_took(wire, "GET", "/api/tags") for _ in range(rounds))
            shown = tuple(
                _took(wire, "POST", "/api/show", json.dumps({"model": _name(number * 37 % MODELS)}))
                for number in range(rounds)
            )
            wire.close()
            yield Line(f"start to healthy, {MODELS:,} models that it has never seen", (first,), "{:.2f}", unit="s")
            yield Line(f"start to healthy, {MODELS:,} models that it knows", (server.ready,), "{:.2f}", unit="s")
            yield Line(f"list of {MODELS:,} models, /api/tags", lists, "{:.1f}", unit="ms")
            yield Line(f"one of {MODELS:,} models, /api/show", shown, "{:.1f}", unit="ms")
            yield Line("server process, resident, after that", (server.resident / 1e6,), "{:.0f}", unit="MB")


def _name(number: int) -> str:
    return f"model{number}:latest"


def _fill(models: Path) -> None:
    """Lay the store out."""
    config = _kept(models, b'{"model_format":"gguf"}')
    head = weights(64, name="0000", vocabulary=_VOCABULARY)
    for number in range(MODELS):
        layer = _kept(models, head.replace(b"0000", b"%04d" % number, 1) + bytes(64))
        manifest = {
            "schemaVersion": 2,
            "config": {"mediaType": "application/vnd.docker.container.image.v1+json", **config},
            "layers": [{"mediaType": "application/vnd.ollama.image.model", **layer}],
        }
        path = models / "manifests/registry.ollama.ai/library" / f"model{number}" / "latest"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(manifest))


def _kept(models: Path, content: bytes) -> dict[str, object]:
    """Write a content, and return what a manifest says of it."""
    digest = hashlib.sha256(content).hexdigest()
    path = models / "blobs" / f"sha256-{digest}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return {"digest": f"sha256:{digest}", "size": len(content)}


def _took(wire: http.client.HTTPConnection, method: str, path: str, body: str | None = None) -> float:
    """Return the milliseconds that an answer takes."""
    begun = time.perf_counter()
    wire.request(method, path, body)
    reply = wire.getresponse()
    said = json.loads(reply.read())
    took = (time.perf_counter() - begun) * 1000
    if reply.status != 200 or len(said.get("models", ())) not in {0, MODELS}:
        raise RuntimeError(f"{path} answers {reply.status}: {str(said)[:300]}")
    return took
