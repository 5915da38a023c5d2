"""Long work in several pieces: others come in between, and nothing is held while one waits for them."""

# ruff: noqa: D102  methods are the steps of a scenario

import asyncio
import contextlib
from contextlib import aclosing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from diglot.core.compaction.budget import Budget
from diglot.core.events import Finished, Started, TextDelta
from diglot.core.items import Message, said
from diglot.core.request import (
    Conversation,
    Embedding,
    FetchResponse,
    Generation,
    LoadOptions,
    Rerank,
    Residence,
    Respond,
)
from diglot.core.result import Embedded
from diglot.services.admission import Turnstile
from diglot.services.chunking import Chunks
from diglot.services.embed import Embed
from diglot.services.sharing import SharedEngine
from diglot.services.summarise import Summarise
from diglot.services.tally import Tally
from diglot.services.visit import Stage, Visit
from tests.services.world import Clock, Loader, World, encoder, generation, model, settle, until

BATCH = tuple("x" * (number % 50) for number in range(100))


class OneSlot(World):
    """A world in which a model makes one answer at a time, and many texts may come at once."""

    def __init__(self, *, queue: int = 2, budget: int = 100) -> None:
        super().__init__(queue=queue, budget=budget)
        self.loader.slots = lambda model: 1  # type: ignore[method-assign]  # noqa: ARG005
        self.many = Embed(self.catalog, self.residency, clock=self.clock, limit=1000)

    async def vectors(self, caller: str, *texts: str, keep_alive: float | None = None) -> Embedded:
        request = Embedding(residence=Residence(model="encoder", keep_alive=keep_alive), inputs=texts)
        return await self.many(request, visit=Visit.at(0, caller=caller))

    async def words(self, caller: str, *, choices: int = 1) -> None:
        async with aclosing(
            self.generate(replace(generation(), choices=choices), visit=Visit.at(0, caller=caller))
        ) as events:
            async for _ in events:
                pass

    @property
    def waiting(self) -> int:
        return sum(each.waiting for each in self.residency.occupancy())

    def at_rest(self) -> bool:
        residents = self.residency._residents.values()  # noqa: SLF001  nothing else shows a leak
        return not self.residency._turnstiles and all(not each.users for each in residents)  # noqa: SLF001


async def test_one_text_waits_for_a_piece_of_anothers_batch_and_not_for_all_of_it() -> None:
    world = OneSlot()
    await world.vectors("first")
    world.engine.gate.clear()
    batch = asyncio.create_task(world.vectors("batch", *BATCH))
    await until(lambda: world.engine.busy)
    single = asyncio.create_task(world.vectors("person", "hello"))
    await until(lambda: world.waiting)
    world.engine.gate.set()
    await asyncio.gather(batch, single)
    sizes = [len(each.inputs) for each in world.engine.seen if isinstance(each, Embedding)]
    assert sizes == [16, 1, 16, 16, 16, 16, 16, 4]
    assert batch.result().vectors == tuple((float(len(each)),) for each in BATCH)
    assert batch.result().input_tokens == 35  # Five for each piece, as this engine has it.
    assert world.at_rest()


async def test_a_batch_that_nobody_waits_behind_keeps_its_slot() -> None:
    world = OneSlot()
    visit = Visit.at(0)
    await world.many(Embedding(residence=Residence(model="encoder"), inputs=BATCH), visit=visit)
    assert world.loader.begun == ["encoder:latest"]
    assert len(world.engine.seen) == 7
    assert visit.stage == "prefill"


async def test_long_texts_make_short_pieces_and_none_is_cut() -> None:
    world = OneSlot()
    texts = ("a" * 30_000, "b" * 10_000, "c", "d" * 50_000, "e")
    await world.vectors("warm", "up")
    world.engine.window = 100_000
    await world.vectors("batch", *texts)
    pieces = [each.inputs for each in world.engine.seen[1:] if isinstance(each, Embedding)]
    assert pieces == [texts[:1], texts[1:3], texts[3:4], texts[4:]]


async def test_documents_are_ranked_in_pieces_in_their_order() -> None:
    world = OneSlot()
    world.store.models.append(replace(encoder("ranker"), capabilities=replace(encoder().capabilities, rerank=True)))
    request = Rerank(residence=Residence(model="ranker"), query="q", documents=BATCH)
    ranked = await world.many.rerank(request)
    assert ranked.scores == tuple(float(len(each)) for each in BATCH)
    assert ranked.input_tokens == 35


