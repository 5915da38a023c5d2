"""What was reported of servers of this kind in the Responses API and with Codex, as right as it should be."""

import gzip
import json
import sys
import zlib
from collections.abc import Iterator
from typing import Any, Final

import brotli
import httpx2
import pytest

from diglot.framing.sse import SseDecoder
from tests.serving import CHAT, Served

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

PATH: Final = "/v1/responses"
COMPACT: Final = f"{PATH}/compact"
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PARAMETERS: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Final = {"type": "function", "name": "get_weather", "parameters": PARAMETERS}
TRIGGER: Final = {"type": "compaction_trigger"}
HISTORY: Final[list[dict[str, Any]]] = [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be short."}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List the files."}]},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "ls it is."}], "content": None},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "shell", "arguments": '{"command":["ls"]}'},
    {"type": "function_call_output", "call_id": "c1", "output": "a.py\nb.py"},
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "apply_patch", "input": "*** Begin Patch"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "Done."},
    {"type": "function_call", "call_id": "c3", "namespace": "mcp__box", "name": "a.b", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c3", "output": [{"type": "input_text", "text": "open"}]},
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Two files.", "annotations": []}],
    },
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Now in Czech."}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
]
"""What Codex sends again at each turn, with rules in the middle and without ids in some places."""


@pytest.fixture
def http(scripted: Served) -> Iterator[httpx2.Client]:
    """A client of the scripted server."""
    with scripted.http() as client:
        yield client


@pytest.fixture
def real_http(real: Served) -> Iterator[httpx2.Client]:
    """A client of the server with the starter models."""
    with real.http() as client:
        yield client


def asked(given: Any = "Say a b c", **more: Any) -> dict[str, Any]:
    """Return a request."""
    return {"model": "scripted", "input": given, **more}


def whole(client: httpx2.Client, body: dict[str, Any], path: str = PATH) -> Any:
    """Return a whole answer."""
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events_of(client: httpx2.Client, body: dict[str, Any]) -> list[Any]:
    """Return the events of a stream."""
    answer = client.post(PATH, json={**body, "stream": True})
    assert answer.status_code == 200, answer.text
    decoder = SseDecoder()
    events = [json.loads(event.data) for event in (*decoder.feed(answer.content), *decoder.close())]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


def refused(client: httpx2.Client, body: Any, path: str = PATH) -> tuple[int, str | None]:
    """Return status and field of a refusal."""
    answer = client.post(path, json=body)
    assert answer.json()["error"]["message"]
    return answer.status_code, answer.json()["error"]["param"]


def texts(response: Any) -> str:
    """Return all text of a response."""
    return "".join(part["text"] for item in response["output"] for part in item.get("content") or ())


def test_the_chain_of_events_of_a_text_has_no_gap(http: httpx2.Client) -> None:
    events = events_of(http, asked())
    kinds = [event["type"].removeprefix("response.") for event in events]
    deltas = kinds.count("output_text.delta")
    begin = ["created", "in_progress", "output_item.added", "content_part.added"]
    end = ["output_text.done", "content_part.done", "output_item.done", "completed"]
    assert kinds == begin + ["output_text.delta"] * deltas + end
    assert all((event["output_index"], event["content_index"]) == (0, 0) for event in events[3:-3])
    last = events[-1]["response"]
    assert (last["id"], last["model"]) == (events[0]["response"]["id"], "scripted")
    assert [item["type"] for item in last["output"]] == ["message"]


def test_a_call_has_one_name_id_and_text_from_its_beginning_to_its_end(http: httpx2.Client) -> None:
    events = events_of(http, asked("two", tools=[WEATHER]))
    items = {event["item"]["id"]: event["item"] for event in events if event["type"] == "response.output_item.added"}
    done = [event for event in events if event["type"] == "response.output_item.done"]
    assert [event["output_index"] for event in done] == [0, 1]
    for event in done:
        item = event["item"]
        pieces = [e for e in events if e.get("item_id") == item["id"]]
        assert (item["name"], item["call_id"]) == ("get_weather", items[item["id"]]["call_id"])
        assert "".join(piece.get("delta", "") for piece in pieces) == item["arguments"]
        assert pieces[-1]["type"] == "response.function_call_arguments.done"
        assert pieces[-1]["arguments"] == item["arguments"]
    assert events[-1]["response"]["output"] == [event["item"] for event in done]


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "a"}},
        {"type": "web_search"},
        {"type": "web_search_preview", "search_context_size": "low"},
        {"type": "image_generation"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "file_search", "vector_store_ids": ["x"]},
        {"type": "mcp", "server_label": "x", "server_url": "https://mcp.example"},
        {"type": "namespace", "name": "mcp__x", "description": "", "tools": [WEATHER]},
        {"type": "tool_search"},
        {"type": "local_shell"},
        {"type": "a_kind_of_tomorrow"},
    ],
    ids=lambda tool: tool["type"],
)
def test_no_kind_of_tool_is_a_reason_not_to_answer(http: httpx2.Client, tool: Any) -> None:
    assert texts(whole(http, asked(tools=[tool, WEATHER | {"name": "other"}]))) == "Say a b c"


