"""Models brought to a registry: what it lacks, in pieces, and the manifest last."""

from pathlib import Path

import pytest

from diglot.core.errors import AccessRefused, ModelNotFound, UpstreamFailed
from diglot.core.events import Step
from diglot.core.model import ModelRef
from diglot.store.local import LocalStore
from diglot.store.registry import push as pushing
from diglot.store.supply import StoreSupply
from tests.store.arriving import WEIGHTS
from tests.store.registry import Registry, digest_of


@pytest.fixture
def ref(store: LocalStore, there: Registry, tmp_path: Path) -> ModelRef:
    """A model whose name tells of the registry."""
    file = tmp_path / "big.gguf"
    file.write_bytes(WEIGHTS)
    ref = ModelRef.parse(f"{there.host}/me/tiny:1")
    store.add_file(file, ref, licences=("MIT",))
    return ref


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send pieces of 256 KiB."""
    sending = pushing.Sending
    monkeypatch.setattr(pushing, "Sending", lambda **given: sending(**given, piece=1 << 18))


async def pushed(supply: StoreSupply, ref: ModelRef) -> list[Step]:
    return [step async for step in supply.push(ref, insecure=True)]


async def test_a_model_is_there_word_for_word(
    supply: StoreSupply, store: LocalStore, there: Registry, ref: ModelRef
) -> None:
    steps = await pushed(supply, ref)
    assert there.manifests == {"me/tiny:1": store.manifest(ref)}
    assert there.blobs[digest_of(WEIGHTS)] == WEIGHTS
    assert len(there.blobs) == 3
    assert [step.stage for step in steps if step.stage != "send"] == ["find", "write", "done"]
    sent = [step.completed for step in steps if str(step.digest) == digest_of(WEIGHTS)]
    assert sent == sorted(sent)
    assert sent[-1] == len(WEIGHTS)
    assert [each.method for each in there.seen][-1] == "PUT"


async def test_what_is_there_is_not_sent_again(supply: StoreSupply, there: Registry, ref: ModelRef) -> None:
    there.blobs[digest_of(WEIGHTS)] = WEIGHTS
    await pushed(supply, ref)
    assert len(there.asked("/uploads/", "PATCH")) == 2  # The licence and the config.


async def test_pieces_go_where_the_registry_sends_them_without_its_token(
    supply: StoreSupply, there: Registry, elsewhere: Registry, ref: ModelRef
) -> None:
    there.token, there.direct, there.cdn = "secret", True, elsewhere
    await pushed(supply, ref)
    assert there.blobs[digest_of(WEIGHTS)] == WEIGHTS
    assert elsewhere.asked("/direct/", "PUT")
    assert all("authorization" not in each.headers for each in elsewhere.seen)


async def test_pieces_that_fail_for_a_time_are_sent_again(supply: StoreSupply, there: Registry, ref: ModelRef) -> None:
    there.statuses = [503, 429]
    await pushed(supply, ref)
    assert there.blobs[digest_of(WEIGHTS)] == WEIGHTS


async def test_a_push_that_never_works_is_given_up(supply: StoreSupply, there: Registry, ref: ModelRef) -> None:
    there.statuses = [503] * 100
    with pytest.raises(UpstreamFailed, match="an upload broke off"):
        await pushed(supply, ref)
    assert there.manifests == {}


async def test_a_registry_that_refuses_is_told_of(supply: StoreSupply, there: Registry, ref: ModelRef) -> None:
    there.statuses = [403]
    with pytest.raises(AccessRefused, match="may not write there"):
        await pushed(supply, ref)


async def test_a_model_that_is_not_here_cannot_be_pushed(supply: StoreSupply, there: Registry) -> None:
    with pytest.raises(ModelNotFound):
        await pushed(supply, ModelRef.parse(f"{there.host}/me/none"))
    assert there.seen == []
