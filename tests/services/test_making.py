"""Models made of others, which may have to be fetched; what their makers set; what cannot answer conversations."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from diglot.core.errors import ModelBroken, ModelIncapable, ModelNotFound, NoModel, TooMany
from diglot.core.events import Step
from diglot.core.items import said
from diglot.core.model import Anatomy, Capabilities, Defaults, ModelRef
from diglot.core.recipe import Example, Recipe
from diglot.core.request import (
    Conversation,
    CreateModel,
    Generation,
    LoadOptions,
    RawPrompt,
    Rerank,
    Residence,
    Sampling,
)
from diglot.core.result import Ranked
from diglot.core.source import FromRegistry
from diglot.services.generate import prepared
from tests.services.world import World, encoder, generation, model

MADE = [Step("reuse"), Step("write"), Step("done")]


async def steps(world: World, recipe: Recipe) -> list[Step]:
    return [step async for step in world.desk.move(CreateModel("mine", recipe))]


async def test_a_model_is_made_of_one_that_is_here() -> None:
    world = World(model("base"))
    world.supply.steps = list(MADE)
    assert await steps(world, Recipe(base="BASE")) == MADE
    assert world.supply.begun == [((ModelRef("mine"), "base:latest"), False)]


async def test_a_model_of_files_needs_no_other() -> None:
    world = World()
    world.supply.steps = list(MADE)
    assert await steps(world, Recipe()) == MADE
    assert world.supply.begun == [((ModelRef("mine"), None), False)]


async def test_a_base_that_is_not_here_is_fetched_first() -> None:
    world = World()
    world.supply.steps = [Step("find"), Step("done")]
    world.supply.then = lambda: world.store.models.append(model("far"))
    assert await steps(world, Recipe(base="far")) == [Step("find"), Step("find"), Step("done")]
    assert world.supply.begun == [(FromRegistry(ModelRef("far")), False), ((ModelRef("mine"), "far:latest"), False)]


async def test_a_base_that_is_nowhere_is_a_fault() -> None:
    world = World()
    world.supply.steps = [ModelNotFound("far")]
    with pytest.raises(ModelNotFound):
        await steps(world, Recipe(base="far"))


async def test_who_uses_the_model_that_is_replaced_ends_his_answer_and_the_next_meets_the_new_one() -> None:
    world = World(model("mine", digest="a"))
    async for _ in world.desk.answer(generation("mine"), id="1"):
        pass
    world.supply.steps = list(MADE)
    world.supply.then = lambda: world.store.models.__setitem__(0, model("mine", digest="b"))
    await steps(world, Recipe(base="mine"))
    assert world.names == []


async def test_all_that_a_maker_set_is_in_force_where_a_request_says_nothing() -> None:
    made = Defaults(
        sampling=Sampling(temperature=0.1, top_k=7, stop=("END",), max_tokens=9, seed=4, repeat_penalty=1.2),
        load=LoadOptions(window=64, batch=16, gpu_layers=3),
        system="Be brief.",
        messages=(Example("user", "hi"), Example("assistant", "Hi.")),
    )
    world = World(model("mine", defaults=made))
    request = replace(
        generation("mine"), prompt=Conversation((said("user", "why"),)), sampling=Sampling(top_k=1, max_tokens=2)
    )
    async for _ in world.desk.answer(request, id="1"):
        pass
    [seen] = world.engine.seen
    assert isinstance(seen, Generation)
    assert seen.sampling == replace(made.sampling, top_k=1, max_tokens=2)
    assert seen.prompt == Conversation(
        (said("system", "Be brief."), said("user", "hi"), said("assistant", "Hi."), said("user", "why"))
    )
    assert world.engine.options == LoadOptions(window=64, batch=16, gpu_layers=3)


@pytest.mark.parametrize("defaults", [Defaults(template="{{ .Prompt }}"), Defaults(marks={"renderer": "harmony"})])
def test_a_model_whose_template_only_others_can_read_answers_raw_prompts_only(defaults: Defaults) -> None:
    made = model("mine", defaults=defaults)
    with pytest.raises(ModelBroken, match="raw prompts are answered"):
        prepared(generation("mine"), made)
    raw = replace(generation("mine"), prompt=RawPrompt("Once"))
    assert prepared(raw, made).prompt == RawPrompt("Once")
    whole = replace(made, anatomy=Anatomy(architecture="test", template=9))
    assert prepared(generation("mine"), whole).prompt == Conversation(())


def asked(*documents: str, name: str | None = None) -> Rerank:
    return Rerank(Residence(name), "why", documents)


async def test_documents_are_ranked_by_a_model_that_can() -> None:
    ranker = model("ranker", able=Capabilities(rerank=True))
    world = World(model(), encoder(), ranker)
    assert await world.desk.ask(asked("a", "bcd")) == Ranked(scores=(1.0, 3.0), input_tokens=5, model="ranker:latest")
    assert await world.desk.ask(asked(name="ranker")) == Ranked(scores=(), input_tokens=0, model="ranker:latest")
    with pytest.raises(TooMany, match="documents"):
        await world.desk.ask(asked("a", "b", "c", "d"))
    with pytest.raises(ModelIncapable, match="rerank"):
        await world.desk.ask(asked("a", name="chat"))


async def test_nothing_is_ranked_where_no_model_can() -> None:
    with pytest.raises(NoModel, match="no rerank model"):
        await World().desk.ask(asked("a"))
