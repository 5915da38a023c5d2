"""Files that are damaged, missing or cannot be written: what is broken says so, and the rest is served."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from diglot.core.model import Model, ModelRef
from diglot.store.local import LocalStore
from tests.chaos.talking import DOORS, OLLAMA, OPENAI, Door, whole
from tests.serving import CHAT, EMBEDDING, ROOT, Served, serving, serving_script, starter_folder

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

BROKEN = ("cut", "empty", "gone", "scribbled")
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
from diglot.cli.main import main
main()
"""


def added(store: LocalStore, of: str, name: str) -> Model:
    """Put a starter model under another name into the store, with weights of its own."""
    weights = LocalStore(starter_folder()).resolve(ModelRef.parse(of)).weights
    return store.add_file(weights, ModelRef.parse(name))


def manifest_of(store: LocalStore, name: str) -> Path:
    """Return the manifest of a model."""
    model, _, tag = name.partition(":")
    (path,) = store.root.glob(f"manifests/*/*/{model}/{tag or 'latest'}")
    return path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a model that is well, one whose weights are damaged, and some whose manifests are."""
    home = tmp_path_factory.mktemp("broken")
    store = LocalStore(home / "models")
    weights = added(store, EMBEDDING, "cutweights").weights
    for name in BROKEN:
        added(store, CHAT, name)
    added(store, CHAT, CHAT)
    with weights.open("r+b") as file:
        file.truncate(1 << 20)
    manifest_of(store, "cut").write_bytes(manifest_of(store, "cut").read_bytes()[:-9])
    manifest_of(store, "empty").write_bytes(b"")
    manifest_of(store, "scribbled").write_bytes(b"\x00\xff" * 100)
    text = manifest_of(store, "gone").read_text()
    digest = next(part for part in text.split('"') if part.startswith("sha256:") and part.endswith("db53"))
    manifest_of(store, "gone").write_text(text.replace(digest, "sha256:" + "0" * 64))
    with serving(home) as made:
        yield made


def test_what_is_well_is_listed_and_answers(served: Served) -> None:
    with served.http() as client:
        tags = [each["name"] for each in client.get("/api/tags").json()["models"]]
        models = [each["id"] for each in client.get("/v1/models").json()["data"]]
    assert tags == models == [CHAT]
    for door in DOORS:
        assert whole(served, door, model=CHAT, most=1).status_code == 200
    assert whole(served, OPENAI, most=1).status_code == 200


@pytest.mark.parametrize("name", [*BROKEN, "cutweights"])
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.path)
def test_what_is_broken_says_what_is_wrong_with_it(served: Served, door: Door, name: str) -> None:
    answer = whole(served, door, model=name)
    assert answer.status_code == 500
    assert name in answer.text
    assert "cannot be used" in answer.text
    assert str(served.home) not in answer.text
    assert door.fault(answer.text)


def test_a_model_that_breaks_while_the_server_runs_breaks_alone(served: Served) -> None:
    store = LocalStore(served.home / "models")
    added(store, CHAT, "later")
    assert whole(served, OLLAMA, model="later", most=1).status_code == 200
    manifest_of(store, "later").write_text("{")
    assert whole(served, OLLAMA, model="later", most=1).status_code == 500
    assert whole(served, OLLAMA, model=CHAT, most=1).status_code == 200
    assert not served.log_has("Traceback")


def test_a_port_that_is_taken_is_told_with_who_has_it(tmp_path: Path) -> None:
    with serving_script(tmp_path / "one", {}) as first:
        port = first.url.rpartition(":")[2]
        with serving(tmp_path / "two", "--engine", "scripted", "--port", port, wait=False) as second:
            code, log = second.ended()
    assert code == 1
    assert log == f"Error: Diglot already runs at {first.url}. Take another port with: diglot serve --port N\n"


@pytest.mark.parametrize("where", ["--home", "--models"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("")
    with serving(tmp_path, where, str(tmp_path / "file" / "folder"), wait=False) as served:
        code, log = served.ended()
    assert code in {1, 2}
    assert str(tmp_path / "file") in log
    assert "Traceback" not in log


def test_a_disk_that_is_full_is_told_and_nothing_half_written_stays(tmp_path: Path) -> None:
    weights = LocalStore(starter_folder()).resolve(ModelRef.parse(CHAT)).weights
    command = [sys.executable, "-c", LIMITED, "pull", str(weights), "--name", "big", "--home", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) == 0
    assert LocalStore(tmp_path / "models").list() == ()
