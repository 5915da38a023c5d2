"""Models in several files, where they lie: one model, whole or told of with what lacks."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.errors import ModelBroken
from diglot.core.events import Step
from diglot.core.model import ModelRef
from diglot.core.recipe import Recipe
from diglot.store.elsewhere import stores_elsewhere
from diglot.store.found import FoundModels
from diglot.store.local import LocalStore
from diglot.store.making import make
from diglot.store.split import splits_of
from tests.store.gguf_bytes import LLAMA, Tensor, gguf
from tests.store.splitting import cut
from tests.store.test_elsewhere import lay, lay_in_cache, places

WHOLE = gguf(LLAMA, [Tensor(f"t{number}", shape=(32, number + 1)) for number in range(7)])


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """A model in three parts in a folder, with another file beside them."""
    lay(tmp_path / "folder" / "other.gguf", gguf())
    return cut(lay(tmp_path / "whole", WHOLE), tmp_path / "folder", "Big-Q8_0", count=3)


@pytest.fixture
def store(tmp_path: Path, parts: list[Path]) -> FoundModels:
    [store] = stores_elsewhere(places(tmp_path, folders=[str(tmp_path / "folder")]))
    assert isinstance(store, FoundModels)
    return store


def test_parts_that_lie_beside_each_other_are_one_model(store: FoundModels, parts: list[Path]) -> None:
    listing = store.listing()
    assert sorted(model.name for model in listing.models) == ["Big-Q8_0:latest", "other:latest"]
    assert listing.problems == ()
    model = store.resolve(ModelRef("big-q8_0"))
    assert (model.weights, model.parts) == (parts[0], tuple(parts[1:]))
    assert model.files == tuple(parts)
    assert model.size == sum(path.stat().st_size for path in parts)
    assert model.anatomy.parameter_count == 32 * (1 + 2 + 3 + 4 + 5 + 6 + 7)


def test_its_card_has_the_tensors_of_all(store: FoundModels) -> None:
    card = store.card(ModelRef("big-q8_0"))
    assert [tensor.name for tensor in card.tensors] == [f"t{number}" for number in range(7)]
    assert card.info["general.parameter_count"] == 32 * 28


def test_a_part_that_lacks_is_told_of_by_its_number(store: FoundModels, parts: list[Path]) -> None:
    parts[1].unlink()
    [problem] = store.listing().problems
    assert problem.reason == f"of its 3 parts 1 is missing: 2 ({parts[0]})"
    with pytest.raises(ModelBroken, match="1 is missing: 2"):
        store.resolve(ModelRef("big-q8_0"))
    parts[0].unlink()
    [problem] = store.listing().problems
    assert "2 are missing: 1, 2" in problem.reason


def test_a_part_that_is_none_is_told_of(store: FoundModels, parts: list[Path]) -> None:
    parts[1].write_bytes(gguf())
    [problem] = store.listing().problems
    assert "one part of a model" in problem.reason


def test_another_part_makes_it_another_model(store: FoundModels, parts: list[Path]) -> None:
    before = store.resolve(ModelRef("big-q8_0")).digest
    parts[2].write_bytes(parts[2].read_bytes() + bytes(32))
    assert store.resolve(ModelRef("big-q8_0")).digest != before


def test_parts_in_the_cache_of_hugging_face_keep_the_names_that_the_engine_finds_them_by(tmp_path: Path) -> None:
    cache = tmp_path / "hub"
    for path in cut(lay(tmp_path / "whole", WHOLE), tmp_path / "cut", "Big-Q4_K_M", count=2):
        lay_in_cache(cache, "owner/Big-GGUF", f"Q4_K_M/{path.name}", path.read_bytes())
    [store] = stores_elsewhere(places(tmp_path, hub_cache=cache))
    [model] = store.list()
    assert model.name == "hf.co/owner/Big-GGUF:Q4_K_M"
    assert [path.name for path in model.files] == [f"Big-Q4_K_M-0000{number}-of-00002.gguf" for number in (1, 2)]
    assert model.weights.parent == model.parts[0].parent


def test_what_is_made_of_one_has_its_weights_in_one(store: FoundModels, tmp_path: Path) -> None:
    ours = LocalStore(tmp_path / "ours")
    steps: list[Step] = []
    make(ours, ModelRef("mine"), Recipe(system="Be brief."), base=store.card(ModelRef("big-q8_0")), tell=steps.append)
    model = ours.resolve(ModelRef("mine"))
    assert model.parts == ()
    assert model.anatomy.parameter_count == 32 * 28
    assert [tensor.name for tensor in ours.card(model.ref).tensors] == [f"t{number}" for number in range(7)]
    assert "convert" in [step.stage for step in steps]


@given(
    st.permutations([(stem, number, count) for stem, count in (("a", 3), ("b", 2)) for number in range(1, count + 1)])
)
def test_files_in_any_order_make_the_same_models(found: list[tuple[str, int, int]]) -> None:
    paths = [Path("x") / f"{stem}-{number:05}-of-{count:05}.gguf" for stem, number, count in found]
    splits = list(splits_of(paths))
    assert sorted((each.stem, each.count, each.missing) for each in splits) == [("a", 3, ""), ("b", 2, "")]
    assert all(list(each.files) == sorted(each.files) for each in splits)


def test_files_of_other_folders_and_of_other_counts_are_no_parts() -> None:
    names = (
        "x/a-00001-of-00002.gguf",
        "y/a-00002-of-00002.gguf",
        "x/a-00002-of-00003.gguf",
        "x/a.gguf",
        "x/a-00001-of-00001.gguf",
    )
    splits = list(splits_of(map(Path, names)))
    assert [len(split.files) for split in splits] == [1] * 5
    assert [bool(split.missing) for split in splits] == [True, True, True, False, False]
