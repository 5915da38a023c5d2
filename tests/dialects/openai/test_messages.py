"""Messages: what a client keeps of a chat, into items."""

import base64
import struct
from typing import Any

import pytest

from diglot.core.items import Image, Item, Message, Reasoning, Role, Text, ToolCall, ToolResult
from diglot.core.request import Conversation, Generation
from diglot.dialects.openai.chat import parse
from tests.dialects.openai.material import data_url, png, refusal, wire

JPEG = b"\xff\xd8" + b"\xff\xc0" + struct.pack(">HBHHB", 8, 8, 2, 3, 1) + b"\xff\xda\x00\x02" + b"\0" + b"\xff\xd9"
WEBP = (
    b"RIFF"
    + struct.pack("<I", 22)
    + b"WEBPVP8 "
    + struct.pack("<I", 10)
    + b"\0\0\0\x9d\x01\x2a"
    + struct.pack("<HH", 2, 3)
)


def items(*messages: dict[str, Any]) -> tuple[Item, ...]:
    request = parse(wire({"messages": list(messages)})).request
    assert isinstance(request, Generation)
    assert isinstance(request.prompt, Conversation)
    return request.prompt.items


def picture(url: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


def test_roles_are_kept_apart() -> None:
    roles: tuple[Role, ...] = ("system", "developer", "user", "assistant")
    assert items(*({"role": role, "content": "x"} for role in roles)) == tuple(
        Message(role=role, content=(Text("x"),)) for role in roles
    )


@pytest.mark.parametrize("content", [None, "", []])
def test_a_content_may_be_empty(content: object) -> None:
    assert items({"role": "user", "content": content}) == (Message(role="user", content=()),)
    assert items({"role": "assistant", "content": content}) == (Message(role="assistant", content=()),)


def test_a_turn_of_thought_text_and_calls_becomes_items_in_that_order() -> None:
    turn = {
        "role": "assistant",
        "reasoning_content": "Hm.",
        "reasoning": "Hm.",
        "content": "I look.",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            {"id": "b", "function": {"name": "look"}},
        ],
    }
    assert items(turn, {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "blue"}]}) == (
        Reasoning(text="Hm."),
        Message(role="assistant", content=(Text("I look."),)),
        ToolCall(call_id="a", name="look", arguments="{}"),
        ToolCall(call_id="b", name="look", arguments=""),
        ToolResult(call_id="a", content=(Text("blue"),)),
    )


def test_a_turn_of_nothing_but_calls_has_no_message() -> None:
    turn = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "look"}}]}
    assert items(turn) == (ToolCall(call_id="a", name="look", arguments=""),)


def test_a_result_of_a_function_that_nobody_called_carries_its_name() -> None:
    assert items({"role": "function", "name": "look", "content": "blue"}) == (
        ToolResult(call_id="look", content=(Text("blue"),), name="look"),
    )


@pytest.mark.parametrize(
    ("data", "kind"), [(png(), "image/png"), (JPEG, "image/jpeg"), (WEBP, "image/webp")], ids=["png", "jpeg", "webp"]
)
def test_the_kind_of_a_picture_is_told_by_its_bytes(data: bytes, kind: str) -> None:
    for url in (data_url(data, "image/gif"), data_url(data, ""), data_url(data).rstrip("=")):
        assert items(picture(url)) == (Message(role="user", content=(Image(data=data, media_type=kind),)),)


@pytest.mark.parametrize(
    "url",
    [
        "data:image/png;base64,",
        "data:image/png;base64,???",
        "data:image/png;base64,\u00e9",
        "data:image/png,abc",
        data_url(b"GIF89a"),
        data_url(png()[:20]),
        data_url(png(0, 0)),
        data_url(png(30_000, 30_000)),
        "image.png",
        "file:///etc/passwd",
        "",
    ],
)
def test_what_is_no_picture_is_refused_with_its_path(url: str) -> None:
    error = refusal(parse, {"messages": [picture(url)]})
    assert (error["status"], error["param"]) == (400, "messages[0].content[0].image_url.url")
    assert "0x" not in error["message"]


@pytest.mark.parametrize("url", ["http://example.com/a.png", "HTTPS://example.com/a.png"])
def test_nothing_is_fetched_for_a_client(url: str) -> None:
    error = refusal(parse, {"messages": [picture(url)]})
    assert (error["status"], error["code"]) == (400, "unsupported_parameter")
    assert "data: URL" in error["message"]


def test_base64_may_be_broken_over_lines() -> None:
    url = "data:image/png;base64," + base64.encodebytes(png()).decode()
    assert items(picture(url)) == (Message(role="user", content=(Image(data=png(), media_type="image/png"),)),)


def test_calls_without_ids_are_answered_in_order() -> None:
    calls = [{"id": given, "function": {"name": "look"}} for given in ("", None, "b")]
    results = [{"role": "tool", "tool_call_id": given, "content": "x"} for given in ("b", "", None)]
    one, two, three, *answers = items({"role": "assistant", "tool_calls": calls}, *results)
    assert isinstance(one, ToolCall)
    assert isinstance(two, ToolCall)
    assert isinstance(three, ToolCall)
    assert three.call_id == "b" != one.call_id != two.call_id
    assert [answer.call_id for answer in answers if isinstance(answer, ToolResult)] == ["b", one.call_id, two.call_id]
    error = refusal(parse, {"messages": [{"role": "assistant", "tool_calls": calls}, *results, results[1]]})
    assert error["param"] == "messages[4].tool_call_id"
