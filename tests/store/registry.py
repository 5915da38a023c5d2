"""A registry on loopback: manifests, contents, uploads, tokens, and every way in which one may misbehave.

It runs in threads, so that a process of its own can be pointed at it as well. `seen` holds each request in
order. What a test wants to go wrong it writes into the attributes before it asks.
"""

# ruff: noqa: D102  http.server names its methods and says what they do

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

_BLOB = re.compile(r"/v2/(?P<name>[^/]+/[^/]+)/blobs/(?P<digest>sha256:[0-9a-f]{64})")
_MANIFEST = re.compile(r"/v2/(?P<name>[^/]+/[^/]+)/manifests/(?P<tag>[^/]+)")
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class Seen(msgspec.Struct, frozen=True):
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]


class Registry:
    """One server. `url` is where it is, `host` the same without a scheme."""

    def __init__(self) -> None:
        self.manifests: dict[str, bytes] = {}
        self.blobs: dict[str, bytes] = {}
        self.seen: list[Seen] = []
        self.url = ""
        self.realm = ""  # Where tokens are to be had; asked for if `token` is set.
        self.token = ""
        self.cdn: Registry | None = None  # Contents are there.
        self.parts = True  # Whether it gives parts.
        self.cuts: dict[str, list[int]] = {}  # For each content: after how many bytes the next answers break off.
        self.wrong: dict[str, bytes] = {}  # What is sent instead of a content.
        self.surplus = b""  # What is sent behind what was declared.
        self.statuses: list[int] = []  # What the next requests for contents are answered with.
        self.pace: threading.Semaphore | None = None  # One permit for each piece of a content.
        self.piece = 1 << 16
        self.uploads: dict[str, bytearray] = {}
        self.direct = False  # Whether parts of uploads are to be brought to the CDN.
        self.mounts = False
        self.lock = threading.Lock()

    @property
    def host(self) -> str:
        """Where it is, as a model's name says it."""
        return urlsplit(self.url).netloc

    def put(self, name: str, *layers: tuple[str, bytes], config: dict[str, Any] | None = None) -> bytes:
        """Offer a model `namespace/model:tag` of these layers; returns its manifest."""
        head = json.dumps({"model_format": "gguf", **(config or {})}).encode()
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
            "config": self.layer("application/vnd.docker.container.image.v1+json", head),
            "layers": [self.layer(f"application/vnd.ollama.image.{kind}", data) for kind, data in layers],
        }
        data = json.dumps(manifest, indent=1).encode()  # Not as we would write it.
        self.manifests[name] = data
        return data

    def layer(self, kind: str, data: bytes) -> dict[str, Any]:
        """Offer a content; returns what a manifest says of it."""
        digest = digest_of(data)
        self.blobs[digest] = data
        return {"mediaType": kind, "digest": digest, "size": len(data)}

    def asked(self, part: str, method: str = "GET") -> list[Seen]:
        """Return the requests whose path holds this."""
        return [each for each in self.seen if part in each.path and each.method == method]

    def counted(self) -> Counter[str]:
        """Return how often each content was asked for."""
        return Counter(each.path.rpartition("/")[2] for each in self.seen if "/blobs/" in each.path)


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@contextmanager
def registry() -> Iterator[Registry]:
    """Run a registry."""
    with served(Registry(), Answers) as offered:
        yield offered


R = TypeVar("R", bound=Registry)


