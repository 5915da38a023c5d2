"""Model files that lie or carry code: refused by the reader, over HTTP and in the folder, and the server lives on."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.security.conftest import SCRIPT
from tests.serving import serving_script
from tests.store.encoders import GOLDEN, ROBERTA, lay_encoder
from tests.store.gguf_bytes import BERT, LLAMA, Tensor, gguf

HUGE: Final = (1 << 64) - 1
TOKENIZER: Final = GOLDEN / "unigram.json"
LIES: Final[dict[str, bytes]] = {
    "nothing": b"",
    "only a name": b"GGUF",
    "countless tensors": gguf(tensor_count=HUGE),
    "tensors whose sizes overflow": gguf(tensor_count=0x1D1D1D1D1D1D1D1E),
    "countless fields": gguf(field_count=HUGE),
    "an alignment of zero": gguf({**LLAMA, "general.alignment": 0}),
    "a tensor of no size": gguf(tensors=[Tensor("a", (0, 32))]),
    "a tensor larger than all memory": gguf(tensors=[Tensor("a", (1 << 62, 4))]),
    "a tensor behind the end": gguf(tensors=[Tensor("a", (32, 2), offset=1 << 50)]),
    "a tensor before the beginning": gguf(tensors=[Tensor("a", (32, 2), offset=HUGE - 31)]),
    "a tensor that is not there": gguf(tensors=[Tensor("a", (1 << 20, 8))])[:200_000],
    "a tensor of an unknown type": gguf(tensors=[Tensor("a", (32,), kind=0xFFFFFFF0)]),
    "an unknown version": gguf(version=0xFFFFFFFF),
    "a pickle": pickle.dumps({"weights": [1, 2, 3]}),
    "an archive": b"PK\x03\x04" + bytes(100),
}
ZEROS: Final[list[Mapping[str, Any]]] = [
    {**LLAMA, "llama.block_count": 0},
    {**LLAMA, "llama.attention.head_count": 0},
    {**LLAMA, "llama.attention.head_count_kv": 0},
    {**LLAMA, "llama.embedding_length": 0, "llama.context_length": 0},
    {**LLAMA, "llama.block_count": (1 << 32) - 1},
    {**LLAMA, "llama.attention.head_count": [0, 0]},
    {**LLAMA, "llama.context_length": "many", "llama.block_count": [], "llama.attention.head_count": -1},
    {**BERT, "bert.block_count": 0, "bert.attention.head_count": 0, "bert.pooling_type": 99},
    {"general.architecture": "llama"},
    {"general.architecture": "../../x"},
    {"general.architecture": ""},
    {},
]


class Harmful:
    """Whoever unpickles this runs a command."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def kept(http: httpx2.Client, data: bytes) -> str:
    """Send a content, and return its digest."""
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert http.post(f"/api/blobs/{digest}", content=data).is_success
    return digest


def made(http: httpx2.Client, files: dict[str, str], name: str = "hostile") -> httpx2.Response:
    return http.post("/api/create", json={"model": name, "files": files, "stream": False})


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_becomes_no_model(http: httpx2.Client, lie: str) -> None:
    answer = made(http, {"model.gguf": kept(http, LIES[lie])})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]
    assert http.post("/api/show", json={"model": "hostile"}).status_code == 404


@pytest.mark.parametrize("fields", ZEROS, ids=range(len(ZEROS)))
def test_a_field_of_zero_divides_nothing(http: httpx2.Client, fields: Mapping[str, Any]) -> None:
    """The header may be sound; every number of it that is counted with may be nought."""
    answer = made(http, {"model.gguf": kept(http, gguf(fields))})
    assert answer.status_code in {200, 400}, answer.text
    if answer.status_code == 200:
        for path, body in (("/api/show", {}), ("/api/chat", {"messages": [{"role": "user", "content": "x"}]})):
            told = http.post(path, json={"model": "hostile", "stream": False, **body})
            assert told.status_code in {200, 400}, told.text
        assert http.request("DELETE", "/api/delete", json={"model": "hostile"}).status_code == 200
    for path in ("/api/tags", "/api/ps", "/v1/models"):
        assert http.get(path).status_code == 200


def test_files_that_lie_and_lie_in_the_folder_hide_only_themselves(tmp_path: Path) -> None:
    for number, data in enumerate([*LIES.values(), *map(gguf, ZEROS)]):
        (tmp_path / f"file-{number}.gguf").write_bytes(data)
    (tmp_path / "sound.gguf").write_bytes(gguf())
    with serving_script(tmp_path / "home", SCRIPT, "--folders", str(tmp_path)) as served, served.http() as client:
        names = {model["name"] for model in client.get("/api/tags").json()["models"]}
        assert "sound:latest" in names
        for name in sorted(names):
            assert client.post("/api/show", json={"model": name}).status_code == 200
        assert not served.log_has("Traceback")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pkl", "model.gguf", "model.safetensors"])
def test_a_pickle_is_never_opened(http: httpx2.Client, name: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    answer = made(http, {name: kept(http, pickle.dumps(Harmful(mark))), "config.json": kept(http, b"{}")})
    assert answer.status_code == 400
    assert not mark.exists()


def test_code_beside_a_model_is_never_run(http: httpx2.Client, tmp_path: Path) -> None:
    """Settings may name Python files to be loaded; here they name nothing."""
    mark = tmp_path / "mark"
    code = f"import pathlib; pathlib.Path({str(mark)!r}).touch()".encode()
    mapped = {"AutoModel": "modeling.Evil", "AutoConfig": "modeling.Evil", "AutoTokenizer": ["modeling.Evil", None]}
    folder = tmp_path / "encoder"
    lay_encoder(folder, {**ROBERTA, "auto_map": mapped, "trust_remote_code": True}, tokenizer=TOKENIZER)
    files = {path.name: kept(http, path.read_bytes()) for path in folder.iterdir() if path.is_file()}
    answer = made(http, files, name="encoder")
    assert answer.status_code == 200, answer.text
    answer = made(http, {**files, "modeling.py": kept(http, code)}, name="with-code")
    assert answer.status_code in {200, 400}
    assert not mark.exists()


@pytest.mark.parametrize(
    "header",
    [
        {"a": {"dtype": "F32", "shape": [10**6, 10**6, 10**6], "data_offsets": [0, 4]}},
        {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 1 << 60]}},
        {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [-4, 0]}},
        {"a": {"dtype": "X", "shape": [1], "data_offsets": [0, 4]}},
        {"a": 7},
        [],
    ],
    ids=range(6),
)
def test_a_header_of_safetensors_that_lies_becomes_no_model(http: httpx2.Client, header: Any, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    lay_encoder(folder, ROBERTA, tokenizer=TOKENIZER)
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    text = json.dumps(header).encode()
    files["model.safetensors"] = len(text).to_bytes(8, "little") + text + bytes(4)
    answer = made(http, {name: kept(http, data) for name, data in files.items()})
    assert answer.status_code == 400, answer.text


def test_a_header_of_safetensors_longer_than_its_file_is_refused(http: httpx2.Client, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    lay_encoder(folder, ROBERTA, tokenizer=TOKENIZER)
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    files["model.safetensors"] = HUGE.to_bytes(8, "little") + b"{}"
    assert made(http, {name: kept(http, data) for name, data in files.items()}).status_code == 400