async def test_between_two_answers_to_one_prompt_others_have_theirs() -> None:
    world = OneSlot()
    await world.words("first")
    world.engine.seen.clear()
    world.engine.gate.clear()
    many = asyncio.create_task(world.words("batch", choices=3))
    await until(lambda: world.engine.busy)
    one = asyncio.create_task(world.words("person"))
    await until(lambda: world.waiting)
    assert not one.done()
    world.engine.gate.set()
    order: list[str] = []
    many.add_done_callback(lambda _: order.append("many"))
    one.add_done_callback(lambda _: order.append("one"))
    await asyncio.gather(many, one)
    await settle()
    assert order == ["one", "many"]
    assert len(world.engine.seen) == 4


async def test_a_model_that_goes_with_its_last_user_is_not_loaded_anew_for_every_piece() -> None:
    world = OneSlot()
    world.loader.gate.clear()
    both = asyncio.gather(world.vectors("batch", *BATCH, keep_alive=0), world.vectors("other", *BATCH, keep_alive=0))
    await settle()
    world.loader.gate.set()
    await both
    assert len(world.loader.begun) <= 2  # Once more for the one that is left when the other has gone.
    await settle()
    assert not world.names


async def test_whoever_is_cancelled_while_others_go_first_holds_nothing() -> None:
    world = OneSlot()
    await world.vectors("first")
    world.engine.gate.clear()
    batch = asyncio.create_task(world.vectors("batch", *BATCH, keep_alive=0))
    await until(lambda: world.engine.busy)
    entered, leave = asyncio.Event(), asyncio.Event()

    async def person() -> None:
        async with world.residency.turn(encoder(), LoadOptions(), visit=Visit.at(0, caller="person")):
            entered.set()
            await leave.wait()

    other = asyncio.create_task(person())
    await until(lambda: world.waiting)
    world.engine.gate.set()
    await entered.wait()
    assert world.waiting == 1
    batch.cancel()
    await settle()
    assert batch.cancelled()
    assert not world.waiting
    leave.set()
    await other
    assert world.at_rest()


async def test_who_waits_for_other_load_options_and_who_lets_him_go_first_do_not_wait_for_each_other() -> None:
    world = OneSlot()
    await world.vectors("first")
    world.engine.gate.clear()
    batch = asyncio.create_task(world.vectors("batch", *BATCH))
    await until(lambda: world.engine.busy)
    request = Embedding(residence=Residence(model="encoder", load=LoadOptions(window=7)), inputs=("one",))
    other = asyncio.create_task(world.many(request, visit=Visit.at(0, caller="other")))
    await until(lambda: world.waiting)
    world.engine.gate.set()
    async with asyncio.timeout(10):
        await asyncio.gather(batch, other)
    assert len(batch.result().vectors) == 100
    assert world.at_rest()


VISITS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "large"]),
        st.sampled_from([None, None, 1, 2]),
        st.sampled_from("xyz"),
        st.integers(1, 4),
        st.booleans(),
    ),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(visits=VISITS, cancelled=st.sets(st.integers(0, 7), max_size=3))
def test_whatever_pieces_models_and_options_come_together_everybody_gets_through(
    visits: list[tuple[str, int | None, str, int, bool]], cancelled: set[int]
) -> None:
    async def visit(world: World, what: tuple[str, int | None, str, int, bool]) -> int:
        name, window, caller, pieces, background = what
        wanted = model(name, size={"a": 10, "b": 20}.get(name, 60))
        who = Visit.at(0, caller=caller, background=background)
        async with world.residency.turn(wanted, LoadOptions(window=window), visit=who) as engine:
            for _ in range(pieces):
                async with aclosing(engine.generate(generation())) as events:
                    async for _ in events:
                        await asyncio.sleep(0)
        return pieces

    async def play() -> None:
        world = OneSlot(queue=20, budget=45)
        tasks = [asyncio.create_task(visit(world, each)) for each in visits]
        for _ in range(25):
            await asyncio.sleep(0)
        for number in cancelled & set(range(len(tasks))):
            tasks[number].cancel()
        for _ in range(100):
            await settle()
        assert all(task.done() for task in tasks), "somebody waits for ever"
        for task in tasks:
            assert task.cancelled() or task.exception() is None
        assert world.at_rest()
        await world.residency.close()

    asyncio.run(play())


