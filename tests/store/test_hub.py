"""Models of Hugging Face: the right files of a repository, whole, and the token kept to its host."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.digest import Digest
from diglot.core.errors import AccessRefused, InvalidField, ModelBroken, NotOffered, UpstreamFailed, WrongDigest
from diglot.core.events import Step
from diglot.core.model import ModelRef
from diglot.core.source import FromUrl, read_source
from diglot.store.hub.choice import PREFERRED, NoChoice, Offered, choose
from diglot.store.local import LocalStore
from diglot.store.supply import Reach, StoreSupply
from tests.store.arriving import WEIGHTS, QuickClock
from tests.store.gguf_bytes import LLAMA, Tensor, gguf
from tests.store.hub import Hub, hub
from tests.store.registry import Registry, digest_of

CLIP = {"general.architecture": "clip", "general.type": "mmproj", "clip.has_vision_encoder": True}


@pytest.fixture
def offered() -> Iterator[Hub]:
    """The stand-in, with a repository of two quantisations."""
    with hub() as there:
        there.files["me/tiny-GGUF"] = {
            "README.md": b"# Tiny",
            "tiny-Q4_K_M.gguf": WEIGHTS,
            "tiny-Q8_0.gguf": gguf({**LLAMA, "general.name": "Eight"}),
        }
        yield there


@pytest.fixture
def supplying(store: LocalStore, tmp_path: Path, offered: Hub) -> StoreSupply:
    reach = Reach(identity=tmp_path / "key", hub=offered.url, hub_token="hf_secret", least=1 << 17, stall=2.0)
    return StoreSupply(store, reach, clock=QuickClock())


async def pulled(supply: StoreSupply, name: str, *, insecure: bool = False) -> list[Step]:
    return [step async for step in supply.pull(read_source(name), insecure=insecure)]


@pytest.mark.parametrize(
    "name",
    [
        "hf.co/me/tiny-GGUF",
        "hf.co/me/tiny-GGUF:Q4_K_M",
        "hf.co/me/tiny-GGUF:q4_k_m",
        "huggingface.co/me/tiny-GGUF:tiny-Q4_K_M.gguf",
    ],
)
async def test_a_quantisation_is_chosen_and_named(supplying: StoreSupply, store: LocalStore, name: str) -> None:
    steps = await pulled(supplying, name)
    assert store.resolve(ModelRef.parse(name)).weights.read_bytes() == WEIGHTS
    assert [step.stage for step in steps if step.stage != "receive"] == ["find", "verify", "write", "done"]


async def test_another_quantisation_is_another_model(supplying: StoreSupply, store: LocalStore) -> None:
    await pulled(supplying, "hf.co/me/tiny-GGUF")
    await pulled(supplying, "hf.co/me/tiny-GGUF:Q8_0")
    assert {model.name for model in store.list()} == {"hf.co/me/tiny-GGUF:latest", "hf.co/me/tiny-GGUF:Q8_0"}


async def test_what_was_named_and_is_not_there_is_told_with_what_is(supplying: StoreSupply) -> None:
    with pytest.raises(NotOffered, match="it has no Q2_K, but tiny-Q4_K_M, tiny-Q8_0"):
        await pulled(supplying, "hf.co/me/tiny-GGUF:Q2_K")


async def test_a_repository_of_other_formats_is_told_of(supplying: StoreSupply, offered: Hub) -> None:
    offered.files["me/tensors"] = {"model.safetensors": b"x", "config.json": b"{}"}
    with pytest.raises(NotOffered, match="no GGUF files"):
        await pulled(supplying, "hf.co/me/tensors")


async def test_an_unknown_repository_is_not_offered(supplying: StoreSupply) -> None:
    with pytest.raises(NotOffered):
        await pulled(supplying, "hf.co/me/nothing")


async def test_the_token_goes_to_its_host_and_not_where_the_files_are(
    supplying: StoreSupply, store: LocalStore, offered: Hub, elsewhere: Registry
) -> None:
    offered.closed, offered.cdn = "hf_secret", elsewhere
    await pulled(supplying, "hf.co/me/tiny-GGUF")
    assert store.resolve(ModelRef.parse("hf.co/me/tiny-GGUF")).weights.read_bytes() == WEIGHTS
    assert {each.headers.get("authorization") for each in offered.seen} == {"Bearer hf_secret"}
    assert elsewhere.seen
    assert all("authorization" not in each.headers for each in elsewhere.seen)


async def test_without_its_token_a_closed_repository_is_not_there(
    store: LocalStore, tmp_path: Path, offered: Hub
) -> None:
    offered.closed = "hf_secret"
    supply = StoreSupply(store, Reach(identity=tmp_path / "key", hub=offered.url), clock=QuickClock())
    with pytest.raises((NotOffered, AccessRefused)):
        await pulled(supply, "hf.co/me/tiny-GGUF")


async def test_nobody_at_the_endpoint_is_told_of(store: LocalStore, tmp_path: Path) -> None:
    supply = StoreSupply(store, Reach(identity=tmp_path / "key", hub="http://127.0.0.1:1"), clock=QuickClock())
    with pytest.raises(UpstreamFailed):
        await pulled(supply, "hf.co/me/tiny-GGUF")


async def test_a_projector_comes_along(supplying: StoreSupply, store: LocalStore, offered: Hub) -> None:
    projector = gguf(CLIP)
    offered.files["me/tiny-GGUF"]["mmproj-tiny-f16.gguf"] = projector
    offered.files["me/tiny-GGUF"]["mmproj-tiny-Q8_0.gguf"] = b"not taken"
    await pulled(supplying, "hf.co/me/tiny-GGUF")
    model = store.resolve(ModelRef.parse("hf.co/me/tiny-GGUF"))
    assert model.projector is not None
    assert model.projector.read_bytes() == projector
    assert model.capabilities.vision


async def test_weights_in_several_files_become_one(supplying: StoreSupply, store: LocalStore, offered: Hub) -> None:
    tensors = [Tensor(f"blk.{number}.weight", shape=(33, 3)) for number in range(5)]
    of_parts = [{"split.no": number, "split.count": 3, "split.tensors.count": 5} for number in range(3)]
    offered.files["me/big"] = {
        "Q4_K_M/big-Q4_K_M-00001-of-00003.gguf": gguf({**LLAMA, **of_parts[0]}, tensors[:2]),
        "Q4_K_M/big-Q4_K_M-00002-of-00003.gguf": gguf(of_parts[1], tensors[2:3]),
        "Q4_K_M/big-Q4_K_M-00003-of-00003.gguf": gguf(of_parts[2], tensors[3:]),
    }
    steps = await pulled(supplying, "hf.co/me/big")
    model = store.resolve(ModelRef.parse("hf.co/me/big"))
    assert model.weights.read_bytes() == gguf(LLAMA, tensors)
    assert "convert" in [step.stage for step in steps]
    assert len(list((store.root / "blobs").iterdir())) == 2  # The parts are gone.


async def test_parts_that_do_not_belong_together_are_refused(
    supplying: StoreSupply, store: LocalStore, offered: Hub
) -> None:
    offered.files["me/big"] = {
        f"big-Q4_0-0000{number}-of-00002.gguf": gguf({**LLAMA, "split.no": 0, "split.count": 2}, [Tensor(f"t{number}")])
        for number in (1, 2)
    }
    with pytest.raises(ModelBroken, match="part 1 of 2, not 2 of 2"):
        await pulled(supplying, "hf.co/me/big")
    assert store.list() == ()


async def test_a_file_without_a_known_digest_is_taken_as_it_comes(
    supplying: StoreSupply, store: LocalStore, offered: Hub
) -> None:
    offered.plain.add("tiny-Q8_0.gguf")
    await pulled(supplying, "hf.co/me/tiny-GGUF:Q8_0")
    model = store.resolve(ModelRef.parse("hf.co/me/tiny-GGUF:Q8_0"))
    assert digest_of(model.weights.read_bytes()).endswith(model.weights.name.removeprefix("sha256-"))


async def test_a_wrong_file_is_dropped(
    supplying: StoreSupply, store: LocalStore, offered: Hub, elsewhere: Registry
) -> None:
    offered.cdn = elsewhere
    elsewhere.wrong[digest_of(WEIGHTS)] = bytes(len(WEIGHTS))
    with pytest.raises(WrongDigest):
        await pulled(supplying, "hf.co/me/tiny-GGUF")
    assert not store.holds(Digest.parse(digest_of(WEIGHTS)))


async def test_a_file_comes_by_its_url(supply: StoreSupply, store: LocalStore, offered: Hub) -> None:
    url = f"{offered.url}/me/tiny-GGUF/resolve/0123456789abcdef0123456789abcdef01234567/tiny-Q4_K_M.gguf"
    with pytest.raises(InvalidField, match="insecure protocol http"):
        await pulled(supply, url)
    steps = await pulled(supply, url, insecure=True)
    assert store.resolve(ModelRef.parse("tiny-Q4_K_M")).weights.read_bytes() == WEIGHTS
    assert [step.stage for step in steps if step.stage != "receive"] == ["find", "verify", "write", "done"]
    assert not [path for path in (store.root / "blobs").iterdir() if "partial" in path.name]


async def test_a_url_that_leads_to_nothing_is_told_of(supply: StoreSupply, offered: Hub) -> None:
    with pytest.raises(NotOffered):
        await pulled(supply, f"{offered.url}/nothing.gguf", insecure=True)


def files(*paths: str) -> list[Offered]:
    return [Offered(path=path, size=1) for path in paths]


@pytest.mark.parametrize(
    ("tag", "paths", "taken"),
    [
        ("latest", ("a-Q8_0.gguf", "a-Q4_0.gguf", "a-Q4_K_M.gguf"), ["a-Q4_K_M.gguf"]),
        ("latest", ("a-Q8_0.gguf", "a-Q2_K.gguf"), ["a-Q8_0.gguf"]),
        ("latest", ("odd.gguf",), ["odd.gguf"]),
        ("Q4_K", ("a-Q4_K_M.gguf", "a.Q4_K.gguf"), ["a.Q4_K.gguf"]),
        ("Q4_K_XL", ("a-UD-Q4_K_XL.gguf", "a-Q4_K_XL.gguf"), ["a-Q4_K_XL.gguf"]),
        ("ud-q4_k_xl", ("a-UD-Q4_K_XL.gguf", "a-Q4_K_XL.gguf"), ["a-UD-Q4_K_XL.gguf"]),
        ("b", ("a.gguf", "x/b.gguf"), ["x/b.gguf"]),
        ("F16", ("mmproj-F16.gguf", "a-F16.gguf"), ["a-F16.gguf"]),
    ],
)
def test_the_choice(tag: str, paths: tuple[str, ...], taken: list[str]) -> None:
    assert [file.path for file in choose(files(*paths), tag).weights] == taken


def test_a_part_that_lacks_is_told_of() -> None:
    with pytest.raises(NoChoice, match=r"of the 3 parts of a-00001-of-00003\.gguf it has 2"):
        choose(files("a-00001-of-00003.gguf", "a-00003-of-00003.gguf"))


@given(
    st.lists(
        st.sampled_from(["a", "b-x"]).flatmap(
            lambda stem: st.sampled_from([f"{stem}-{word}.gguf" for word in PREFERRED])
        ),
        min_size=1,
    ),
    st.sampled_from(PREFERRED),
)
def test_what_was_named_is_taken_or_refused(paths: list[str], tag: str) -> None:
    try:
        chosen = choose(files(*paths), tag)
    except NoChoice:
        assert not any(f"-{tag}." in path for path in paths)
    else:
        assert chosen.weights[0].path.endswith(f"-{tag}.gguf")


def test_a_source_is_told_by_its_form() -> None:
    assert isinstance(read_source("https://x.example/a/b.gguf?download=true"), FromUrl)
    assert str(read_source("https://x.example/a/My%20Model.gguf").ref) == "My-Model:latest"  # type: ignore[union-attr]