def test_a_call_into_a_namespace_comes_back_with_both_names(http: httpx2.Client) -> None:
    space = {"type": "namespace", "name": "mcp__x", "description": "", "tools": [WEATHER]}
    choice = {"type": "function", "name": "get_weather", "namespace": "mcp__x"}
    (item,) = whole(http, asked(tools=[space], tool_choice=choice))["output"]
    assert (item["type"], item["namespace"], item["name"]) == ("function_call", "mcp__x", "get_weather")


def test_a_verbosity_without_a_format_is_taken_as_text(http: httpx2.Client) -> None:
    answer = whole(http, asked(text={"verbosity": "low"}))
    assert texts(answer) == "Say a b c"
    assert answer["text"]["format"] == {"type": "text"}


def test_rules_in_the_middle_are_taken_also_by_a_template_that_knows_one_system_message(
    real_http: httpx2.Client,
) -> None:
    answer = whole(real_http, asked(HISTORY, instructions="Help.", max_output_tokens=16) | {"model": CHAT})
    assert texts(answer)


def test_a_whole_session_is_taken_again(http: httpx2.Client) -> None:
    again = whole(http, asked(HISTORY, store=False, include=["reasoning.encrypted_content"]))
    assert texts(again) == "And now?"
    assert texts(whole(http, asked([*HISTORY, *again["output"], {"role": "user", "content": "More"}]))) == "More"


CODINGS: Final = {
    "zstd": zstd.compress,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
}


@pytest.mark.parametrize("size", [100, 40_000])
@pytest.mark.parametrize("path", [PATH, COMPACT])
@pytest.mark.parametrize("coding", CODINGS)
def test_compressed_bodies_are_read_on_every_path(http: httpx2.Client, coding: str, path: str, size: int) -> None:
    body = CODINGS[coding](json.dumps(asked(HISTORY, padding="x" * size)).encode())
    assert http.post(path, content=body, headers={"Content-Encoding": coding}).status_code == 200
    answer = http.post(path, content=CODINGS[coding](b"[]"), headers={"Content-Encoding": coding})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed_body")


@pytest.mark.parametrize("path", [PATH, COMPACT, "/v1/chat/completions", "/api/chat"])
def test_bodies_that_cannot_be_unpacked_are_told_apart(http: httpx2.Client, path: str) -> None:
    def status(coding: str, body: bytes) -> int:
        return http.post(path, content=body, headers={"Content-Encoding": coding}).status_code

    assert status("lzma", b"{}") == 415
    assert status("zstd", b"\x28\xb5\x2f\xfd broken") == 400
    assert status("gzip", b"{}") == 400
    assert status("zstd", zstd.compress(bytes(100 * 1024 * 1024))) == 413


def test_codex_gets_its_catalogue_beside_the_list(http: httpx2.Client) -> None:
    listed = http.get("/v1/models", params={"client_version": "0.147.0"}).json()
    assert listed["data"][0]["object"] == "model"
    model = next(each for each in listed["models"] if each["slug"].startswith("scripted"))
    assert model["context_window"] > 0


def test_a_request_without_a_model_gets_the_one_there_is(http: httpx2.Client) -> None:
    assert whole(http, {"input": "Hi"})["model"].startswith("scripted")
    assert refused(http, {"input": "Hi", "model": 7}) == (400, "model")


@pytest.mark.parametrize("text", ["break", "think", "two", "Hi"])
def test_the_output_of_every_end_is_a_list(http: httpx2.Client, text: str) -> None:
    last = events_of(http, asked(text))[-1]
    assert last["type"] in {"response.completed", "response.failed"}
    assert isinstance(last["response"]["output"], list)
    cut = events_of(http, asked("a b c d", max_output_tokens=2))[-1]
    assert cut["type"] == "response.incomplete"
    assert cut["response"]["output"][0]["content"]


@pytest.mark.parametrize("stream", [True, False])
def test_a_trigger_gives_exactly_one_compaction_and_no_message(http: httpx2.Client, *, stream: bool) -> None:
    body = asked([*HISTORY, TRIGGER])
    if stream:
        events = events_of(http, body)
        done = [event["item"]["type"] for event in events if event["type"] == "response.output_item.done"]
        assert (done, events[-1]["type"]) == (["compaction"], "response.completed")
        output = events[-1]["response"]["output"]
    else:
        output = whole(http, body)["output"]
    assert [item["type"] for item in output] == ["compaction"]


