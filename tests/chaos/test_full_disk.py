"""A disk that is full: who needs it is told, who does not is served, nothing half-written stays, and all is well once there is room."""

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.chaos.talking import ALL, DOORS, RESPONSES, Door, heard, nothing_left, say, socket_to, streaming, whole
from tests.serving import Served, serving_script
from tests.store.arriving import WEIGHTS
from tests.store.registry import registry

pytestmark = pytest.mark.timeout(240)

SIZE = 96 << 20
ECHO = {"slots": 4, "window": 100_000, "replies": [{"echo": True}]}
DIGEST = f"sha256:{hashlib.sha256(WEIGHTS).hexdigest()}"
FULL = 507


class Disk:
    """A file system of its own, that can be filled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @contextmanager
    def full(self) -> Iterator[None]:
        """Fill it to the last byte for a while."""
        filler = self.place / "filler"
        with filler.open("wb", buffering=0) as file:
            piece = bytes(1 << 20)
            while piece:
                try:
                    file.write(piece)
                except OSError:
                    piece = piece[: len(piece) // 2]
        try:
            yield
        finally:
            filler.unlink()

    def files(self) -> dict[Path, int]:
        """What is on it of models, and how large."""
        found = (self.place / "models").rglob("[!.]*")  # But for the lock, which is empty.
        return {path: path.stat().st_size for path in found if path.is_file()}


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    place = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(place)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a file system of one's own cannot be had here")
    yield Disk(place)
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture(scope="module")
def served(disk: Disk) -> Iterator[Served]:
    """A server that keeps everything on that disk."""
    with serving_script(disk.place, ECHO) as made:
        for door in ALL:
            assert whole(made, door).status_code == 200
        yield made


def post(served: Served, path: str, **asked: Any) -> httpx2.Response:
    with served.http() as client:
        return client.post(path, json=asked | {"stream": False})


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.path)
def test_what_needs_no_disk_is_answered(served: Served, disk: Disk, door: Door) -> None:
    with nothing_left(served), disk.full():
        assert whole(served, door).status_code == 200
        with streaming(served, door) as stream:
            assert door.is_complete(stream.rest())
        assert post(served, "/v1/responses", input="Well?", store=False).status_code == 200


def test_a_response_that_cannot_be_stored_has_failed(served: Served, disk: Disk) -> None:
    before = whole(served, RESPONSES).json()
    with nothing_left(served), disk.full():
        answer = whole(served, RESPONSES, "word " * 3000)
        assert (answer.status_code, RESPONSES.fault(answer.text)) == (FULL, "no_space")
        with streaming(served, RESPONSES, "word " * 3000) as stream:
            assert RESPONSES.fault(stream.rest()) == "server_error"
        assert not RESPONSES.is_complete(stream.text)
        with socket_to(served) as connection:
            say(connection, "word " * 3000)
            failed = heard(connection, "response.failed")["response"]
        assert "the disk is too full" in failed["error"]["message"]
        assert [item["status"] for item in failed["output"]] == ["completed"]  # Nothing of it is lost to the client.
        with served.http() as client:
            assert client.get(f"/v1/responses/{before['id']}").json() == before
    after = whole(served, RESPONSES, "word " * 3000).json()
    with served.http() as client:
        assert client.get(f"/v1/responses/{after['id']}").json() == after


@pytest.mark.parametrize("length", ["told", "not told"])
def test_an_upload(served: Served, disk: Disk, length: str) -> None:
    before = disk.files()
    digest = f"sha256:{hashlib.sha256(length.encode() * 100_000).hexdigest()}"
    data = length.encode() * 100_000
    content = data if length == "told" else iter([data[:5000], data[5000:]])
    with nothing_left(served), served.http() as client:
        with disk.full():
            refused = client.post(f"/api/blobs/{digest}", content=content)
            assert refused.status_code == FULL
            assert "the disk is too full" in refused.json()["error"]
            assert disk.files() == before
        assert client.post(f"/api/blobs/{digest}", content=data).status_code == 201


def test_making_and_copying_a_model(served: Served, disk: Disk) -> None:
    with served.http() as client:
        assert client.post(f"/api/blobs/{DIGEST}", content=WEIGHTS).status_code in {200, 201}
    files = {"m.gguf": DIGEST}
    with nothing_left(served):
        with disk.full():
            before = disk.files()
            refused = post(served, "/api/create", model="made", files=files, license="Mine. " * 5000)
            assert refused.status_code == FULL
            assert "the disk is too full" in refused.json()["error"]
            assert disk.files() == before
            assert "made:latest" not in names(served)
        assert post(served, "/api/create", model="made", files=files, license="Mine. " * 5000).status_code == 200
        with disk.full():
            before = disk.files()
            refused = post(served, "/api/copy", source="made", destination="second")
            assert refused.status_code == FULL
            assert disk.files() == before
            assert "second:latest" not in names(served)
        assert post(served, "/api/copy", source="made", destination="second").status_code == 200
    assert {"made:latest", "second:latest"} <= names(served)


def test_a_model_can_be_removed_to_make_room(served: Served, disk: Disk) -> None:
    with nothing_left(served), served.http() as client:
        assert client.post(f"/api/blobs/{DIGEST}", content=WEIGHTS).status_code in {200, 201}
        assert post(served, "/api/create", model="large", files={"m.gguf": DIGEST}).status_code == 200
        with disk.full():
            assert client.request("DELETE", "/api/delete", json={"model": "large"}).status_code == 200
            assert "large:latest" not in names(served)


def test_a_pull(served: Served, disk: Disk) -> None:
    weights = WEIGHTS + b"\0" * 4096
    with registry() as offered:
        offered.put("library/pulled:latest", ("model", weights))
        asked = {"model": f"http://{offered.host}/library/pulled", "insecure": True}
        with nothing_left(served):
            with disk.full():
                refused = post(served, "/api/pull", **asked)
                assert refused.status_code == FULL, refused.text
                assert "the disk is too full" in refused.json()["error"]
            done = post(served, "/api/pull", **asked)
            assert done.json() == {"status": "success"}
    assert any(name.endswith("library/pulled:latest") for name in names(served))


def names(served: Served) -> set[str]:
    """Return the models that are listed."""
    with served.http() as client:
        return {each["name"] for each in client.get("/api/tags").json()["models"]}
