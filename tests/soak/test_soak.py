"""A minute of the soak, and that it would see what it looks for."""

import json
import re
import subprocess
import sys
from typing import Any, Final

import httpx2
import msgspec
import pytest

from bench.soak.leaving import leavers
from bench.soak.mix import Card, Ending, deck, streamed
from bench.soak.running import CLIENTS, Tally
from bench.soak.server import Quiet
from bench.soak.verdict import faults, report, slope
from tests.serving import ROOT, starter_folder

WELL: Final = Quiet(
    at=1.0,
    requests=9,
    resident=50_000_000,
    engines=500_000_000,
    descriptors=23,
    tasks=6,
    generators=1,
    objects=40_000,
    threads=8,
    children=2,
    zombies=0,
    lags=(0.001,),
)


async def _nothing(*_: Any) -> Ending:
    return Ending("answered")


CARD: Final = Card("a card", _nothing, refused=frozenset({"model_not_found"}))


def tally(*endings: Ending, kills: int = 0) -> Tally:
    """Return the tally of a run with these endings."""
    made = Tally()
    made.kills = kills
    for ending in endings:
        made.note(CARD, ending, seconds=0.5)
    return made


@pytest.mark.timeout(900)  # A minute of mixing, and as long as this machine takes to answer what was asked by then.
def test_after_a_minute_of_everything_nothing_has_grown_and_nobody_waits() -> None:
    starter_folder()
    command = [sys.executable, "-m", "bench.soak", "--minutes", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    counted = re.search(r"^requests (\d+), engines killed (\d+)", done.stdout, re.MULTILINE)
    assert counted is not None
    requests, kills = map(int, counted.groups())
    assert requests >= CLIENTS
    assert kills == 0 or requests >= kills


def test_a_run_that_is_well_has_no_faults_and_a_print() -> None:
    run = tally(Ending("answered"), Ending("refused", "model_not_found"), Ending("left"))
    later = msgspec.structs.replace(WELL, at=61.0, resident=WELL.resident + 600_000)
    assert list(faults(run, [WELL, later], "")) == []
    text = "\n".join(report(run, [WELL, later], ""))
    assert "server +600 kB/min" in text
    assert "model_not_found 1" in text
    assert "requests 3, engines killed 0" in text


def test_what_is_first_opened_late_has_not_grown() -> None:
    more = msgspec.structs.replace(WELL, descriptors=WELL.descriptors + 3)
    assert list(faults(tally(Ending("answered")), [WELL, more, more], "")) == []
    for quiets in ([WELL, WELL, more], [WELL, WELL, WELL, WELL, more, more]):
        assert list(faults(tally(Ending("answered")), quiets, "")) == ["descriptors grew from 23 to 26"]


@pytest.mark.parametrize("what", ["descriptors", "tasks", "generators", "children", "zombies"])
def test_one_more_of_anything_is_seen(what: str) -> None:
    later = msgspec.structs.replace(WELL, **{what: getattr(WELL, what) + 1})
    (fault,) = faults(tally(), [WELL, later], "")
    assert fault.startswith(f"{what} grew")


@pytest.mark.parametrize(("what", "word"), [("resident", "server's"), ("engines", "engines'"), ("objects", "objects")])
def test_growth_of_memory_is_seen(what: str, word: str) -> None:
    later = msgspec.structs.replace(WELL, **{what: getattr(WELL, what) * 3})
    (fault,) = faults(tally(), [WELL, later], "")
    assert word in fault
    assert "grew" in fault


@pytest.mark.parametrize(
    "ending", [Ending("lost", "a stream without an end"), Ending("refused", "server_busy"), Ending("refused", "")]
)
def test_a_request_without_an_answer_or_with_one_that_nothing_explains_is_seen(ending: Ending) -> None:
    (fault,) = faults(tally(Ending("answered"), ending), [WELL, WELL], "")
    assert ending.kind in fault


def test_more_hurt_than_were_killed_is_seen_and_so_is_a_traceback() -> None:
    hurt = [Ending("refused", "engine_crashed")] * (CLIENTS + 1)
    assert list(faults(tally(*hurt, kills=2), [WELL, WELL], "")) == []
    assert "hurt by 1 kills" in next(faults(tally(*hurt, kills=1), [WELL, WELL], ""))
    assert "1 tracebacks" in next(faults(tally(), [WELL, WELL], "Traceback (most recent call last):"))


FAILED: Final = {
    "type": "response.failed",
    "response": {"error": {"code": "server_error", "message": "the engine ended unexpectedly"}},
}


@pytest.mark.parametrize(
    ("path", "text", "ending"),
    [
        ("/api/chat", '{"done":false}\n{"done":true}\n', Ending("answered")),
        (
            "/api/chat",
            '{"done":false}\n{"error":"the engine of model x ended unexpectedly"}\n',
            Ending("refused", "engine_crashed"),
        ),
        ("/api/chat", '{"done":false}\n', Ending("lost", 'a stream without an end: {"done":false}\n')),
        ("/v1/chat/completions", "data: {}\n\ndata: [DONE]\n\n", Ending("answered")),
        ("/v1/chat/completions", 'data: {"error":{"code":"odd"}}\n\n', Ending("refused", "odd")),
        ("/v1/responses", f"event: x\ndata: {json.dumps(FAILED)}\n\n", Ending("refused", "engine_crashed")),
    ],
)
async def test_a_stream_is_an_answer_a_refusal_or_lost(path: str, text: str, ending: Ending) -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, text=text))
    async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
        assert await streamed(client, path, {}) == ending


def test_a_slope_is_that_of_the_line() -> None:
    assert slope([(0.0, 1.0), (60.0, 4.0), (120.0, 7.0)]) == pytest.approx(3.0)
    assert slope([(0.0, 1.0)]) == 0.0


def test_every_card_has_a_name_of_its_own() -> None:
    names = [card.name for card in (*deck(), *leavers())]
    assert len(names) == len(set(names))