def test_a_trigger_that_is_not_last_or_comes_twice_is_refused(http: httpx2.Client) -> None:
    for items in ([TRIGGER, *HISTORY], [*HISTORY, TRIGGER, TRIGGER]):
        status, field = refused(http, asked(items))
        assert status == 400
        assert field
        assert field.startswith("input")


def test_a_compaction_of_a_compaction_is_one_item_and_what_was_said_survives_it(http: httpx2.Client) -> None:
    window = whole(http, asked(HISTORY), COMPACT)["output"]
    for _ in range(2):
        again = [*window, *HISTORY[2:9], {"role": "user", "content": "Go on."}]
        window = whole(http, asked(again), COMPACT)["output"]
        assert [item["type"] for item in window].count("compaction") == 1
    said = json.dumps(window)
    assert all(text in said for text in ("List the files.", "And now?", "Go on."))
    assert texts(whole(http, asked([*window, {"role": "user", "content": "Hi"}]))) == "Hi"


def test_two_tools_whose_names_could_be_mistaken_stay_two_through_two_compactions(http: httpx2.Client) -> None:
    pairs = (("a.b", "c"), ("a", "b.c"))
    calls = [
        {"type": "function_call", "call_id": f"c{at}", "namespace": space, "name": name, "arguments": "{}"}
        for at, (space, name) in enumerate(pairs)
    ]
    outputs = [{"type": "function_call_output", "call_id": f"c{at}", "output": f"output {at}"} for at in range(2)]
    window = whole(http, asked([*HISTORY, *calls, *outputs]), COMPACT)["output"]
    window = whole(http, asked(window), COMPACT)["output"]
    retained = json.loads(window[-1]["encrypted_content"])["retained"]
    names = {call["id"]: call["function"]["name"] for turn in retained for call in turn.get("tool_calls", ())}
    assert names["c0"] != names["c1"]
    assert [turn["content"] for turn in retained if turn["role"] == "tool"][-2:] == ["output 0", "output 1"]


def test_a_compaction_is_its_own_object_and_wants_a_model_and_a_conversation(http: httpx2.Client) -> None:
    assert whole(http, asked(HISTORY), COMPACT)["object"] == "response.compaction"
    assert refused(http, {"input": HISTORY}, COMPACT) == (400, "model")
    assert refused(http, asked([]), COMPACT) == (400, "input")
    assert refused(http, asked("") | {"input": None}, COMPACT)[0] == 400


def test_a_compacted_response_can_be_gone_on_from(http: httpx2.Client) -> None:
    first = whole(http, asked([*HISTORY, TRIGGER]))
    assert texts(whole(http, asked("Hi", previous_response_id=first["id"]))) == "Hi"
    shown = http.get(f"{PATH}/{first['id']}/input_items").json()["data"]
    assert TRIGGER["type"] not in {item["type"] for item in shown}


def test_items_before_a_compaction_are_shown_where_people_said_them_and_nowhere_else(http: httpx2.Client) -> None:
    item = next(i for i in whole(http, asked(HISTORY), COMPACT)["output"] if i["type"] == "compaction")
    before = [{"role": "user", "content": "What I said."}, *HISTORY[3:5]]

    def count(*items: dict[str, Any]) -> int:
        return int(whole(http, asked(list(items)), f"{PATH}/input_tokens")["input_tokens"])

    assert count(*before, item) == count(before[0], item) > count(item)


def test_a_transcript_longer_than_the_window_is_compacted(http: httpx2.Client) -> None:
    long = {"type": "function_call_output", "call_id": "c1", "output": "line of a log\n" * 3000}
    items = [*HISTORY[:4], long, *HISTORY[5:]]
    assert refused(http, asked(items))[0] == 400
    window = whole(http, asked(items), COMPACT)["output"]
    assert window[-1]["type"] == "compaction"
    answer = whole(http, asked([*window, *HISTORY[-1:]]))
    assert answer["usage"]["input_tokens"] < 2048


def test_a_picture_goes_through_a_compaction_and_a_file_by_id_is_refused(http: httpx2.Client) -> None:
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
    seen = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "See:"}, picture]}
    window = whole(http, asked([seen, *HISTORY]), COMPACT)["output"]
    assert picture["image_url"] in json.dumps(window)
    by_id = {"type": "message", "role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}
    status, field = refused(http, asked([by_id]))
    assert (status, field and field.endswith("file_id")) == (400, True)


@pytest.mark.parametrize("content", ["gAAAAABo", "e30=", '{"type": "ollama_compaction", "version": 2}', ""])
def test_an_item_of_another_server_is_refused_by_its_place(http: httpx2.Client, content: str) -> None:
    status, field = refused(http, asked([{"type": "compaction", "encrypted_content": content}, *HISTORY]))
    assert (status, field) == (400, "input[0].encrypted_content")
