"""Fold: what happens to a conversation before it is answered."""

import pytest
from msgspec.structs import replace

from diglot.core.assemble import gather
from diglot.core.compaction.envelope import Summary
from diglot.core.errors import BrokenCompaction, ContextExceeded, NothingGained
from diglot.core.events import Compacted, Finished, Started
from diglot.core.items import Compaction, Item, ToolResult, said
from diglot.core.request import Compacting, Conversation, Generation, LoadOptions, Overflow, Residence
from diglot.core.result import Result
from diglot.engines.scripted.loader import ScriptedLoader
from diglot.engines.scripted.script import Reply, Script
from diglot.services.catalog import Catalog
from diglot.services.compact import Compact
from diglot.services.envelopes import Envelopes
from diglot.services.fold import Fold
from diglot.services.generate import Generate
from diglot.services.residency import Policy, Residency
from tests.services.painting import NoSeal, Pictures
from tests.services.test_compact import Watched, session
from tests.services.world import Clock, Store, model


class Server:
    """Generation with folding, over a scripted engine whose prompts can be looked at."""

    def __init__(self, *, window: int = 4096, always: bool = False) -> None:
        clock = Clock()
        self.loader = ScriptedLoader(Script(window=window, replies=(Reply(echo=True),)))
        policy = Policy(budget=10**9, keep_alive=300, queue=4, defaults=LoadOptions())
        self.envelopes = Envelopes(NoSeal())
        fold = Fold(self.envelopes, Compact(self.envelopes), always=always)
        residency = Residency(self.loader, clock=clock, policy=policy)
        self.generate = Generate(Catalog([Store(model())]), residency, fold, pictures=Pictures(), clock=clock)

    async def answer(self, request: Generation) -> Result:
        """Return the whole answer."""
        return await gather(self.generate(request))

    async def load(self) -> Watched:
        """Return the engine, which remembers what it is asked from now on."""
        await self.answer(asking((said("user", "hi"),)))
        engine = self.loader.loaded[-1]
        engine.__class__ = Watched
        assert isinstance(engine, Watched)
        engine.asked = []
        return engine


def asking(items: tuple[Item, ...], **more: object) -> Generation:
    return replace(Generation(residence=Residence(), prompt=Conversation(items)), **more)


def items_of(request: Generation) -> tuple[Item, ...]:
    assert isinstance(request.prompt, Conversation)
    return request.prompt.items


async def test_an_ordinary_request_passes_untouched() -> None:
    server = Server()
    engine = await server.load()
    await server.answer(asking(session(2)))
    assert [items_of(request) for request in engine.asked] == [session(2)]


async def test_a_compaction_item_is_shown_as_what_it_stands_for() -> None:
    server = Server()
    engine = await server.load()
    item = server.envelopes.write(Summary("the port is 8123"))
    result = await server.answer(asking((said("user", "go"), item, said("user", "which port?"))))
    (seen,) = (each for each in items_of(engine.asked[0]) if isinstance(each, ToolResult))
    assert seen.text == "the port is 8123"
    assert result.choices[0].text == "which port?"


async def test_a_broken_item_is_refused_with_the_place_where_it_stood() -> None:
    with pytest.raises(BrokenCompaction) as caught:
        await Server().answer(asking((Compaction("nonsense", origin="input[3].encrypted_content"),)))
    assert caught.value.field == "input[3].encrypted_content"


async def test_a_trigger_compacts_instead_of_answering() -> None:
    server = Server(window=8192)
    request = asking(session(12), compacting=Compacting(instead=True))
    events = [event async for event in server.generate(request)]
    assert isinstance(events[-1], Finished)
    (done,) = (event for event in events if isinstance(event, Compacted))
    result = await server.answer(request)
    assert result.compacted is not None
    assert not result.choices or not result.choices[0].text
    assert done.before > done.after


async def test_a_trigger_is_never_too_long() -> None:
    result = await Server(window=3000).answer(asking(session(40), compacting=Compacting(instead=True)))
    assert result.compacted is not None


async def test_below_its_threshold_a_conversation_is_answered_as_it_is() -> None:
    result = await Server().answer(asking(session(2), compacting=Compacting(threshold=3000)))
    assert result.compacted is None


async def test_above_its_threshold_it_is_folded_first_and_the_answer_goes_on_in_the_same_stream() -> None:
    server = Server(window=8192)
    events = [event async for event in server.generate(asking(session(6), compacting=Compacting(threshold=1500)))]
    kinds = [type(event) for event in events if isinstance(event, Compacted | Started | Finished)]
    assert kinds == [Compacted, Started, Finished]
    (done,) = (event for event in events if isinstance(event, Compacted))
    (started,) = (event for event in events if isinstance(event, Started))
    assert started.input_tokens < done.before


async def test_a_threshold_that_cannot_be_kept_is_no_reason_not_to_answer() -> None:
    items = (said("user", "word " * 1200),)
    result = await Server().answer(asking(items, compacting=Compacting(threshold=1000)))
    assert result.compacted is None
    assert result.choices[0].text.startswith("word")


async def test_a_trigger_that_gains_nothing_is_refused() -> None:
    with pytest.raises(NothingGained):
        await Server().answer(asking((said("user", "hi"),), compacting=Compacting(instead=True)))


async def test_without_a_wish_too_long_a_conversation_is_an_error() -> None:
    with pytest.raises(ContextExceeded):
        await Server(window=1000).answer(asking(session(12)))


@pytest.mark.parametrize("how", ["the setting", "the request"])
async def test_by_setting_or_wish_any_request_that_would_not_fit_is_folded(how: str) -> None:
    server = Server(window=3000, always=how == "the setting")
    overflow = Overflow.ERROR if how == "the setting" else Overflow.COMPACT
    result = await server.answer(asking(session(12), overflow=overflow))
    assert result.compacted is not None
    assert result.choices[0].text.endswith("go on")


async def test_the_next_request_of_a_client_that_has_no_item_to_send_is_not_folded_again() -> None:
    server = Server(window=3000, always=True)
    first = session(12)
    assert (await server.answer(asking(first))).compacted
    engine = server.loader.loaded[-1]
    engine.__class__ = Watched
    assert isinstance(engine, Watched)
    engine.asked = []
    longer = (*first, said("assistant", "done"), said("user", "thanks"))
    result = await server.answer(asking(longer))
    assert result.compacted is None
    (asked,) = engine.asked
    assert any(isinstance(item, ToolResult) and item.name == "ollama_compaction_summary" for item in items_of(asked))
    assert items_of(asked)[-2:] == longer[-2:]


async def test_another_conversation_does_not_get_the_memory_of_the_first() -> None:
    server = Server(window=3000, always=True)
    await server.answer(asking(session(12)))
    other = (said("system", "someone else"), *session(12)[1:])
    assert (await server.answer(asking(other))).compacted is not None


async def test_a_client_is_given_back_every_user_message_also_those_that_no_longer_fit_a_prompt() -> None:
    server = Server(window=3000)
    users = tuple(said("user", f"request {number} " + "word " * 150) for number in range(20))
    first = await server.answer(asking((*session(12), *users), compacting=Compacting(instead=True)))
    assert first.compacted is not None
    assert first.compacted.kept[-20:] == users
    again = (*first.compacted.kept, first.compacted.item, *session(12)[2:])
    second = await server.answer(asking(again, compacting=Compacting(instead=True)))
    assert second.compacted is not None
    assert second.compacted.kept[: len(first.compacted.kept)] == first.compacted.kept
