"""Messages become items: roles, parts, images, calls and results."""

import base64
import struct
import time
import zlib
from typing import Any

import pytest

from diglot.core.items import Image, Message, Reasoning, Text, ToolCall, ToolResult, said
from diglot.core.request import ToolSpec
from tests.dialects.ollama.asking import CHAT, USER, generation, items, refusal


def png(width: int = 1, height: int = 1) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


PNG = base64.b64encode(png()).decode()


def call(name: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": name, "arguments": arguments if arguments is not None else {}}}


def called(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls)}


def result(content: str, **more: str) -> dict[str, Any]:
    return {"role": "tool", "content": content, **more}


@pytest.mark.shows("POST /api/chat", "messages", "messages.role", "messages.content")
def test_every_role_becomes_a_message_in_order() -> None:
    roles = [("System", "a"), ("developer", "b"), ("USER", "c"), ("assistant", "d")]
    messages = [{"role": role, "content": content} for role, content in roles]
    assert items(CHAT, messages=messages) == (
        said("system", "a"),
        said("developer", "b"),
        said("user", "c"),
        said("assistant", "d"),
    )


@pytest.mark.parametrize(("role", "shown"), [("wizard", "wizard"), ("", ""), (None, "")])
def test_an_unknown_role_is_an_error_with_its_place(role: Any, shown: str) -> None:
    status, text = refusal(CHAT, {"messages": [USER, {"role": role, "content": "x"}]})
    assert status == 400
    assert text.startswith(f'messages[1].role: unknown role "{shown}"')


@pytest.mark.shows("POST /api/chat", "messages.content.type", "messages.content.text")
def test_a_content_of_text_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"text": "b"}, {"type": "text", "text": None}]
    assert items(CHAT, messages=[{"role": "user", "content": parts}]) == (said("user", "ab"),)


def test_a_part_that_is_no_text_is_refused_by_its_place() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}]
    status, text = refusal(CHAT, {"messages": [{"role": "user", "content": parts}]})
    assert (status, text.partition(":")[0]) == (400, "messages[0].content[1].type")


def test_a_content_of_null_is_empty() -> None:
    assert items(CHAT, messages=[{"role": "user", "content": None}]) == (said("user", ""),)


@pytest.mark.shows("POST /api/chat", "messages.thinking")
def test_thought_comes_before_what_was_said() -> None:
    message = {"role": "assistant", "content": "so", "thinking": "hm"}
    assert items(CHAT, messages=[message]) == (Reasoning("hm"), said("assistant", "so"))


# Images


@pytest.mark.shows("POST /api/chat", "messages.images")
@pytest.mark.parametrize("text", [PNG, PNG[:20] + "\n" + PNG[20:], f"data:image/gif;base64,{PNG}"])
def test_an_image_is_what_its_bytes_say_it_is(text: str) -> None:
    message = {"role": "user", "content": "what?", "images": [text]}
    assert items(CHAT, messages=[message]) == (
        Message(role="user", content=(Image(png(), "image/png"), Text("what?"))),
    )


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ("", "the image is empty"),
        ("???", "this is no base64"),
        (base64.b64encode(b"GIF89a" + bytes(20)).decode(), "this is no PNG, JPEG or WebP image"),
        (base64.b64encode(png()[:-4]).decode(), "the image is cut off"),
        (base64.b64encode(png().replace(b"IDAT", b"IDAX")).decode(), "the image is damaged"),
        (base64.b64encode(png(30000, 30000)).decode(), "the image is 30000 by 30000, more than 67108864 pixels"),
        (
            "https://example.org/cat.png",
            "images are not fetched unless the server is set to (fetch_images), send the file itself in base64",
        ),
    ],
)
def test_what_is_no_sound_image_is_an_error_with_its_place(image: str, reason: str) -> None:
    message = {"role": "user", "content": "what?", "images": [PNG, image]}
    assert refusal(CHAT, {"messages": [message]}) == (400, f"messages[0].images[1]: {reason}")


# Calls and results


@pytest.mark.shows(
    "POST /api/chat",
    *("messages.tool_calls", "messages.tool_calls.function", "messages.tool_calls.function.name"),
    *("messages.tool_calls.function.arguments", "messages.tool_calls.id", "messages.tool_call_id"),
)
@pytest.mark.parametrize("arguments", [{"city": "Köln", "n": 1}, '{"city": "Köln",\n "n": 1}'])
def test_a_call_and_its_result_keep_the_id_of_the_client(arguments: Any) -> None:
    messages = [called(call("weather", arguments, id="c7")), result("rain", tool_call_id="c7")]
    assert items(CHAT, messages=messages) == (
        ToolCall(call_id="c7", name="weather", arguments='{"city":"Köln","n":1}'),
        ToolResult(call_id="c7", content=(Text("rain"),), name="weather"),
    )


