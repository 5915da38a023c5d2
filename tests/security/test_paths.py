"""Names, digests and files that are really paths: nothing outside of the store is read, told of, written or removed."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.serving import Served
from tests.store.registry import Registry, registry

PATHS: Final = [
    "../../../../../../etc/passwd",
    "..\\..\\..\\windows\\win.ini",
    "/etc/passwd",
    "file:///etc/passwd",
    "a/../../../../etc/passwd",
    "library/../../x",
    "..",
    "../x:latest",
    "x:../../../etc/passwd",
    "host/../../etc/passwd:x",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "x\0y",
    "x\ny",
    "/dev/random",
    "~/.ssh/id_rsa",
    "x" * 5000,
]
DIGESTS: Final = [
    "sha256:../../../../etc/passwd",
    "sha256-../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/etc/passwd",
    "sha256:" + "0" * 63,
    "sha256:" + "0" * 65,
    "sha256:" + "g" * 64,
    "sha256:" + "0" * 64 + "%0a",
    "sha256:" + "0" * 64 + "%00",
    "sha256:" + "0" * 64 + "/../x",
    "sha512:" + "0" * 128,
    "manifests",
]
REQUESTS: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("POST", "/api/show", {"model": "*"}),
    ("POST", "/api/chat", {"model": "*", "messages": [{"role": "user", "content": "x"}]}),
    ("POST", "/api/generate", {"model": "*", "prompt": "x"}),
    ("POST", "/api/embed", {"model": "*", "input": "x"}),
    ("POST", "/api/pull", {"model": "*", "stream": False, "insecure": True}),
    ("POST", "/api/push", {"model": "*", "stream": False, "insecure": True}),
    ("POST", "/api/copy", {"source": "*", "destination": "y"}),
    ("POST", "/api/copy", {"source": "scripted", "destination": "*"}),
    ("DELETE", "/api/delete", {"model": "*"}),
    ("POST", "/api/create", {"model": "*", "from": "scripted", "stream": False}),
    ("POST", "/api/create", {"model": "y", "from": "*", "stream": False}),
    ("POST", "/v1/chat/completions", {"model": "*", "messages": [{"role": "user", "content": "x"}]}),
    ("POST", "/v1/completions", {"model": "*", "prompt": "x"}),
    ("POST", "/v1/embeddings", {"model": "*", "input": "x"}),
    ("POST", "/v1/responses", {"model": "*", "input": "x"}),
    ("POST", "/v1/rerank", {"model": "*", "query": "x", "documents": ["x"]}),
]


@pytest.fixture
def around(served: Served) -> Iterator[None]:
    """What lies around the home folder is the same before and after."""
    canary = served.home.parent / "canary"
    canary.write_text("still here")
    before = listed(served.home.parent)
    yield
    assert listed(served.home.parent) == before
    assert canary.read_text() == "still here"


def listed(folder: Path) -> set[Path]:
    """Return all files of a folder, but for those that the server writes for itself."""
    return {path for path in folder.rglob("*") if path.is_file() and not {"state", "blobs", ".lock"} & set(path.parts)}


def with_name(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {field: name if value == "*" else value for field, value in body.items()}


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS, ids=lambda part: part if isinstance(part, str) else "")
def test_a_name_is_never_a_path(
    http: httpx2.Client, around: None, method: str, path: str, body: dict[str, Any]
) -> None:
    for name in PATHS:
        answer = http.request(method, path, json=with_name(body, name))
        assert answer.status_code in {400, 404}, (name, answer.text)
        assert "root:" not in answer.text


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS, ids=lambda part: part if isinstance(part, str) else "")
def test_an_answer_does_not_tell_whether_a_file_is_there(
    http: httpx2.Client, method: str, path: str, body: dict[str, Any]
) -> None:
    there, not_there = ("/etc/passwd", "/etc/paswsd"), ("../../../etc/hosts", "../../../etc/hsots")
    for real, unreal in (there, not_there):
        answers = [http.request(method, path, json=with_name(body, name)) for name in (real, unreal)]
        assert answers[0].status_code == answers[1].status_code
        assert answers[0].text.replace(real, unreal) == answers[1].text


@pytest.mark.parametrize("name", PATHS[:-5])
def test_a_name_in_a_path_is_never_a_path_either(http: httpx2.Client, name: str) -> None:
    for prefix in ("/v1/models/", "/v1/responses/"):
        answer = http.get("/", extensions={"target": (prefix + name).encode()})
        assert answer.status_code in {400, 404} or answer.text == "Ollama is running"
        assert "root:" not in answer.text


@pytest.mark.parametrize("digest", DIGESTS)
@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_a_digest_is_never_a_path(http: httpx2.Client, around: None, method: str, digest: str) -> None:
    target = f"/api/blobs/{digest}".encode()
    assert http.request(method, "/", content=b"x", extensions={"target": target}).status_code in {400, 404, 405}


@pytest.mark.parametrize("key", ["../../x.gguf", "/etc/x.gguf", "a/../../x.safetensors", "..", "x\0.gguf", ""])
def test_the_name_of_a_file_to_make_a_model_of_is_never_a_path(http: httpx2.Client, around: None, key: str) -> None:
    data = b"GGUF" + bytes(40)
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert http.post(f"/api/blobs/{digest}", content=data).is_success
    for field in ("files", "adapters"):
        body = {"model": "made", field: {key: digest}, "stream": False}
        assert http.post("/api/create", json=body).status_code == 400
    for other in ("/etc/passwd", "../../etc/passwd", "sha256:../../../etc/passwd"):
        body = {"model": "made", "files": {"x.gguf": other}, "stream": False}
        assert http.post("/api/create", json=body).status_code == 400


def test_an_archive_is_no_model_and_is_not_unpacked(http: httpx2.Client, around: None) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("../../escaped", "x")
        archive.writestr("model.gguf", b"GGUF" + bytes(40))
    digest = f"sha256:{hashlib.sha256(made.getvalue()).hexdigest()}"
    assert http.post(f"/api/blobs/{digest}", content=made.getvalue()).is_success
    for name in ("model.zip", "model.gguf", "model.safetensors", "model.tar.gz"):
        body = {"model": "made", "files": {name: digest}, "stream": False}
        assert http.post("/api/create", json=body).status_code == 400


@pytest.fixture(scope="module")
def hostile() -> Iterator[Registry]:
    with registry() as offered:
        yield offered


@pytest.mark.parametrize(
    "digest", ["sha256:../../../../escaped", "../../../../escaped", "sha256:" + "A/" * 32, 7, None]
)
@pytest.mark.parametrize("place", ["config", "layers"])
def test_a_registry_cannot_name_a_path(
    http: httpx2.Client, around: None, hostile: Registry, digest: Any, place: str
) -> None:
    sound = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + "0" * 64, "size": 1}
    manifest = {"schemaVersion": 2, "config": sound, "layers": [sound]}
    manifest[place] = {**sound, "digest": digest} if place == "config" else [{**sound, "digest": digest}]
    hostile.manifests["library/hostile:1"] = json.dumps(manifest).encode()
    body = {"model": f"{hostile.host}/library/hostile:1", "insecure": True, "stream": False}
    answer = http.post("/api/pull", json=body)
    assert answer.status_code >= 400
    assert "digest" in answer.text or "manifest" in answer.text