@pytest.mark.parametrize("stage", ["queue", "load", "prefill"])
async def test_a_visit_tells_where_it_is(stage: Stage) -> None:
    world = OneSlot()
    world.loader.gate.clear()
    visit = Visit.at(world.clock.monotonic_ns(), caller="me")
    if stage == "queue":
        task = asyncio.create_task(world.words("other"))
        await until(lambda: world.loader.begun)
    else:
        task = asyncio.create_task(asyncio.sleep(0))
        if stage == "prefill":
            world.loader.gate.set()
            await world.words("other")
            world.engine.gate.clear()
    run = asyncio.create_task(_through(world, visit))
    await until(lambda: visit.stage == stage)
    await settle()
    assert visit.stage == stage
    await world.clock.advance(3)
    world.loader.gate.set()
    if world.loader.engines:
        world.engine.gate.set()
    await asyncio.gather(task, run)
    assert visit.spent[stage] == 3_000_000_000


async def _through(world: World, visit: Visit) -> None:
    async with aclosing(world.generate(generation(), visit=visit)) as events:
        async for _ in events:
            pass


async def test_a_response_in_the_background_lets_others_go_first_and_is_counted_when_it_is_done() -> None:
    world = OneSlot()
    await world.words("first")
    world.engine.gate.clear()
    held = asyncio.create_task(world.words("person"))
    await until(lambda: world.engine.busy)
    request = Respond(generation=generation(), keep=True, background=True)
    for number in range(5):
        await world.desk.later(request, id=f"r{number}", caller="agent")
    await until(lambda: world.waiting == 5)  # More than the queue holds: they take none of its places.
    totals = world.desk.totals.of("chat:latest")
    done_before: list[int] = []
    question = asyncio.create_task(world.words("person"))
    question.add_done_callback(lambda _: done_before.append(totals.requests[("generate", "ok")]))
    await until(lambda: world.waiting == 6)
    world.engine.gate.set()
    await asyncio.gather(held, question)
    await until(lambda: totals.requests[("generate", "ok")] == 5)
    assert done_before == [0]
    assert {(await world.desk.ask(FetchResponse(f"r{number}"))).status for number in range(5)} == {"completed"}  # type: ignore[union-attr]
    assert world.at_rest()


async def test_a_conversation_that_is_folded_in_pieces_lets_others_in_between() -> None:
    order: list[str] = []
    turnstile = Turnstile(slots=1, queue=5, clock=Clock())
    loader = Loader()
    engine = await loader.load(model(), LoadOptions(), lambda *_: None)
    lend = contextlib.nullcontext(engine)

    async def person() -> None:
        async with turnstile.turn("person"):
            order.append("person")

    async with turnstile.turn("agent") as turn:
        shared = SharedEngine(turn, lambda: lend, away=contextlib.nullcontext, visit=Visit(), clock=Clock())
        async with shared:
            waiting = asyncio.create_task(person())
            await until(lambda: turnstile.waiting)
            items = tuple(said("user" if number % 2 else "assistant", f"words {number} " * 40) for number in range(20))
            request = replace(generation(), prompt=Conversation(items))
            engine.events = (Started(1), TextDelta('{"summary": "s", "retain_item_ids": []}'), Finished("stop"))
            engine.window = 700
            engine.count_tokens = tokens_of
            tally = Tally(shared, request)
            budget = Budget(whole=400, prose=100, retained=50, chosen=50, answer=100, offers=0, small=False)
            chunks = Chunks(tally, items, offered=(), budget=budget, before=tokens_of(request), density=4.0)
            summarise = Summarise(shared, request, items=items, chunks=chunks)
            async with aclosing(summarise()) as steps:
                async for _ in steps:
                    pass
            order.append("folded")
    await waiting
    assert len(engine.seen) > 1
    assert order.index("person") < order.index("folded")


def tokens_of(request: Generation) -> int:
    assert isinstance(request.prompt, Conversation)
    return sum(len(item.text) // 4 for item in request.prompt.items if isinstance(item, Message))