@pytest.mark.shows("POST /api/chat", "messages.tool_name")
def test_results_without_ids_belong_to_calls_by_name_then_by_order() -> None:
    messages = [
        called(call("a"), call("b"), call("a")),
        result("of b", tool_name="b"),
        result("of first a", tool_name="a"),
        result("of second a"),
    ]
    assert [(item.call_id, item.text) for item in items(CHAT, messages=messages) if isinstance(item, ToolResult)] == [
        ("call_2", "of b"),
        ("call_1", "of first a"),
        ("call_3", "of second a"),
    ]


def test_an_id_that_a_client_lost_on_the_call_still_matches_by_order() -> None:
    messages = [called(call("a")), result("r", tool_call_id="lost")]
    got = items(CHAT, messages=messages)
    assert [item.call_id for item in got if isinstance(item, ToolCall | ToolResult)] == ["call_1", "call_1"]


def test_an_id_that_a_client_uses_twice_is_two_calls() -> None:
    messages = [called(call("a", id="x")), result("1", tool_call_id="x")] * 2
    got = [item.call_id for item in items(CHAT, messages=messages) if isinstance(item, ToolCall | ToolResult)]
    assert got == ["x", "x", "call_2", "call_2"]


def test_a_result_without_a_call_stays_a_result() -> None:
    assert items(CHAT, messages=[result("r", tool_name="t")]) == (
        ToolResult(call_id="result_0", content=(Text("r"),), name="t"),
    )


def test_text_beside_calls_is_kept_and_empty_text_is_none() -> None:
    speaking = {**called(call("a")), "content": "let me see"}
    assert items(CHAT, messages=[speaking])[0] == said("assistant", "let me see")
    assert [type(item) for item in items(CHAT, messages=[called(call("a"))])] == [ToolCall]


@pytest.mark.parametrize("arguments", ["{", "[]", "1", '{"a": "\\ud800"}', "[" * 100_000])
def test_arguments_that_are_no_object_are_an_error_with_their_place(arguments: str) -> None:
    status, text = refusal(CHAT, {"messages": [called(call("a"), call("b", arguments))]})
    place = "messages[0].tool_calls[1].function.arguments"
    assert (status, text) == (400, f"{place}: the text holds no JSON object")


@pytest.mark.parametrize("broken", [{}, {"function": None}, {"function": {"name": ""}}])
def test_a_call_without_a_name_is_an_error_with_its_place(broken: Any) -> None:
    status, text = refusal(CHAT, {"messages": [called(broken)]})
    assert (status, text) == (400, "messages[0].tool_calls[0].function.name: a call needs the name of a function")


# Tools

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.mark.shows(
    "POST /api/chat",
    *("tools", "tools.type", "tools.function", "tools.function.name"),
    *("tools.function.description", "tools.function.parameters"),
)
def test_a_tool_is_a_function_with_a_schema() -> None:
    function = {"name": "weather", "description": "Tells it", "parameters": PARAMETERS}
    assert generation(CHAT, tools=[{"type": "function", "function": function}]).tools == (
        ToolSpec(name="weather", description="Tells it", parameters=PARAMETERS),
    )


@pytest.mark.shows("POST /api/chat", "tools.name", "tools.description", "tools.parameters")
def test_a_bare_function_and_nulls_in_a_schema_are_read_as_meant() -> None:
    parameters = {**PARAMETERS, "$defs": None, "items": None}
    tools = [{"name": "a", "description": "b", "parameters": parameters}, {"function": {"name": "c"}, "type": None}]
    assert generation(CHAT, tools=tools).tools == (ToolSpec("a", "b", PARAMETERS), ToolSpec("c"))


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ({"type": "web_search"}, 'tools[1].type: tools of type "web_search" are not known, only "function"'),
        ({"type": "function", "function": {}}, "tools[1].function.name: a tool needs a name"),
        ({}, "tools[1].name: a tool needs a name"),
        ({"function": {"name": 1}}, "tools[1].function.name: expected str | null, got int"),
        (
            {"function": {"name": "a", "parameters": []}},
            "tools[1].function.parameters: expected object | null, got array",
        ),
    ],
)
def test_a_tool_that_is_none_is_an_error_with_its_place(tool: Any, text: str) -> None:
    assert refusal(CHAT, {"messages": [USER], "tools": [{"function": {"name": "a"}}, tool]}) == (400, text)


def test_thousands_of_calls_and_results_are_paired_in_a_blink() -> None:
    count = 9_000
    messages = [called(*[call("f")] * count), *[result("x")] * count]
    begun = time.process_time()
    made = items(CHAT, messages=messages)
    assert time.process_time() - begun < 5  # Searched for one by one it was half a minute.
    ids = [item.call_id for item in made if isinstance(item, ToolCall | ToolResult)]
    assert ids[:count] == ids[count:]
