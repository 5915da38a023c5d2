"""`/metrics`: the text is what Prometheus reads, the numbers are what happened, and nobody can make it grow."""

import asyncio

import pytest
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

from diglot.core.errors import EngineCrashed, LoadFailed
from diglot.core.events import Started, TextDelta
from diglot.http.application import Access
from tests.http.world import World
from tests.services.world import until

STREAM = b'{"stream": true}'
OPEN = {"accept": "application/openmetrics-text; version=1.0.0, text/plain;q=0.5"}


async def numbers(world: World) -> dict[str, float]:
    """Return every sample of the page by its name and labels."""
    page = (await world.get("GET", "/metrics")).text
    return {
        f"{sample.name}{''.join(f'|{value}' for _, value in sorted(sample.labels.items()))}": sample.value
        for family in parser.text_string_to_metric_families(page)
        for sample in family.samples
    }


async def busy_world() -> World:
    """Return a world in which all kinds of things have happened."""
    world = World()
    await world.get("POST", "/say", STREAM)
    await world.get("POST", "/say", b"{")
    await world.get("POST", "/embed")
    await world.get("GET", "/nothing")
    await world.get("GET", "/models/none")
    return world


async def test_the_page_is_read_by_both_of_prometheuss_parsers_and_says_the_same() -> None:
    world = await busy_world()
    plain = await world.get("GET", "/metrics")
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    strict = await world.get("GET", "/metrics", headers=OPEN)
    assert strict.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    old = {family.name: family for family in parser.text_string_to_metric_families(plain.text)}
    new = {family.name: family for family in openmetrics.text_string_to_metric_families(strict.text)}  # type: ignore[no-untyped-call]
    assert old.keys() == new.keys()
    for name, family in new.items():
        assert family.documentation
        assert family.type == old[name].type
        assert family.type in ("counter", "gauge", "histogram")
    assert {"diglot_requests", "diglot_queue_seconds", "diglot_slots", "process_cpu_seconds"} <= new.keys()


async def test_the_numbers_are_those_of_what_happened() -> None:
    world = await busy_world()
    found = await numbers(world)
    assert found["diglot_requests_total|generate|chat:latest|ok"] == 1
    assert found["diglot_requests_total|embed|encoder:latest|ok"] == 1
    assert found["diglot_input_tokens_total|chat:latest"] == 2
    assert found["diglot_output_tokens_total|chat:latest"] == 2
    assert found["diglot_input_tokens_total|encoder:latest"] == 5
    assert found["diglot_loads_total|chat:latest|ok"] == 1
    assert found["diglot_time_to_first_token_seconds_count|chat:latest"] == 1
    assert found["diglot_time_to_first_token_seconds_bucket|+Inf|chat:latest"] == 1
    assert found["diglot_model_memory_bytes|chat:latest"] == 7
    assert found["diglot_slots|chat:latest"] == 2
    assert found["diglot_slots_busy|chat:latest"] == 0
    assert found["diglot_http_requests_total|tiny|POST /say|malformed_body"] == 1
    assert found["diglot_http_requests_total|||unknown_path"] == 1
    assert found["diglot_http_requests_total|tiny|GET /models/{id:path}|model_not_found"] == 1


async def test_names_of_models_and_paths_that_are_not_there_make_no_series() -> None:
    world = await busy_world()
    await world.get("GET", "/metrics")
    before = await numbers(world)
    for number in range(20):
        await world.get("GET", f"/models/none{number}")
        await world.get("POST", f"/nothing{number}")
    assert (await numbers(world)).keys() - before.keys() == set()


async def test_the_totals_of_very_many_models_forget_the_one_used_longest_ago() -> None:
    world = World()
    for number in range(300):
        world.desk.totals.of(f"model{number}").crashes += 1
        world.desk.totals.of("model0")
    names = [name for name, _ in world.desk.totals]
    assert len(names) == 256
    assert "model0" in names
    assert "model1" not in names


async def test_slots_and_queue_show_while_all_slots_work_and_health_and_metrics_answer_at_once() -> None:
    world = World()
    await world.warm()
    world.engine.gate.clear()
    asked = [world.ask("POST", "/say") for _ in range(4)]
    await until(lambda: world.busy == 2 and world.residency.occupancy()[0].waiting == 2)
    assert (await world.get("POST", "/say")).status == 503
    assert (await world.get("GET", "/health")).text == '{"status":"ok"}'
    assert (await world.get("GET", "/")).status == 200
    found = await numbers(world)
    assert found["diglot_slots_busy|chat:latest"] == 2
    assert found["diglot_queue_length|chat:latest"] == 2
    assert not any(each.ended for each in asked)
    world.engine.gate.set()
    await asyncio.gather(*(each.task for each in asked))
    found = await numbers(world)
    assert "diglot_queue_length|chat:latest" not in found or found["diglot_queue_length|chat:latest"] == 0
    assert found["diglot_requests_total|generate|chat:latest|busy"] == 1
    assert found["diglot_requests_total|generate|chat:latest|ok"] == 4


async def test_an_engine_that_dies_is_counted_once_and_one_that_is_unloaded_is_not() -> None:
    world = World()
    await world.warm()
    world.engine.events = [Started(2), TextDelta("a"), EngineCrashed("chat")]
    world.engine.alive = False
    assert (await numbers(world))["diglot_engine_crashes_total|chat:latest"] == 1
    assert (await numbers(world))["diglot_engine_crashes_total|chat:latest"] == 1
    await world.get("POST", "/say")
    assert (await numbers(world))["diglot_engine_crashes_total|chat:latest"] == 1
    await world.residency.close()
    assert (await numbers(world))["diglot_engine_crashes_total|chat:latest"] == 1


async def test_a_load_that_fails_is_counted_by_its_kind() -> None:
    world = World()
    world.loader.fault = LoadFailed("chat", reason="why")
    await world.get("POST", "/say")
    found = await numbers(world)
    assert found["diglot_loads_total|chat:latest|load_failed"] == 1
    assert found["diglot_requests_total|generate|chat:latest|load_failed"] == 1


@pytest.mark.parametrize(("path", "status"), [("/metrics", 401), ("/health", 200), ("/", 200)])
async def test_metrics_want_the_key_and_health_does_not(path: str, status: int) -> None:
    world = World(access=Access(key="secret"))
    assert (await world.get("GET", path)).status == status
    assert (await world.get("GET", path, headers={"authorization": "Bearer secret"})).status == 200
