"""What is on disk, changed while it is in use: answers end, and what they needed goes after them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from diglot.core.digest import Digest
from diglot.core.errors import Cancelled, InvalidField, ModelForeign, ModelNotFound, WrongDigest
from diglot.core.events import Finished
from diglot.core.model import ModelRef
from diglot.core.request import CheckBlob, CopyModel, DeleteModel, Pull, StoreBlob
from diglot.services.catalog import Catalog
from diglot.services.holdings import Holdings
from tests.services.world import Store, World, generation, model, settle, until

WEIGHTS = Path("weights")


def world_of_one() -> World:
    return World(replace(model("chat"), weights=WEIGHTS))


async def test_a_model_gets_a_second_name() -> None:
    world = world_of_one()
    assert await world.desk.ask(CopyModel(source="CHAT", target="ns/other:2")) is None
    assert {each.name for each in world.store.list()} == {"chat:latest", "ns/other:2"}


@pytest.mark.parametrize("request_", [CopyModel(source="none", target="x"), DeleteModel("none")])
async def test_what_is_not_there_is_told_by_the_name_that_was_given(request_: CopyModel | DeleteModel) -> None:
    with pytest.raises(ModelNotFound) as raised:
        await world_of_one().desk.ask(request_)
    assert raised.value.name == "none"


async def test_a_target_outside_the_grammar_is_a_fault_on_its_field() -> None:
    with pytest.raises(InvalidField, match="destination"):
        await world_of_one().desk.ask(CopyModel(source="chat", target="a/b/c/d"))


@pytest.mark.parametrize("request_", [CopyModel(source="theirs", target="x"), DeleteModel("theirs")])
async def test_what_is_not_ours_is_not_changed(request_: CopyModel | DeleteModel) -> None:
    world = world_of_one()
    catalog = Catalog([world.store, Store(model("theirs"))])
    holdings = Holdings(world.store, catalog, world.residency)
    with pytest.raises(ModelForeign):
        await (holdings.copy(request_) if isinstance(request_, CopyModel) else holdings.delete(request_))


async def test_a_model_that_nobody_uses_goes_at_once() -> None:
    world = world_of_one()
    await world.desk.ask(DeleteModel("chat"))
    assert world.store.dropped == [WEIGHTS]
    with pytest.raises(ModelNotFound):
        [_ async for _ in world.generate(generation())]


async def test_a_model_that_only_lies_in_memory_is_unloaded_and_goes() -> None:
    world = world_of_one()
    [_ async for _ in world.generate(generation())]
    assert world.names == ["chat:latest"]
    await world.desk.ask(DeleteModel("chat"))
    await until(lambda: world.store.dropped == [WEIGHTS])
    assert world.names == []
    assert world.engine.closed == 1


async def test_what_is_let_go_while_one_looks_is_not_missed() -> None:
    world = world_of_one()
    [_ async for _ in world.generate(generation())]
    world.engine.gate.clear()
    answer = asyncio.create_task(_events(world))
    await until(lambda: world.engine.busy == 1)
    loop, uses = asyncio.get_running_loop(), world.residency.uses

    async def leave() -> None:
        world.engine.gate.set()
        await until(lambda: not uses(WEIGHTS))

    def look(path: Path) -> bool:
        if in_use := uses(path):  # The look ends only when what it found has become wrong.
            asyncio.run_coroutine_threadsafe(leave(), loop).result(30)
        return in_use

    world.store.in_use = look
    await world.desk.ask(DeleteModel("chat"))
    assert isinstance((await answer)[-1], Finished)
    await until(lambda: world.store.dropped == [WEIGHTS])


async def test_an_answer_under_way_ends_before_its_model_goes() -> None:
    world = world_of_one()
    [_ async for _ in world.generate(generation())]
    world.engine.gate.clear()
    answers = [asyncio.create_task(_events(world)) for _ in range(3)]  # Two in slots, one that waits.
    await until(lambda: world.engine.busy == 2)
    await world.desk.ask(DeleteModel("chat"))
    await settle()
    assert world.store.dropped == []
    assert world.engine.closed == 0
    world.engine.gate.set()
    for answer in answers:
        assert isinstance((await answer)[-1], Finished)
    await until(lambda: world.store.dropped == [WEIGHTS])
    assert world.names == []


async def test_a_replaced_model_answers_to_its_end_and_the_next_request_meets_the_new_one() -> None:
    world = world_of_one()
    [_ async for _ in world.generate(generation())]
    old = world.engine
    old.gate.clear()
    answer = asyncio.create_task(_events(world))
    await until(lambda: old.busy == 1)
    new = replace(model("chat", digest="new"), weights=Path("new"))
    world.store.left.append(WEIGHTS)
    world.store.models = [new]
    [_ async for _ in world.desk.move(Pull("chat"))]
    following = asyncio.create_task(_events(world))
    await settle()
    assert world.store.dropped == []
    old.gate.set()
    assert isinstance((await answer)[-1], Finished)
    assert isinstance((await following)[-1], Finished)
    assert world.engine.model.digest == new.digest
    await until(lambda: world.store.dropped == [WEIGHTS])


async def test_two_names_of_the_same_files_keep_them_in_use() -> None:
    world = World(replace(model("a"), weights=WEIGHTS), replace(model("b"), weights=WEIGHTS))
    async with world.residency.lease(world.store.resolve(ModelRef("a")), generation().residence.load):
        await world.desk.ask(DeleteModel("b"))
        assert world.store.dropped == []
    await world.residency.unload(world.store.resolve(ModelRef("a")))
    await until(lambda: world.store.dropped == [WEIGHTS])


async def test_closing_waits_for_nobody() -> None:
    world = world_of_one()
    async with world.residency.lease(world.store.resolve(ModelRef("chat")), generation().residence.load):
        await world.desk.ask(DeleteModel("chat"))
        await world.desk.close()


async def _events(world: World) -> list[object]:
    return [event async for event in world.generate(generation())]


async def chunks(*pieces: bytes, fault: Exception | None = None) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if fault is not None:
        raise fault


DATA = [b"one", b"", b"two" * 1_000_000, b"three"]
DIGEST = Digest(hashlib.sha256(b"".join(DATA)).hexdigest())


async def test_a_content_is_kept_once() -> None:
    world = world_of_one()
    assert await world.desk.ask(CheckBlob(DIGEST)) is False
    assert await world.desk.receive(StoreBlob(DIGEST), chunks(*DATA)) is True
    assert world.store.blobs == {DIGEST: b"".join(DATA)}
    assert world.store.closed == 1
    assert await world.desk.ask(CheckBlob(DIGEST)) is True
    assert await world.desk.receive(StoreBlob(DIGEST), chunks(fault=AssertionError("it is not read"))) is False


@pytest.mark.parametrize("fault", [Cancelled("the client left"), None])
async def test_a_content_that_does_not_come_whole_leaves_nothing(fault: Exception | None) -> None:
    world = world_of_one()
    with pytest.raises((Cancelled, WrongDigest)):
        await world.desk.receive(StoreBlob(DIGEST), chunks(*DATA[:2], fault=fault))
    assert world.store.blobs == {}
    assert world.store.closed == 1
