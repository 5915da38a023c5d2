"""WebSockets when the server goes down, and what is left of it when it is killed."""

import json
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed

from tests.chaos.talking import DOORS, RESPONSES, heard, nothing_left, say, socket_to, whole
from tests.serving import Served, serving_script, until

pytestmark = pytest.mark.timeout(240)

ENDLESS = {"slots": 2, "replies": [{"say": ["One ", "two "], "hang": True}]}
LONG = {"replies": [{"say": ["x" * 4096] * 4000}], "window": 10_000_000}
ECHO = {"slots": 16, "replies": [{"echo": True}]}
GOING = 1012


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_an_answer_over_a_websocket_that_takes_too_long_is_told_of_its_end(
    tmp_path: Path, stop: signal.Signals
) -> None:
    with serving_script(tmp_path, ENDLESS, "--drain", "0.5") as served, socket_to(served) as connection:
        say(connection, "Well?")
        heard(connection, "response.output_text.delta")
        say(connection, "And this waits.")
        until(lambda: served.log_has("Well?"))
        served.process.send_signal(stop)
        failed = heard(connection, "response.failed")["response"]
        assert failed["error"]["code"] == "server_error"
        assert failed["output"][0]["content"][0]["text"].startswith("One ")
        assert heard(connection, "error")["error"]["code"] == "cancelled"  # The one that waited.
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv()
        code, log = served.ended()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == GOING
    assert code == 0
    assert "Traceback" not in log


def test_an_answer_over_a_websocket_that_can_end_in_time_ends_well(tmp_path: Path) -> None:
    """The client reads no further until the server goes down: more is to come than the network holds."""
    with serving_script(tmp_path, LONG, "--drain", "200") as served, socket_to(served) as connection:
        say(connection, "Well?", store=False)
        heard(connection, "response.output_text.delta")
        served.process.terminate()
        until(lambda: served.log_has("Shutting down"))
        assert heard(connection, "response.completed")
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv()
        code, log = served.ended()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == GOING
    assert code == 0
    assert "Traceback" not in log


def test_a_websocket_that_rests_holds_no_server_up(tmp_path: Path) -> None:
    with serving_script(tmp_path, ECHO, "--drain", "600") as served, socket_to(served) as connection:
        say(connection, "Well?")
        heard(connection, "response.completed")
        served.process.terminate()
        with pytest.raises(ConnectionClosed):
            connection.recv()
        code, _ = served.ended()
    assert code == 0


def test_a_websocket_whose_client_never_reads_holds_no_server_up(tmp_path: Path) -> None:
    with serving_script(tmp_path, LONG, "--drain", "0.5") as served, socket_to(served) as connection:
        say(connection, "Well?", store=False)
        heard(connection, "response.output_text.delta")
        served.process.terminate()
        code, log = served.ended()
    assert code == 0
    assert "Traceback" not in log


def test_what_was_told_to_be_stored_outlives_a_kill(tmp_path: Path, aside: ThreadPoolExecutor) -> None:
    """Many store at once while it is killed: what each was told of as stored is there afterwards, whole."""
    with serving_script(tmp_path, ECHO) as served:
        assert whole(served, RESPONSES, "first").status_code == 200
        streams = [aside.submit(kept_asking, served, f"client {number}", stream=number % 2 == 0) for number in range(8)]
        until(lambda: served.log_count("read ") > 60)
        served.process.kill()
        served.ended()
        told = [shown for stream in streams for shown in stream.result()]
    assert len(told) > 20
    with serving_script(tmp_path, ECHO) as again, again.http() as client:
        for shown in told:
            found = client.get(f"/v1/responses/{shown['id']}").json()
            assert found == shown
        assert not again.log_has("broken-1")


def kept_asking(served: Served, prompt: str, *, stream: bool) -> list[dict[str, object]]:
    """Ask again and again, each time going on from the last answer, until nobody answers; return what was told as stored."""
    told: list[dict[str, object]] = []
    with served.http() as client:
        while True:
            previous = {"previous_response_id": told[-1]["id"]} if told else {}
            body = {"input": prompt, "stream": stream, **previous}
            try:
                answer = client.post(RESPONSES.path, json=body)
            except httpx2.TransportError:
                return told
            assert answer.status_code == 200
            shown = json.loads(answer.text.strip().splitlines()[-1].removeprefix("data: "))
            told.append(shown["response"] if stream else shown)


def test_a_file_of_responses_that_is_torn_is_kept_aside_and_the_server_starts(tmp_path: Path) -> None:
    place = tmp_path / "state" / "responses.sqlite"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"no database at all " * 500)
    with serving_script(tmp_path, ECHO) as served:
        assert served.log_has("It is kept as responses.sqlite.broken-1")
        answer = whole(served, RESPONSES).json()
        with served.http() as client:
            assert client.get(f"/v1/responses/{answer['id']}").json() == answer
    assert place.with_name("responses.sqlite.broken-1").read_bytes().startswith(b"no database at all ")


def test_a_file_of_responses_that_another_holds_is_told_and_nobody_else_waits(
    tmp_path: Path, aside: ThreadPoolExecutor
) -> None:
    with serving_script(tmp_path, ECHO) as served:
        before = whole(served, RESPONSES).json()
        with nothing_left(served), closing(sqlite3.connect(tmp_path / "state" / "responses.sqlite")) as other:
            other.execute("begin immediate")
            waiting = [aside.submit(whole, served, RESPONSES) for _ in range(3)]
            for door in DOORS:
                assert whole(served, door).status_code == 200
            with served.http() as client:
                assert client.get("/api/tags").status_code == 200
            assert {answer.result().status_code for answer in waiting} == {503}
            assert {RESPONSES.fault(answer.result().text) for answer in waiting} == {"responses_unavailable"}
            other.rollback()
            assert whole(served, RESPONSES).status_code == 200
        with served.http() as client:
            assert client.get(f"/v1/responses/{before['id']}").json() == before
