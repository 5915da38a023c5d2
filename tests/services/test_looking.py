"""Pictures are looked at before the model is loaded, wherever they stand."""

import pytest
from msgspec.structs import replace

from diglot.core.assemble import gather
from diglot.core.compaction.envelope import Summary
from diglot.core.errors import InvalidField
from diglot.core.images import linked
from diglot.core.items import Compaction, Image, Item, Message, Text, ToolResult, said
from diglot.core.model import Capabilities
from diglot.core.request import Conversation, Generation
from diglot.services.envelopes import Envelopes
from tests.core.test_images import png
from tests.services.painting import NoSeal
from tests.services.world import World, generation, model

GOOD, BAD = Image(png(1, 1), "image/png"), Image(png(1, 2), "image/png")
SEES = Capabilities(completion=True, vision=True)


def seeing() -> World:
    world = World(model(able=SEES))
    world.pictures.broken = {BAD.data}
    return world


def asking(*items: Item) -> Generation:
    return replace(generation(), prompt=Conversation(items))


def folded(image: Image) -> Compaction:
    return Envelopes(NoSeal()).write(Summary("What was.", (ToolResult(call_id="1", content=(image,)),)))


@pytest.mark.parametrize(
    "items",
    [
        (Message("user", (Text("a"), GOOD, BAD)),),
        (Message("user", (GOOD,)), ToolResult(call_id="1", content=(Text("b"), BAD))),
        (said("user", "hi"), folded(GOOD), Message("user", (BAD,))),
        (Message("user", (GOOD,)), folded(BAD)),
    ],
)
async def test_a_damaged_picture_is_refused_before_the_model_is_loaded(items: tuple[Item, ...]) -> None:
    world = seeing()
    for work in (gather(world.generate(asking(*items))), world.generate.count(asking(*items))):
        with pytest.raises(InvalidField, match=r"images\[1\]: the image is damaged"):
            await work
    assert not world.loader.begun


async def test_whole_pictures_reach_the_engine_as_they_came() -> None:
    world = seeing()
    items = (Message("user", (Text("a"), GOOD)), ToolResult(call_id="1", content=(GOOD,)))
    await gather(world.generate(asking(*items)))
    assert world.pictures.looked == [GOOD, GOOD]
    assert world.engine.seen == [asking(*items)]


async def test_without_pictures_nobody_is_asked_to_look() -> None:
    world = seeing()
    await gather(world.generate(asking(said("user", "hi"))))
    assert world.pictures.looked == []


async def test_a_picture_behind_a_link_is_fetched_then_looked_at_then_shown() -> None:
    world = seeing()
    world.pictures.behind = {"http://a": GOOD, "http://b": BAD}
    link = Message("user", (Text("a"), linked("http://a")))
    await gather(world.generate(asking(link)))
    assert world.pictures.looked == [GOOD]
    assert world.engine.seen == [asking(Message("user", (Text("a"), GOOD)))]
    with pytest.raises(InvalidField, match="damaged"):
        await world.generate.count(asking(Message("user", (linked("http://b"),))))
