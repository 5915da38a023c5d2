"""`diglot create`: a Modelfile made into a model, with a server and without one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from diglot.core.model import ModelRef
from diglot.store.local import LocalStore
from tests.cli.conftest import Diglot
from tests.serving import Served, serving_script
from tests.store.encoders import BERT, GOLDEN, lay_encoder
from tests.store.gguf_bytes import gguf

MODELFILE = '''FROM ./tiny.gguf
PARAMETER temperature 0.5
PARAMETER stop "<|end|>"
SYSTEM """Be brief.
Always."""
MESSAGE user hi
MESSAGE assistant Hi.
LICENSE MIT
'''


@pytest.fixture(params=["served", "alone"])
def url(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """The option that names a server, or none where none runs."""
    if request.param == "alone":
        yield ()
        return
    with serving_script(tmp_path / "server", {}, "--models", str(home / "models")) as served:
        assert isinstance(served, Served)
        yield ("--url", served.url)


@pytest.fixture
def modelfile(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(gguf())
    file = folder / "Modelfile"
    file.write_text(MODELFILE)
    return file


def test_all_that_a_modelfile_says_is_in_the_model(
    diglot: Diglot, home: Path, modelfile: Path, url: tuple[str, ...]
) -> None:
    outcome = diglot("create", "mine", "-f", str(modelfile), *url)
    assert (outcome.code, outcome.out) == (0, "mine is here\n"), outcome.err
    store = LocalStore(home / "models")
    model = store.resolve(ModelRef("mine"))
    assert model.defaults.parameters == {"temperature": 0.5, "stop": ["<|end|>"]}
    assert model.defaults.system == "Be brief.\nAlways."
    assert [each.content for each in model.defaults.messages] == ["hi", "Hi."]
    assert store.card(model.ref).licences == ("MIT",)
    modelfile.write_text("FROM mine\nSYSTEM Be long.\n")
    assert diglot("create", "other", "-f", str(modelfile), *url).code == 0
    other = store.resolve(ModelRef("other"))
    assert (other.defaults.system, other.weights) == ("Be long.", model.weights)
    assert other.defaults.parameters == model.defaults.parameters


def test_a_folder_of_safetensors_becomes_an_encoder(
    diglot: Diglot, home: Path, tmp_path: Path, url: tuple[str, ...]
) -> None:
    lay_encoder(tmp_path / "bert", BERT, tokenizer=GOLDEN / "uncased.json")
    (tmp_path / "Modelfile").write_text("FROM ./bert")
    outcome = diglot("create", "embedder", "-f", str(tmp_path / "Modelfile"), "-q", "f32", *url)
    assert outcome.code == 0, outcome.err
    model = LocalStore(home / "models").resolve(ModelRef("embedder"))
    assert model.capabilities.embedding
    assert model.details.quantization_level == "F32"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SYSTEM x", "line 1: there is no FROM"),
        ("FROM x\nPARAMETER warmth 1", "line 2: there is no parameter 'warmth'"),
        ("FROM ./none.gguf", "line 1: there is no file ./none.gguf"),
        ("FROM ./tiny.gguf\nFROM base", "FROM names one model, or files that are all there"),
        ("FROM .", "holds no"),
        ("FROM nobody-has-it", "model 'nobody-has-it' is not among the downloaded models"),
        ("FROM ./tiny.gguf\nADAPTER ./lora.gguf", "lora.gguf: No such file"),
        ("FROM ./tiny.gguf\nADAPTER ./tiny.gguf", "adapters.tiny.gguf: it holds no adapter, but a model"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(diglot: Diglot, modelfile: Path, text: str, error: str) -> None:
    (modelfile.parent / "notes.txt").write_text("x")
    modelfile.write_text(text)
    if text == "FROM .":
        (modelfile.parent / "tiny.gguf").unlink()
        error = "holds neither GGUF nor safetensors"
    outcome = diglot("create", "mine", "-f", str(modelfile))
    assert outcome.code == 1
    assert error in outcome.err


def test_a_file_that_is_not_there_is_named(diglot: Diglot, tmp_path: Path) -> None:
    outcome = diglot("create", "mine", "-f", str(tmp_path / "none"))
    assert outcome.code == 1
    assert "none: No such file" in outcome.err
