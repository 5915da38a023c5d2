"""The desk: every kind of request reaches its service."""

import pytest
from msgspec.structs import replace

from diglot.core.errors import Cancelled, ModelIncapable, ModelNotFound
from diglot.core.events import Finished, Started, Timings
from diglot.core.model import ModelDetails
from diglot.core.request import (
    Embedding,
    Generation,
    ListModels,
    ListRunning,
    Load,
    LoadOptions,
    Ping,
    Residence,
    ShowModel,
    Unload,
)
from diglot.core.result import Embedded
from tests.services.world import World, generation, model

ID = "x" * 24


async def test_a_generation_becomes_events() -> None:
    world = World()
    request: Generation = generation()
    events = [event async for event in world.desk.answer(request, id=ID)]
    assert isinstance(events[-1], Finished)


async def test_a_load_says_when_the_model_is_ready_and_takes_its_options() -> None:
    world = World()
    residence = Residence(model="chat", load=LoadOptions(window=50), keep_alive=10)
    events = [event async for event in world.desk.answer(Load(residence), id=ID)]
    assert events == [Started(input_tokens=0, model="chat:latest"), Finished("load", timings=Timings())]
    assert world.names == ["chat:latest"]
    assert world.engine.options.window == 50
    assert world.engine.seen == []


async def test_an_unload_says_so_whether_or_not_the_model_was_loaded() -> None:
    world = World()
    for _ in range(2):
        events = [event async for event in world.desk.answer(Unload(Residence(model="chat")), id=ID)]
        assert events == [Started(input_tokens=0, model="chat:latest"), Finished("unload")]
        assert world.names == []
        assert not world.loader.open
        [event async for event in world.desk.answer(Load(Residence()), id=ID)]
        assert world.names == ["chat:latest"]
        [event async for event in world.desk.answer(Unload(Residence()), id=ID)]


async def test_a_load_of_an_encoder_needs_no_ability_to_chat() -> None:
    world = World()
    [event async for event in world.desk.answer(Load(Residence(model="encoder")), id=ID)]
    assert world.names == ["encoder:latest"]


async def test_a_model_that_must_think_and_cannot_is_not_loaded() -> None:
    world = World()
    with pytest.raises(ModelIncapable) as caught:
        await anext(world.desk.answer(Load(Residence(model="chat"), must_think=True), id=ID))
    assert (caught.value.name, caught.value.ability) == ("chat", "thinking")
    assert world.names == []


async def test_an_unknown_model_is_not_loaded_or_unloaded() -> None:
    world = World()
    for request in (Load(Residence(model="nope")), Unload(Residence(model="nope"))):
        with pytest.raises(ModelNotFound):
            await anext(world.desk.answer(request, id=ID))


async def test_what_does_not_stream_is_answered() -> None:
    world = World(model())
    assert await world.desk.ask(Ping()) is None
    served = replace(model(), details=ModelDetails(context_length=100))
    assert await world.desk.ask(ListModels()) == (served,)
    assert await world.desk.ask(ListRunning()) == ()
    card = await world.desk.ask(ShowModel(model="chat", verbose=True))
    assert card == world.store.card(model().ref, verbose=True)


async def test_embeddings_are_answered_and_close_ends_all() -> None:
    world = World()
    answer = await world.desk.ask(Embedding(residence=Residence(), inputs=("a",)))
    assert isinstance(answer, Embedded)
    await world.desk.close()
    assert world.loader.open == []
    with pytest.raises(Cancelled):
        await world.desk.ask(Embedding(residence=Residence(), inputs=("a",)))