@contextmanager
def served(offered: R, answers: type[Answers]) -> Iterator[R]:
    """Run a server that offers this."""
    server = _Server(("127.0.0.1", 0), type("Bound", (answers,), {"registry": offered}))
    offered.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield offered
    finally:
        if offered.pace is not None:
            offered.pace.release(1 << 20)
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients leave when they like."""


class Answers(BaseHTTPRequestHandler):
    """Answers as a registry does, and as badly as it is told to."""

    registry: Any
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name there
        """Say nothing."""

    def note(self) -> None:
        """Remember the request."""
        with self.registry.lock:
            seen = Seen(self.command, self.path, {name.lower(): value for name, value in self.headers.items()})
            self.registry.seen.append(seen)

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _met(self) -> bool:
        """Note a request, and answer it if it lacks the token."""
        there = self.registry
        self.note()
        if there.token and self.headers.get("Authorization") != f"Bearer {there.token}":
            scope = "repository:library/x:pull repository:library/x:push"
            realm = there.realm or f"{there.url}/token"
            wanted = f'Bearer realm="{realm}",service="it",scope="{scope}"'
            self.answer(401, b'{"errors":[]}', WWW_Authenticate=wanted)
            return True
        return False

    def do_GET(self) -> None:
        there = self.registry
        if self.path.startswith("/token"):
            self._give_token()
        elif self._met():
            return
        elif found := _MANIFEST.fullmatch(self.path):
            data = there.manifests.get(f"{found['name']}:{found['tag']}")
            self.answer(404, b'{"errors":[]}') if data is None else self.answer(200, data)
        elif found := _BLOB.fullmatch(self.path):
            self._give_blob(found["digest"])
        else:
            self.answer(404)

    def do_HEAD(self) -> None:
        if self._met():
            return
        found = _BLOB.fullmatch(self.path)
        data = self.registry.blobs.get(found["digest"]) if found else None
        self.answer(404) if data is None else self.answer(200, b"", Content_Length=str(len(data)))

    def _give_token(self) -> None:
        """Give the token to whoever signs."""
        there = self.registry
        self.note()
        public, _, signature = self.headers.get("Authorization", "").partition(":")
        empty = base64.b64encode(hashlib.sha256(b"").hexdigest().encode()).decode()
        try:
            key: Any = load_ssh_public_key(f"ssh-ed25519 {public}".encode())
            key.verify(base64.b64decode(signature), f"GET,{there.url}{self.path},{empty}".encode())
        except Exception:  # noqa: BLE001  whatever is wrong with it
            self.answer(401)
        else:
            self.answer(200, json.dumps({"token": there.token}).encode())

    def _give_blob(self, digest: str) -> None:
        there = self.registry
        with there.lock:
            status = there.statuses.pop(0) if there.statuses else 0
        if status:
            self.answer(status)
            return
        if there.cdn is not None:
            self.answer(307, Location=f"{there.cdn.url}{self.path}")
            return
        data = there.wrong.get(digest, there.blobs.get(digest))
        if data is None:
            self.answer(404)
            return
        self.give(data, digest)

    def give(self, data: bytes, digest: str) -> None:
        """Send a content, or the part of it that was asked for, with whatever is to go wrong with it."""
        there = self.registry
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        if wanted and there.parts:
            start, end = int(wanted[1]), min(int(wanted[2]) + 1, len(data))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
            data = data[start:end]
        else:
            self.send_response(200)
        with there.lock:
            cuts = there.cuts.get(digest)
            cut = cuts.pop(0) if cuts else None
        self._send_body(data, cut)

    def _send_body(self, data: bytes, cut: int | None) -> None:
        there = self.registry
        if there.surplus:  # Of no declared length, so that the client reads on.
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        data += there.surplus
        try:
            for start in range(0, len(data), there.piece):
                if there.pace is not None:
                    there.pace.acquire()
                if cut is not None and start + there.piece > cut:
                    self.wfile.write(data[start:cut])
                    self.close_connection = True
                    return
                self.wfile.write(data[start : start + there.piece])
        except OSError:
            self.close_connection = True  # The client has left.

    def do_POST(self) -> None:
        if self._met():
            return
        there = self.registry
        query = parse_qs(urlsplit(self.path).query)
        if there.mounts and "mount" in query:
            there.blobs[query["mount"][0]] = b"mounted"
            self.answer(201)
            return
        with there.lock:
            name = f"upload-{len(there.uploads)}"
            there.uploads[name] = bytearray()
        self.answer(202, Location=f"/uploads/{name}?state=0")

    def do_PATCH(self) -> None:
        if self._met():
            return
        there = self.registry
        body = self.rfile.read(int(self.headers["Content-Length"]))
        name = urlsplit(self.path).path.rpartition("/")[2]
        if there.statuses:
            self.answer(there.statuses.pop(0))
            return
        state = f"/uploads/{name}?state={len(there.uploads[name])}"
        if there.direct and there.cdn is not None:
            there.cdn.uploads.setdefault(name, there.uploads[name])
            self.answer(307, Location=f"{there.cdn.url}/direct/{name}", Docker_Upload_Location=state)
            return
        there.uploads[name] += body
        self.answer(202, Location=state)

    def do_PUT(self) -> None:
        if self._met():
            return
        there = self.registry
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if found := _MANIFEST.fullmatch(self.path):
            there.manifests[f"{found['name']}:{found['tag']}"] = body
            self.answer(201)
            return
        where = urlsplit(self.path)
        name = where.path.rpartition("/")[2]
        if where.path.startswith("/direct/"):
            there.uploads[name] += body
            self.answer(200)
            return
        data = bytes(there.uploads[name]) + body
        wanted = parse_qs(where.query)["digest"][0]
        if digest_of(data) != wanted:
            self.answer(400, b'{"errors":[{"message":"digest invalid"}]}')
            return
        there.blobs[wanted] = data
        self.answer(201)
