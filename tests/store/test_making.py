"""Making models: of others, of files, of adapters; what is set, what is kept, what is refused."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from diglot.core.digest import Digest
from diglot.core.errors import Cancelled, InvalidField, ModelBroken, ModelForeign, ModelNotFound, UnsupportedField
from diglot.core.events import Step
from diglot.core.model import ModelCard, ModelRef
from diglot.core.recipe import Example, Recipe
from diglot.core.request import LoadOptions, Sampling
from diglot.store.local import LocalStore
from diglot.store.making import make
from tests.store.encoders import BERT as SMALL_BERT
from tests.store.encoders import GOLDEN, lay_encoder
from tests.store.gguf_bytes import LLAMA, gguf
from tests.store.on_disk import files, manifest_of, rewrite

BASE: Final = ModelRef("base")
MINE: Final = ModelRef("mine")
LORA: Final = {"general.architecture": "llama", "general.type": "adapter", "adapter.type": "lora"}
MMPROJ: Final = {"general.architecture": "clip", "general.type": "mmproj"}
Made = Callable[[Recipe], list[Step]]


@pytest.fixture
def made(store: LocalStore) -> Made:
    """What makes a model of a recipe, and says which steps it took."""

    def follow(recipe: Recipe) -> list[Step]:
        steps: list[Step] = []
        base = store.card(ModelRef.parse(recipe.base)) if recipe.base else None
        make(store, MINE, recipe, base=base, tell=steps.append)
        return steps

    return follow


def sent(store: LocalStore, data: bytes) -> Digest:
    """Send a content, as a client does."""
    digest = Digest(hashlib.sha256(data).hexdigest())
    intake = store.intake(digest)
    intake.write(data)
    intake.settle()
    return digest


def of_files(store: LocalStore, **contents: bytes) -> Recipe:
    return Recipe(files={name: sent(store, data) for name, data in contents.items()})


def kinds(store: LocalStore) -> list[str]:
    manifest = json.loads(manifest_of(store, MINE).read_bytes())
    return [layer["mediaType"].rpartition(".")[2] for layer in manifest["layers"]]


def test_a_model_of_a_file_says_what_its_header_says(store: LocalStore, made: Made) -> None:
    steps = made(of_files(store, weights=gguf()))
    assert [step.stage for step in steps] == ["reuse", "make", "write", "done"]
    model = store.resolve(MINE)
    assert model.details.family == "llama"
    assert model.anatomy.context_length == LLAMA["llama.context_length"]
    assert model.defaults.parameters == {}


def test_what_is_set_is_in_force_and_what_is_not_comes_with_its_origin(
    store: LocalStore, made: Made, weights: Path
) -> None:
    store.add_file(weights, BASE, licences=["MIT"])
    first = Recipe(
        base="base",
        system="Be brief.",
        template="{{ .Prompt }}",
        parameters={"temperature": 0.5, "stop": ["a", "b"], "num_ctx": 512},
        messages=(Example("user", "hi"), Example("assistant", "Hi.")),
    )
    made(first)
    store.copy(MINE, BASE)
    made(Recipe(base="base", system="Be long.", parameters={"seed": 3, "num_ctx": 256}, licences=("MIT", "Mine")))
    model = store.resolve(MINE)
    assert model.defaults.system == "Be long."
    assert model.defaults.template == "{{ .Prompt }}"
    assert model.defaults.messages == first.messages
    assert model.defaults.parameters == {"temperature": 0.5, "stop": ["a", "b"], "num_ctx": 256, "seed": 3}
    assert model.defaults.sampling == Sampling(temperature=0.5, stop=("a", "b"), seed=3)
    assert model.defaults.load == LoadOptions(window=256)
    assert model.details.parent_model == "base:latest"
    assert store.card(MINE).licences == ("MIT", "Mine")
    assert kinds(store) == ["model", "template", "license", "license", "system", "params", "messages"]


def test_contents_that_are_here_are_not_written_again(store: LocalStore, made: Made, weights: Path) -> None:
    store.add_file(weights, BASE)
    before = files(store, "blobs")
    steps = made(Recipe(base="base", system="Be brief."))
    assert [step.stage for step in steps] == ["reuse", "make", "make", "write", "done"]
    assert len(files(store, "blobs") - before) == 2
    again = made(Recipe(base="base", system="Be brief."))
    assert {step.stage for step in again} == {"reuse", "write", "done"}


def test_contents_of_another_store_are_copied_and_it_is_left_as_it_was(
    store: LocalStore, tmp_path: Path, weights: Path
) -> None:
    other = LocalStore(tmp_path / "other", facts=tmp_path / "facts")
    other.add_file(weights, BASE)
    before = files(other)
    steps: list[Step] = []
    make(store, MINE, Recipe(base="base", system="Hi."), base=other.card(BASE), tell=steps.append)
    assert steps[0].stage == "receive"
    assert (steps[0].completed, steps[0].total) == (weights.stat().st_size,) * 2
    assert files(other) == before
    other.remove(BASE)
    assert store.resolve(MINE).defaults.system == "Hi."


def test_adapters_and_projectors_are_parts_of_the_model(store: LocalStore, made: Made, weights: Path) -> None:
    store.add_file(weights, BASE)
    lora, projector = gguf(LORA), gguf(MMPROJ)
    made(Recipe(base="base", adapters={"lora.gguf": sent(store, lora)}))
    model = store.resolve(MINE)
    assert [path.read_bytes() for path in model.adapters] == [lora]
    made(of_files(store, weights=weights.read_bytes(), mmproj=projector, lora=lora))
    model = store.resolve(MINE)
    assert model.projector is not None
    assert model.projector.read_bytes() == projector
    assert model.capabilities.vision
    assert len(model.files) == 3


def test_words_for_other_servers_are_kept_in_the_config(store: LocalStore, made: Made) -> None:
    recipe = of_files(store, weights=gguf())
    made(Recipe(files=recipe.files, marks={"renderer": "harmony"}))
    manifest = json.loads(manifest_of(store, MINE).read_bytes())
    config = json.loads(store.blob(Digest.parse(manifest["config"]["digest"])).read_bytes())
    assert config["renderer"] == "harmony"
    assert config["model_format"] == "gguf"


def test_an_encoder_of_safetensors_is_converted(store: LocalStore, made: Made, tmp_path: Path) -> None:
    folder = lay_encoder(tmp_path / "bert", SMALL_BERT, tokenizer=GOLDEN / "uncased.json")
    contents = {str(path.relative_to(folder)): sent(store, path.read_bytes()) for path in folder.rglob("*.*")}
    steps = made(Recipe(files=contents, quantization="F32"))
    assert steps[0].stage == "convert"
    model = store.resolve(MINE)
    assert model.capabilities.embedding
    assert model.details.quantization_level == "F32"


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        (lambda _: Recipe(files={"a": Digest("ab" * 32)}), "files.a: there is no content sha256:abab"),
        (lambda s: of_files(s, a=b"no gguf"), "files.a: "),
        (lambda s: of_files(s, a=gguf(LORA)), "files: none of them holds weights"),
        (lambda s: of_files(s, a=gguf(), b=gguf({**LLAMA, "general.name": "b"})), "files: 2 of them hold weights"),
        (
            lambda s: of_files(s, a=gguf(), b=gguf(MMPROJ), c=gguf({**MMPROJ, "x": 1})),
            "files: 2 of them are projectors",
        ),
        (
            lambda s: Recipe(files=of_files(s, a=gguf()).files, adapters={"b": sent(s, gguf({**LLAMA, "b": 1}))}),
            "adapters.b: it holds no adapter, but a model",
        ),
        (
            lambda s: Recipe(files=of_files(s, a=gguf()).files, adapters={"b.safetensors": sent(s, b"x")}),
            "adapters.b.safetensors: adapters are taken as GGUF",
        ),
        (lambda s: Recipe(files={"../a.safetensors": sent(s, b"x")}), "files.../a.safetensors: its name is no path"),
        (lambda s: Recipe(files={"/a.safetensors": sent(s, b"x")}), "files./a.safetensors: its name is no path"),
        (lambda s: Recipe(files={"a.safetensors": sent(s, b"x")}), "files: config.json is missing"),
        (lambda s: Recipe(files={"a.safetensors": sent(s, b"x")}, quantization="Q4_K_M"), "f32, f16, q8_0, not Q4_K_M"),
        (
            lambda s: Recipe(files=of_files(s, a=gguf()).files, quantization="q4_K_M"),
            "quantize: weights in GGUF are kept",
        ),
        (lambda s: Recipe(files=of_files(s, a=gguf()).files, parameters={"top_k": "x"}), "parameters: "),
    ],
)
def test_what_cannot_be_made_is_refused_with_the_field(store: LocalStore, made: Made, recipe: Any, reason: str) -> None:
    with pytest.raises((InvalidField, UnsupportedField), match=re.escape(reason)):
        made(recipe(store))
    with pytest.raises(ModelNotFound):
        store.resolve(MINE)


def test_a_model_that_has_the_element_type_already_is_made(store: LocalStore, made: Made) -> None:
    made(Recipe(files=of_files(store, a=gguf()).files, quantization="f16"))
    assert store.resolve(MINE).details.quantization_level == "F16"


def test_a_base_without_files_here_is_refused(store: LocalStore, made: Made, weights: Path) -> None:
    model = store.add_file(weights, BASE)
    model.weights.unlink()
    with pytest.raises(ModelForeign):
        make(store, MINE, Recipe(base="base"), base=ModelCard(model=model, info={}, tensors=()), tell=lambda _: None)


def test_a_base_that_is_removed_meanwhile_leaves_a_whole_store(store: LocalStore, weights: Path) -> None:
    store.add_file(weights, BASE)
    base = store.card(BASE)

    def tell(step: Step) -> None:
        if step.stage == "write":
            store.remove(BASE)

    with pytest.raises(ModelBroken, match="removed while it was made"):
        make(store, MINE, Recipe(base="base", system="Hi."), base=base, tell=tell)
    assert store.list() == ()
    assert files(store, "blobs") == set()


@pytest.mark.parametrize("stage", ["receive", "make", "write"])
def test_whoever_leaves_in_the_middle_leaves_nothing_new(
    store: LocalStore, tmp_path: Path, weights: Path, stage: str
) -> None:
    other = LocalStore(tmp_path / "other")
    other.add_file(weights, BASE)

    def tell(step: Step) -> None:
        if step.stage == stage:
            raise Cancelled

    with pytest.raises(Cancelled):
        make(store, MINE, Recipe(base="base", system="Hi."), base=other.card(BASE), tell=tell)
    assert store.list() == ()
    assert files(store, "blobs") == set()


def test_a_name_stands_for_the_old_model_until_the_new_one_is_whole(
    store: LocalStore, made: Made, weights: Path
) -> None:
    old = store.add_file(weights, MINE)
    with pytest.raises(InvalidField):
        made(of_files(store, a=b"no gguf"))
    assert store.resolve(MINE).digest == old.digest
    rewrite(store, MINE, lambda manifest: manifest)
    made(Recipe(base="mine", system="New."))
    assert store.resolve(MINE).defaults.system == "New."
