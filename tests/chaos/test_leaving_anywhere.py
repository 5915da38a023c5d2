"""Clients that leave, at every point of every kind of answer: nobody and nothing is left behind, and the next is served."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from tests.chaos.inside import ENTRANCES, LAST, VECTORS, Entrance, House, answered, message
from tests.http.world import Exchange
from tests.services import world as services
from tests.services.world import settle, until

STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
ENTERED = pytest.mark.parametrize("entrance", ENTRANCES, ids=lambda entrance: entrance.path)
EVERYWHERE = pytest.mark.parametrize("after", range(LAST + 1))
Leaving = Callable[[Exchange], Awaitable[None]]


@pytest_asyncio.fixture
async def house() -> AsyncIterator[House]:
    """A house in which nobody is before and after."""
    made = House()
    yield made
    await made.at_rest()


@pytest_asyncio.fixture
async def warm(house: House) -> House:
    """The same, with the model in memory."""
    await house.warm()
    return house


async def leave(exchange: Exchange) -> None:
    exchange.leave()
    await exchange.task


@EVERYWHERE
@STREAMED
@ENTERED
async def test_before_every_event_of_an_answer(warm: House, entrance: Entrance, after: int, *, stream: bool) -> None:
    stop = warm.hold(after=after)
    client = warm.call(entrance, stream=stream)
    await stop.reached.wait()
    assert warm.busy == 1
    await leave(client)
    await settle()
    assert warm.busy == 0
    assert not answered(client)
    await warm.answers(entrance)


@STREAMED
@ENTERED
async def test_before_the_body_has_come(warm: House, entrance: Entrance, *, stream: bool) -> None:
    client = warm.call(entrance, stream=stream, unfinished=True)
    await settle()
    await leave(client)
    assert warm.engine.seen == warm.engine.seen[:1]
    await warm.answers(entrance)


@STREAMED
@ENTERED
async def test_in_the_queue(warm: House, entrance: Entrance, *, stream: bool) -> None:
    stop = warm.hold()
    inside = [warm.call(entrance, stream=stream) for _ in range(warm.engine.slots)]
    await until(lambda: warm.busy == warm.engine.slots)
    waiting = [warm.call(entrance, stream=stream) for _ in range(2)]
    await settle()
    refused = warm.call(entrance, stream=stream)
    await refused.task
    assert refused.status == 503
    await leave(waiting[0])
    late = warm.call(entrance, stream=stream)
    await settle()
    assert not late.task.done()
    for client in (waiting[1], *inside):
        await leave(client)
    stop.open.set()
    await late.task
    assert answered(late)


@STREAMED
@ENTERED
async def test_while_the_model_loads(house: House, entrance: Entrance, *, stream: bool) -> None:
    house.loader.gate.clear()
    client, other = (house.call(entrance, stream=stream) for _ in range(2))
    await until(lambda: house.loader.begun)
    await leave(client)
    assert house.loader.given_up == 0
    house.loader.gate.set()
    await other.task
    assert answered(other)
    assert house.loader.begun == ["chat:latest"]


@ENTERED
async def test_while_the_model_loads_and_nobody_else_wants_it(house: House, entrance: Entrance) -> None:
    house.loader.gate.clear()
    client = house.call(entrance, stream=True)
    await until(lambda: house.loader.begun)
    await leave(client)
    house.loader.gate.set()
    await settle()
    await house.answers(entrance)


@pytest.mark.parametrize("entrance", VECTORS, ids=lambda entrance: entrance.path)
async def test_while_vectors_are_made(house: House, entrance: Entrance) -> None:
    first = house.call(entrance, stream=False, model="encoder")
    await first.task
    stop = house.hold()
    client = house.call(entrance, stream=False, model="encoder")
    await stop.reached.wait()
    await leave(client)
    assert house.busy == 0
    await house.answers(entrance)


@EVERYWHERE
async def test_a_websocket_before_every_event(warm: House, after: int) -> None:
    stop = warm.hold(after=after)
    talk = warm.talk()
    talk.say(message())
    await stop.reached.wait()
    talk.say(message("and this waits"))
    await settle()
    await talk.leave()
    assert warm.busy == 0
    await warm.answers(ENTRANCES[-1])


async def test_a_websocket_in_the_queue_and_while_the_model_loads(house: House) -> None:
    house.loader.gate.clear()
    talks = [house.talk() for _ in range(4)]
    for talk in talks:
        talk.say(message())
    await until(lambda: house.loader.begun)
    await settle()
    for talk in talks[1:]:
        await talk.leave()
    house.loader.gate.set()
    await until(lambda: any("response.completed" in line for line in talks[0].lines))
    await talks[0].leave()


async def test_a_websocket_that_is_gone_before_it_is_noticed(warm: House) -> None:
    stop = warm.hold(after=3)
    talk = warm.talk()
    talk.say(message())
    await stop.reached.wait()
    talk.gone = True
    stop.open.set()
    await until(lambda: warm.busy == 0)
    await talk.leave()
    await warm.answers(ENTRANCES[-1])


async def test_an_answer_in_the_background_goes_on_and_ends_when_it_is_stopped(warm: House) -> None:
    stop = warm.hold(after=2)
    asked = Entrance("/v1/responses", {"input": "hi", "background": True})
    client = warm.call(asked, stream=False)
    await client.task
    await stop.reached.wait()
    client.leave()
    await settle()
    assert warm.busy == 1
    name = client.text.partition('"id":"')[2].partition('"')[0]
    stopped = Exchange(warm.application, "POST", f"/v1/responses/{name}/cancel", [b""])
    await stopped.task
    assert '"status":"cancelled"' in stopped.text


@STREAMED
@ENTERED
async def test_all_at_once(warm: House, entrance: Entrance, *, stream: bool) -> None:
    """Those inside and those who wait leave together, in whatever order their tasks come to know of it."""
    warm.hold()
    clients = [warm.call(entrance, stream=stream) for _ in range(4)]
    await until(lambda: warm.busy == warm.engine.slots)
    await settle()
    for client in clients:
        client.leave()
    await asyncio.gather(*(client.task for client in clients))
    await warm.answers(entrance)


async def test_the_census_sees_who_is_left_behind(warm: House) -> None:
    """So that the other tests are worth something."""
    generator = warm.generate(services.generation())
    await anext(generator)
    with pytest.raises(AssertionError):
        await warm.at_rest()
    await generator.aclose()
