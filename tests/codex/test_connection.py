"""Codex and the line to the server: WebSockets, long silences, a busy server, company, and what it asks before it begins."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.codex.agent import Codex, Run, asked
from tests.codex.relay import relaying
from tests.serving import serving_script, until

pytestmark = pytest.mark.timeout(300)  # Codex is large, and the machine may be busy.
WINDOW = 32_000
ECHO = {"name": "exec_command", "arguments": {"cmd": "echo $((6 * 7))"}}
PROVIDER = "model_providers.diglot."


def test_over_a_websocket_only_news_are_sent_and_the_model_reads_all_of_it(codex: Codex, tmp_path: Path) -> None:
    primed = {"say": "Nobody hears this."}  # Codex has its own prompt taken in before the user has said anything.
    replies = [primed, {"say": "I look.", "call": [ECHO]}, {"say": "It is 42."}]
    with (
        serving_script(tmp_path / "home", {"window": WINDOW, "replies": replies}) as served,
        relaying(served.url) as relay,
    ):
        run = codex.exec(relay.url, "what is six times seven?", settings={f"{PROVIDER}supports_websockets": "true"})
        prompts = asked(served)
    assert run.said == ["I look.", "It is 42."], run.shown()
    assert "GET /v1/responses" in relay.requests
    assert 101 in relay.statuses
    assert not any(request.startswith("POST") for request in relay.requests)
    assert len(prompts) == 3
    assert prompts[2].startswith(prompts[1])
    assert "42" in prompts[2].removeprefix(prompts[1])


@pytest.mark.parametrize("place", ["the answer", "the summary"])
def test_a_silence_longer_than_codex_waits_is_bridged_by_signs_of_life(
    codex: Codex, tmp_path: Path, place: str
) -> None:
    pause = {"pause": 5.0, "after": -1}
    summary = {"when": "Write the summary", "say": '{"summary": "All is well.", "retain_item_ids": []}'}
    replies: list[dict[str, Any]] = [summary | pause, {"say": "I look.", "call": [ECHO]}, {"say": "Awake."}]
    settings = {f"{PROVIDER}stream_idle_timeout_ms": "2500", f"{PROVIDER}stream_max_retries": "0"}
    if place == "the answer":
        replies = [{"say": "Awake."} | pause]
    else:
        settings["model_auto_compact_token_limit"] = "2000"
    with (
        serving_script(tmp_path / "home", {"window": WINDOW, "replies": replies}, "--heartbeat", "1") as served,
        relaying(served.url) as relay,
    ):
        run = codex.exec(relay.url, "wake up", settings=settings)
    assert run.code == 0, run.shown()
    assert run.said[-1] == "Awake."
    assert relay.received.count(b"event: response.in_progress") >= 3


def test_a_busy_server_is_asked_again_when_it_said(codex: Codex, tmp_path: Path) -> None:
    replies = [{"fault": "busy", "after": -1}, {"say": "Now I have time."}]
    with (
        serving_script(tmp_path / "home", {"window": WINDOW, "replies": replies}) as served,
        relaying(served.url) as relay,
    ):
        run = codex.exec(relay.url, "hello")
        prompts = asked(served)
    assert run.said == ["Now I have time."], run.shown()
    assert [status for status in relay.statuses if status != 304][-2:] == [503, 200], relay.statuses
    assert b"retry-after: 1\r\n" in relay.received.lower()
    assert prompts[0] == prompts[1]


def test_an_answer_that_breaks_is_asked_for_again(codex: Codex, tmp_path: Path) -> None:
    replies = [{"say": ["Half ", "an answer"], "fault": "failed", "after": 1}, {"say": "Whole."}]
    with (
        serving_script(tmp_path / "home", {"window": WINDOW, "replies": replies}) as served,
        relaying(served.url) as relay,
    ):
        run = codex.exec(relay.url, "say it")
    assert run.said == ["Whole."], run.shown()
    assert b'"code":"server_error"' in relay.received


def test_a_prompt_that_is_longer_than_the_window_ends_the_turn_in_words_that_say_so(
    codex: Codex, tmp_path: Path
) -> None:
    with (
        serving_script(tmp_path / "home", {"window": 2_000, "replies": [{"say": "Never."}]}) as served,
        relaying(served.url) as relay,
    ):
        run = codex.exec(relay.url, "hello")
    assert run.code == 1
    assert "context window" in run.last["error"]["message"]
    assert relay.requests.count("POST /v1/responses") == 1  # It is of no use to ask again.


def test_two_sessions_and_a_request_for_a_title_share_one_slot(node: Path, tmp_path: Path) -> None:
    replies = [
        {"when": "alpha", "say": "Alpha here.", "pause": 0.5, "after": -1},
        {"when": "beta", "say": "Beta here.", "pause": 0.5, "after": -1},
    ]
    title = {
        "model": "scripted",
        "input": "a title for alpha",
        "store": False,
        "tools": [],
        "text": {
            "format": {
                "type": "json_schema",
                "name": "title",
                "strict": True,
                "schema": {
                    "type": "object",
                    "properties": {"title": {"type": "string", "maxLength": 36}},
                    "required": ["title"],
                    "additionalProperties": False,
                },
            }
        },
    }
    runs: dict[str, Run] = {}
    with serving_script(tmp_path / "home", {"window": WINDOW, "slots": 1, "replies": replies}) as served:

        def play(name: str) -> None:
            runs[name] = Codex(node, tmp_path / name).exec(served.url, f"who is {name}?")

        threads = [threading.Thread(target=play, args=(name,)) for name in ("alpha", "beta")]
        for thread in threads:
            thread.start()
        until(lambda: asked(served))
        with served.http() as client:
            titled = client.post("/v1/responses", json=title).json()
        for thread in threads:
            thread.join(100)
    assert {name: run.said for name, run in runs.items()} == {"alpha": ["Alpha here."], "beta": ["Beta here."]}
    assert set(json.loads(titled["output"][0]["content"][0]["text"])) == {"title"}


@pytest.mark.parametrize(
    ("provider", "probes"),
    [
        ("ollama", ["GET /v1/models", "GET /api/version", "GET /api/tags"]),
        ("lmstudio", ["GET /v1/models", "POST /v1/responses", "GET /v1/models"]),
    ],
)
def test_codex_takes_the_server_for_one_of_the_two_that_it_knows(
    codex: Codex, tmp_path: Path, provider: str, probes: list[str]
) -> None:
    flags = ["--oss", "--local-provider", provider, "-m", "scripted:latest", "--json", "--skip-git-repo-check"]
    with (
        serving_script(tmp_path / "home", {"window": WINDOW, "replies": [{"say": "Found."}]}) as served,
        relaying(served.url) as relay,
    ):
        run = codex.run(codex.env(f"CODEX_OSS_BASE_URL={relay.url}/v1"), [*codex.bare(), "exec", *flags, "hello"])
    assert run.said == ["Found."], run.shown()
    assert sorted(relay.requests) == sorted([*probes, "POST /v1/responses"])
    assert set(relay.statuses) == {200}
