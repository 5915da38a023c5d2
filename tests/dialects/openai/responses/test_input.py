"""Items as clients send them: every kind is taken, and goes back out as it came in."""

import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseItem
from pydantic import TypeAdapter

from diglot.core.allowance import Allowance, Toolbox
from diglot.core.errors import AnyFault, Fault
from diglot.core.items import Compaction, Item, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from diglot.core.request import Reference
from diglot.core.result import Stored
from diglot.dialects.openai.responses import compact, count, create, stored
from diglot.dialects.openai.responses.input import received
from diglot.dialects.operation import Wire
from tests.dialects.openai.material import JSON_VALUES, STAMP, data_url, png, refusal, wire

_ITEM: Final[TypeAdapter[Any]] = TypeAdapter(ResponseItem)


def taken(*items: Any) -> tuple[Item, ...]:
    """Return what becomes of items."""
    return received(msgspec.Raw(json.dumps(items).encode()), Toolbox(Allowance())).items


def shown(items: tuple[Item, ...], **query: str) -> dict[str, Any]:
    """Return the page that lists items."""
    record = Stored(id=STAMP.id, status="completed", created=0.0, input=items)
    view = stored.parse_items(Wire(path={"id": f"resp_{STAMP.id}"}, query={"order": "asc", **query})).view
    page: dict[str, Any] = json.loads(stored.whole_items(view, STAMP, record).body)
    return page


def echoed(item: dict[str, Any]) -> Any:
    """Return an item as it is shown again."""
    return shown(taken(item))["data"][0]


