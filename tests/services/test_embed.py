"""Embed: vectors for texts, within limits."""

import asyncio

import pytest

from diglot.core.errors import ContextExceeded, ModelIncapable, NoModel, TooMany
from diglot.core.request import Embedding, Residence
from tests.services.world import World, encoder, model, until


def embedding(*inputs: str, name: str | None = None) -> Embedding:
    return Embedding(residence=Residence(model=name), inputs=inputs)


async def test_vectors_come_in_the_order_of_the_inputs_with_the_models_name() -> None:
    world = World()
    embedded = await world.embed(embedding("a", "bbb", "cc"))
    assert embedded.vectors == ((1.0,), (3.0,), (2.0,))
    assert (embedded.model, embedded.input_tokens) == ("encoder:latest", 5)


async def test_more_inputs_than_the_limit_are_refused_before_anything_is_loaded() -> None:
    world = World()
    with pytest.raises(TooMany) as caught:
        await world.embed(embedding("a", "b", "c", "d"))
    assert (caught.value.count, caught.value.limit) == (4, 3)
    assert world.loader.begun == []


async def test_no_inputs_load_the_model_and_give_no_vectors() -> None:
    world = World()
    assert (await world.embed(embedding())).vectors == ()
    assert world.names == ["encoder:latest"]


async def test_without_a_model_that_embeds_there_is_none() -> None:
    world = World(model())
    with pytest.raises(NoModel):
        await world.embed(embedding("a"))
    with pytest.raises(ModelIncapable):
        await world.embed(embedding("a", name="chat"))


async def test_an_input_too_long_and_a_client_that_leaves_free_the_slot() -> None:
    world = World(encoder())
    with pytest.raises(ContextExceeded):
        await world.embed(embedding("x" * 200))
    world.engine.gate.clear()
    task = asyncio.create_task(world.embed(embedding("a")))
    await until(lambda: world.engine.busy)
    task.cancel()
    await asyncio.wait({task})
    assert not world.engine.busy
    assert not world.residency._turnstiles  # noqa: SLF001  nothing else shows a leak
