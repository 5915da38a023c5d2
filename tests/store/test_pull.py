"""Models of a registry: fetched whole, whatever the registry and the network do on the way."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.digest import Digest
from diglot.core.errors import (
    AccessRefused,
    Fault,
    InvalidField,
    ModelBroken,
    NoSpace,
    NotOffered,
    UpstreamFailed,
    WrongDigest,
)
from diglot.core.events import Step
from diglot.core.model import ModelRef
from diglot.core.source import read_source
from diglot.store.local import LocalStore
from diglot.store.registry.address import Address
from diglot.store.registry.pull import contents_of
from diglot.store.supply import Reach, StoreSupply
from tests.store.arriving import WEIGHTS, QuickClock
from tests.store.gguf_bytes import LLAMA, gguf
from tests.store.registry import Registry, digest_of


async def pulled(supply: StoreSupply, there: Registry, name: str = "library/tiny:1") -> list[Step]:
    source = read_source(f"{there.host}/{name}")
    return [step async for step in supply.pull(source, insecure=True)]


def ref(there: Registry, name: str = "library/tiny:1") -> ModelRef:
    return ModelRef.parse(f"{there.host}/{name}")


async def test_a_model_comes_with_its_manifest_word_for_word(
    supply: StoreSupply, store: LocalStore, there: Registry
) -> None:
    manifest = there.put("library/tiny:1", ("model", WEIGHTS), ("system", b"Be brief."))
    steps = await pulled(supply, there)
    model = store.resolve(ref(there))
    assert store.manifest(model.ref) == manifest
    assert model.weights.read_bytes() == WEIGHTS
    assert model.defaults.system == "Be brief."
    assert [step.stage for step in steps if step.stage != "receive"] == ["find", "verify", "write", "done"]
    received = [step for step in steps if step.stage == "receive"]
    assert received[-1].completed == received[-1].total
    assert {str(step.digest) for step in received} == set(there.blobs)
    assert not [path for path in (store.root / "blobs").iterdir() if "partial" in path.name]


async def test_what_is_here_is_not_fetched_again(supply: StoreSupply, there: Registry) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.put("library/tiny:2", ("model", WEIGHTS), ("system", b"Be long."))
    await pulled(supply, there)
    fetched = there.counted()[digest_of(WEIGHTS)]
    steps = await pulled(supply, there, "library/tiny:2")
    (known,) = [step for step in steps if str(step.digest) == digest_of(WEIGHTS)]
    assert known.completed == known.total == len(WEIGHTS)
    assert there.counted()[digest_of(WEIGHTS)] == fetched


async def test_a_large_content_comes_in_parts_and_a_small_one_as_a_whole(supply: StoreSupply, there: Registry) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS), ("system", b"Be brief."))
    await pulled(supply, there)
    ranges = [each.headers["range"] for each in there.asked(digest_of(WEIGHTS))]
    assert len(ranges) == len(set(ranges)) == 8
    assert [each.headers.get("range") for each in there.asked(digest_of(b"Be brief."))] == [None]


async def test_parts_that_break_off_are_gone_on_with(supply: StoreSupply, store: LocalStore, there: Registry) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.piece = 1 << 12
    there.cuts[digest_of(WEIGHTS)] = [1 << 14, 3 << 14, 0, 1 << 13, 5000]
    await pulled(supply, there)
    assert store.resolve(ref(there)).weights.read_bytes() == WEIGHTS


async def test_answers_that_may_pass_are_waited_out(supply: StoreSupply, store: LocalStore, there: Registry) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.statuses = [503, 429, 500, 502]
    await pulled(supply, there)
    assert store.resolve(ref(there)).weights.read_bytes() == WEIGHTS


async def test_what_brings_nothing_time_after_time_is_given_up(
    supply: StoreSupply, store: LocalStore, there: Registry
) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.cuts[digest_of(WEIGHTS)] = [0] * 100
    with pytest.raises(UpstreamFailed, match="broke off"):
        await pulled(supply, there)
    assert there.counted()[digest_of(WEIGHTS)] < 3 * 7
    assert store.list() == ()


async def test_a_content_that_stalls_is_asked_for_again(store: LocalStore, tmp_path: Path, there: Registry) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.pace = threading.Semaphore(9)  # The first answers stop in the middle.
    clock = QuickClock()
    reach = Reach(identity=tmp_path / "key", connections=3, least=1 << 17, stall=0.2)

    async def release(seconds: float) -> None:
        clock.seconds += seconds
        assert there.pace
        there.pace.release(1 << 16)

    clock.sleep = release  # type: ignore[method-assign]
    await pulled(StoreSupply(store, reach, clock=clock), there)
    assert clock.seconds >= 1.0
    assert store.resolve(ref(there)).weights.read_bytes() == WEIGHTS


async def test_contents_come_from_where_the_registry_sends_us(
    supply: StoreSupply, store: LocalStore, there: Registry, elsewhere: Registry
) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.cdn, elsewhere.blobs = elsewhere, there.blobs
    await pulled(supply, there)
    assert store.resolve(ref(there)).weights.read_bytes() == WEIGHTS
    assert len(elsewhere.asked(digest_of(WEIGHTS))) == 8
    assert len(there.asked(digest_of(WEIGHTS))) <= 3  # After that the way is known.


async def test_a_way_that_has_gone_stale_is_asked_for_anew(
    supply: StoreSupply, store: LocalStore, there: Registry, elsewhere: Registry
) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.cdn, elsewhere.blobs = elsewhere, there.blobs
    elsewhere.statuses = [0, 403]
    reach = Reach(identity=Path("none"), connections=1, least=1 << 17)
    await pulled(StoreSupply(store, reach, clock=QuickClock()), there)
    assert store.resolve(ref(there)).weights.read_bytes() == WEIGHTS
    assert len(there.asked(digest_of(WEIGHTS))) == 2


async def test_a_host_that_gives_no_parts_is_read_through(
    supply: StoreSupply, store: LocalStore, there: Registry
) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.parts = False
    there.cuts[digest_of(WEIGHTS)] = [len(WEIGHTS) // 2] * 5
    await pulled(supply, there)
    assert store.resolve(ref(there)).weights.read_bytes() == WEIGHTS


async def test_a_token_is_got_with_the_key_of_this_machine(
    supply: StoreSupply, store: LocalStore, there: Registry, tmp_path: Path
) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.token = "secret"
    await pulled(supply, there)
    assert store.resolve(ref(there)).weights.read_bytes() == WEIGHTS
    assert there.asked("/token?service=it&scope=repository%3Alibrary%2Fx%3Apull")
    assert (tmp_path / "id_ed25519").stat().st_mode & 0o777 == 0o600


async def test_a_token_stays_with_the_registry_that_gave_it(
    supply: StoreSupply, there: Registry, elsewhere: Registry
) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.token, there.cdn, elsewhere.blobs = "secret", elsewhere, there.blobs
    await pulled(supply, there)
    assert all("authorization" not in each.headers for each in elsewhere.seen)


async def test_no_signature_goes_to_another_host_for_a_token(
    supply: StoreSupply, there: Registry, elsewhere: Registry
) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.token, there.realm = "secret", f"{elsewhere.url}/token"
    with pytest.raises(AccessRefused, match="another host"):
        await pulled(supply, there)
    assert elsewhere.seen == []


async def test_a_registry_that_knows_us_not_is_told_of(supply: StoreSupply, there: Registry) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.token, there.realm = "secret", f"{there.url}/nowhere"
    with pytest.raises(AccessRefused):
        await pulled(supply, there)


async def test_a_wrong_content_is_dropped_and_told_of(supply: StoreSupply, store: LocalStore, there: Registry) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.wrong[digest_of(WEIGHTS)] = bytes(len(WEIGHTS))
    with pytest.raises(WrongDigest, match=digest_of(WEIGHTS)):
        await pulled(supply, there)
    assert not list((store.root / "blobs").iterdir())
    there.wrong.clear()
    await pulled(supply, there)
    assert store.resolve(ref(there)).weights.read_bytes() == WEIGHTS


async def test_more_than_was_announced_is_cut(supply: StoreSupply, store: LocalStore, there: Registry) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.surplus = bytes(1 << 20)
    await pulled(supply, there)
    assert store.resolve(ref(there)).weights.read_bytes() == WEIGHTS


async def test_a_content_of_another_size_is_refused(supply: StoreSupply, there: Registry) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.wrong[digest_of(WEIGHTS)] = WEIGHTS + b"more"
    with pytest.raises(UpstreamFailed, match=r"another part|instead of"):
        await pulled(supply, there)


async def test_an_unknown_model_is_not_offered(supply: StoreSupply, there: Registry) -> None:
    with pytest.raises(NotOffered):
        await pulled(supply, there)


@pytest.mark.parametrize(
    ("kinds", "reason"),
    [((), "no weights"), (("system",), "no weights"), (("tensor", "tensor", "json"), "safetensors")],
)
async def test_what_cannot_be_run_here_is_not_fetched(
    supply: StoreSupply, there: Registry, kinds: tuple[str, ...], reason: str
) -> None:
    there.put("library/tiny:1", *((kind, kind.encode() * (place + 1)) for place, kind in enumerate(kinds)))
    with pytest.raises(NotOffered, match=reason):
        await pulled(supply, there)
    assert not there.counted()


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"config":{},"layers":[]}',
        b"\xff\xfe",
        b"[" * 100_000,
        json.dumps(
            {
                "config": {"mediaType": "c", "digest": "sha256:" + "0" * 64, "size": 1},
                "layers": [
                    {
                        "mediaType": "application/vnd.ollama.image.model",
                        "digest": "sha256:../../../etc/passwd",
                        "size": 1,
                    }
                ],
            }
        ).encode(),
        json.dumps(
            {
                "config": {"mediaType": "c", "digest": "../x", "size": 1},
                "layers": [
                    {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + "0" * 64, "size": 1}
                ],
            }
        ).encode(),
        json.dumps(
            {
                "config": {"mediaType": "c", "digest": "sha256:" + "0" * 64, "size": -1},
                "layers": [
                    {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + "0" * 64, "size": 1 << 70}
                ],
            }
        ).encode(),
        b" " * (2 << 20),
    ],
)
async def test_a_manifest_that_makes_no_sense_is_told_of(
    supply: StoreSupply, store: LocalStore, there: Registry, manifest: bytes
) -> None:
    there.manifests["library/tiny:1"] = manifest
    with pytest.raises(Fault):
        await pulled(supply, there)
    assert not store.root.exists()


async def test_a_model_that_is_too_large_for_the_disk_is_not_begun(supply: StoreSupply, there: Registry) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.manifests["library/tiny:1"] = there.manifests["library/tiny:1"].replace(str(len(WEIGHTS)).encode(), b"9" * 18)
    with pytest.raises(NoSpace):
        await pulled(supply, there)
    assert not there.counted()


async def test_weights_that_are_none_leave_what_was_there(
    supply: StoreSupply, store: LocalStore, there: Registry
) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    await pulled(supply, there)
    there.put("library/tiny:1", ("model", b"no GGUF at all"))
    with pytest.raises(ModelBroken):
        await pulled(supply, there)
    assert store.resolve(ref(there)).weights.read_bytes() == WEIGHTS
    assert not store.holds(Digest.parse(digest_of(b"no GGUF at all")))


async def test_a_replaced_model_leaves_nothing_behind(supply: StoreSupply, store: LocalStore, there: Registry) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    await pulled(supply, there)
    other = gguf({**LLAMA, "general.name": "Other"})
    there.put("library/tiny:1", ("model", other))
    await pulled(supply, there)
    assert store.resolve(ref(there)).weights.read_bytes() == other
    assert not store.holds(Digest.parse(digest_of(WEIGHTS)))


async def test_whoever_leaves_in_the_middle_goes_on_from_there(
    supply: StoreSupply, store: LocalStore, there: Registry
) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    there.pace = threading.Semaphore(12)
    steps = supply.pull(read_source(f"{there.host}/library/tiny:1"), insecure=True)
    async for step in steps:
        if step.completed:
            break
    await steps.aclose()
    there.pace.release(1 << 16)
    there.seen.clear()
    (first, *_) = [step for step in await pulled(supply, there) if str(step.digest) == digest_of(WEIGHTS)]
    assert first.completed > 0
    assert store.resolve(ref(there)).weights.read_bytes() == WEIGHTS


async def test_plain_http_is_used_only_by_who_asks_for_it(supply: StoreSupply, there: Registry) -> None:
    with pytest.raises(InvalidField, match="insecure protocol http"):
        _ = [step async for step in supply.pull(read_source(f"http://{there.host}/library/tiny:1"), insecure=False)]
    assert there.seen == []


async def test_what_the_disk_refuses_on_the_way_is_told_of(
    supply: StoreSupply, store: LocalStore, there: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.put("library/tiny:1", ("model", WEIGHTS))
    real = os.fdatasync
    refused: list[int] = []

    def once(number: int) -> None:
        if not refused:
            refused.append(number)
            raise OSError(errno.ENOSPC, "no space left on device")
        real(number)

    monkeypatch.setattr(os, "fdatasync", once)
    with pytest.raises(NoSpace):
        await pulled(supply, there)
    await pulled(supply, there)
    assert store.resolve(ref(there)).weights.read_bytes() == WEIGHTS


LAYER = st.fixed_dictionaries(
    {},
    optional={
        "mediaType": st.sampled_from(
            ["application/vnd.ollama.image.model", "application/vnd.ollama.image.tensor", "x", ""]
        ),
        "digest": st.sampled_from(
            ["sha256:" + "a" * 64, "sha256-" + "B" * 64, "sha256:..", "../x", "", "sha512:" + "a" * 128]
        ),
        "size": st.one_of(st.integers(), st.none(), st.text(max_size=3)),
        "from": st.text(max_size=5),
    },
)
MANIFESTS = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    ).map(lambda each: json.dumps(each).encode()),
    st.fixed_dictionaries(
        {}, optional={"schemaVersion": st.integers(), "config": LAYER, "layers": st.lists(LAYER)}
    ).map(lambda each: json.dumps(each).encode()),
)


@given(MANIFESTS)
def test_any_manifest_is_contents_or_a_fault(data: bytes) -> None:
    address = Address(ModelRef.parse("h.example/me/x"))
    try:
        layers = contents_of(data, address)
    except (NotOffered, UpstreamFailed):
        return
    assert all(layer.content.hex and layer.size >= 0 for layer in layers)