_LOOK: Final = {"type": "function", "name": "look", "description": "Looks.", "parameters": None, "strict": None}
FULL: Final[dict[str, dict[str, Any]]] = {
    "message": {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "hi"},
            {"type": "input_image", "image_url": data_url(png()), "detail": "auto"},
        ],
    },
    "answer": {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}],
        "phase": "final_answer",
    },
    "reasoning": {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "sealed",
        "status": "completed",
    },
    "function_call": {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c",
        "name": "add",
        "arguments": '{"a":1}',
        "status": "completed",
        "namespace": "mcp__lab",
    },
    "function_call_output": {
        "type": "function_call_output",
        "id": "fco_1",
        "call_id": "c",
        "status": "completed",
        "output": "3",
    },
    "function_call_output, parts": {
        "type": "function_call_output",
        "id": "fco_1",
        "call_id": "c",
        "status": "completed",
        "output": [{"type": "input_image", "image_url": data_url(png()), "detail": "auto"}],
    },
    "custom_tool_call": {
        "type": "custom_tool_call",
        "id": "ctc_1",
        "call_id": "c",
        "name": "apply_patch",
        "input": "*** Begin Patch",
        "status": "completed",
    },
    "custom_tool_call_output": {
        "type": "custom_tool_call_output",
        "id": "ctco_1",
        "call_id": "c",
        "status": "completed",
        "output": "Done.",
    },
    "tool_search_call": {
        "type": "tool_search_call",
        "id": "tsc_1",
        "call_id": "c",
        "execution": "client",
        "arguments": {"query": "look"},
        "status": "completed",
    },
    "tool_search_output": {
        "type": "tool_search_output",
        "id": "tso_1",
        "call_id": "c",
        "execution": "client",
        "status": "completed",
        "tools": [_LOOK],
    },
    "local_shell_call": {
        "type": "local_shell_call",
        "id": "lsh_1",
        "call_id": "c",
        "action": {
            "type": "exec",
            "command": ["ls"],
            "env": {"A": "1"},
            "timeout_ms": 5,
            "user": None,
            "working_directory": "/w",
        },
        "status": "completed",
    },
    "shell_call": {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "c",
        "action": {"commands": ["ls"], "timeout_ms": None, "max_output_length": None},
        "status": "completed",
        "environment": None,
    },
    "shell_call_output": {
        "type": "shell_call_output",
        "id": "sho_1",
        "call_id": "c",
        "status": "completed",
        "output": [{"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    },
    "apply_patch_call": {
        "type": "apply_patch_call",
        "id": "apc_1",
        "call_id": "c",
        "operation": {"type": "update_file", "path": "a", "diff": "@@\n-a\n+b"},
        "status": "completed",
    },
    "apply_patch_call_output": {
        "type": "apply_patch_call_output",
        "id": "apco_1",
        "call_id": "c",
        "status": "failed",
        "output": "no such file",
    },
    "compaction": {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"},
}
"""One item of every kind that is understood, with all that is kept of it."""


@pytest.mark.parametrize("item", FULL.values(), ids=list(FULL))
def test_an_item_goes_back_out_as_it_came_in(item: dict[str, Any]) -> None:
    assert echoed(item) == item
    _ITEM.validate_python(echoed(item))


@pytest.mark.parametrize("item", FULL.values(), ids=list(FULL))
def test_an_item_without_an_id_is_given_one_and_nothing_else_is_missed(item: dict[str, Any]) -> None:
    bare = {key: value for key, value in item.items() if key not in {"id", "status", "phase"}}
    again = echoed(bare)
    assert again.pop("id").endswith(f"{STAMP.id}_in0") or item["type"] == "local_shell_call_output"
    assert {key: again[key] for key in bare} == bare


@pytest.mark.parametrize("item", FULL.values(), ids=list(FULL))
def test_keys_that_are_not_known_are_passed_over(item: dict[str, Any]) -> None:
    assert taken({**item, "internal_chat_message_metadata_passthrough": {"turn_id": "t"}}) == taken(item)


def test_a_local_shell_names_its_call_by_its_id() -> None:
    item = {"type": "local_shell_call_output", "id": "c", "output": "a", "status": "completed"}
    assert taken(item) == (ToolResult(call_id="c", content=(Text("a"),), kind="local_shell", id="c"),)
    assert echoed(item) == {**item, "call_id": "c"}


def test_a_text_is_what_the_user_says() -> None:
    assert received(msgspec.Raw(b'"hi"'), Toolbox(Allowance())).items == (Message(role="user", content=(Text("hi"),)),)
    assert received(msgspec.Raw(b'""'), Toolbox(Allowance())).items == (Message(role="user", content=(Text(""),)),)


def test_what_is_not_said_is_no_obstacle() -> None:
    items = taken(
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None},
        {"type": "reasoning", "summary": None, "content": None, "encrypted_content": None},
        {"type": "function_call", "id": "fc_1", "name": "n", "arguments": {"a": 1}},
        {"type": "function_call_output", "id": "fc_1", "output": None},
        {"type": "function_call_output", "name": "n", "namespace": "s", "output": "x"},
    )
    assert items == (
        Message(role="user", content=(Text("hi"),)),
        Message(role="assistant", content=()),
        Reasoning(""),
        ToolCall(call_id="fc_1", name="n", arguments='{"a":1}', id="fc_1"),
        ToolResult(call_id="fc_1", content=(), id="fc_1"),
        ToolResult(call_id="input[5]", content=(Text("x"),), name="s.n"),
    )


def test_open_reasoning_is_taken_before_its_summary() -> None:
    thought = {
        "type": "reasoning",
        "summary": [{"text": "short"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
    }
    assert taken(thought) == (Reasoning("long"),)


def test_a_compaction_goes_by_two_names_and_knows_where_it_stood() -> None:
    items = taken({"role": "user", "content": "hi"}, {"type": "compaction_summary", "encrypted_content": "x"})
    assert items[1] == Compaction("x", origin="input[1].encrypted_content")


@pytest.mark.parametrize("kind", ["web_search_call", "mcp_call", "configuration_update", "of_next_year"])
def test_an_item_of_an_unknown_kind_is_kept_byte_for_byte(kind: str) -> None:
    raw = b'{ "type" : "%s",\n "n": 1.0e2, "id":"x", "text": "\\u00e9\\ud83d\\ude00" }' % kind.encode()
    items = received(msgspec.Raw(b"[" + raw + b"]"), Toolbox(Allowance())).items
    assert items == (Opaque(kind, raw.decode()),)
    record = Stored(id=STAMP.id, status="completed", created=0.0, input=items)
    again = msgspec.json.decode(msgspec.json.encode(record), type=Stored)
    view = stored.parse_items(Wire(path={"id": "resp_x"})).view
    assert raw in stored.whole_items(view, STAMP, again).body


@given(value=st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=4), indent=st.none() | st.integers(0, 2))
def test_whatever_an_unknown_item_holds_survives(value: dict[str, Any], indent: int | None) -> None:
    raw = json.dumps({"type": "of_next_year", **{f"x{key}": each for key, each in value.items()}}, indent=indent)
    items = received(msgspec.Raw(f"[{raw}]".encode()), Toolbox(Allowance())).items
    record = msgspec.json.decode(
        msgspec.json.encode(Stored(id="a", status="completed", created=0.0, input=items)), type=Stored
    )
    assert record.input == (Opaque("of_next_year", raw),)


def test_a_reference_tells_where_its_item_is() -> None:
    item = {"type": "item_reference", "id": f"msg_{STAMP.id}_2"}
    where = {0: Reference(STAMP.id, output=2, field="input[0].id")}
    assert received(msgspec.Raw(json.dumps([item]).encode()), Toolbox(Allowance())).references == where
    del item["type"]
    assert received(msgspec.Raw(json.dumps([item]).encode()), Toolbox(Allowance())).references == where


REFUSED: Final[tuple[tuple[Any, str], ...]] = (
    ([{"type": "item_reference", "id": "msg_of_somebody_else"}], "input[0].id"),
    ([{"type": "compaction"}], "input[0].encrypted_content"),
    ([{"type": "compaction_trigger"}, {"role": "user", "content": "hi"}], "input[1]"),
    ([{"type": "compaction_trigger"}, {"type": "compaction_trigger"}], "input[1]"),
    ([{"role": "user", "content": [{"type": "input_audio"}]}], "input[0].content[0].type"),
    (
        [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x/y.png"}]}],
        "input[0].content[0].image_url",
    ),
    ([{"role": "user", "content": [{"type": "input_image"}]}], "input[0].content[0].image_url"),
    ([{"role": "user", "content": [{"type": "input_file", "file_data": "!"}]}], "input[0].content[0].file_data"),
    ([{"role": "user", "content": [{"type": "input_file", "file_data": "/w=="}]}], "input[0].content[0].file_data"),
    ([{"role": "robot", "content": "hi"}], "input[0].role"),
    ([{"type": "function_call", "call_id": "c"}], "input[0].name"),
    ([{"type": "shell_call", "call_id": "c"}], "input[0].action"),
    ([3], "input[0]"),
    (3, "input"),
    ([], "input"),
    (None, "input"),
)


@pytest.mark.parametrize(
    ("given_input", "field"), REFUSED, ids=[f"{field} {number}" for number, (_, field) in enumerate(REFUSED)]
)
def test_what_is_wrong_is_named_by_its_place(given_input: Any, field: str) -> None:
    error = refusal(create.parse, {"input": given_input})
    assert (error["status"], error["param"]) == (400, field)


def test_a_page_of_items_is_cut_out_of_all() -> None:
    items = taken(*({"role": "user", "content": str(number), "id": f"msg_{number}"} for number in range(5)))
    page = shown(items, limit="2", after="msg_1")
    assert [item["id"] for item in page["data"]] == ["msg_2", "msg_3"]
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("msg_2", "msg_3", True)
    page = shown(items, order="desc", limit="2")
    assert [item["id"] for item in page["data"]] == ["msg_4", "msg_3"]
    assert shown(items, after="msg_4") == {
        "object": "list",
        "data": [],
        "first_id": None,
        "last_id": None,
        "has_more": False,
    }


@pytest.mark.parametrize(("name", "value"), [("limit", "0"), ("limit", "101"), ("limit", "x"), ("order", "up")])
def test_a_page_that_cannot_be_is_refused(name: str, value: str) -> None:
    error = refusal(stored.parse_items, Wire(path={"id": "resp_x"}, query={name: value}))
    assert (error["status"], error["param"]) == (400, name)


@given(
    body=st.dictionaries(
        st.sampled_from(["input", "tools", "tool_choice", "text", "reasoning", "model", "metadata", "include"])
        | st.sampled_from(["context_management", "store", "background", "previous_response_id", "type", "generate"]),
        JSON_VALUES,
        max_size=5,
    )
    | JSON_VALUES,
    parse=st.sampled_from([create.parse, create.parse_message, compact.parse, count.parse]),
)
def test_any_json_is_understood_or_refused(body: Any, parse: Any) -> None:
    _parse(parse, body)


KINDS: Final = st.sampled_from([*{item["type"] for item in FULL.values()}, "item_reference", "additional_tools", "x"])


@given(
    items=st.lists(
        st.dictionaries(
            st.sampled_from(["content", "output", "tools", "action", "operation", "arguments", "call_id", "id", "role"])
            | st.sampled_from(["summary", "name", "input", "encrypted_content"]),
            JSON_VALUES,
            max_size=4,
        ).flatmap(lambda item: KINDS.map(lambda kind: {"type": kind, **item})),
        max_size=3,
    )
)
def test_any_items_are_understood_or_refused(items: list[Any]) -> None:
    _parse(create.parse, {"input": items})


@given(
    tools=st.lists(
        st.dictionaries(
            st.sampled_from(["name", "parameters", "format", "tools", "description", "execution", "strict"]),
            JSON_VALUES,
            max_size=4,
        ).flatmap(
            lambda tool: st.sampled_from(["function", "custom", "namespace", "tool_search", "shell", "mcp"]).map(
                lambda kind: {"type": kind, **tool}
            )
        ),
        max_size=3,
    )
)
def test_any_tools_are_understood_or_refused(tools: list[Any]) -> None:
    _parse(create.parse, {"input": "hi", "tools": tools})


def _parse(parse: Any, body: Any) -> None:
    try:
        parse(wire(body))
    except Fault as fault:
        assert isinstance(fault, AnyFault)  # noqa: PT017
