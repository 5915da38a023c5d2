"""Tools are named, forced and listed so that what comes back is a call of the client's own tool."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from diglot.core.errors import InvalidField
from diglot.core.items import ToolCall
from diglot.core.request import Conversation, Generation, Residence, ToolChoice, ToolMode, ToolSpec
from diglot.core.tools import (
    WrittenCall,
    callable_tools,
    flat_arguments,
    flat_name,
    forced_calls,
    forced_schema,
    restore,
    tool_list_text,
    written_calls,
)

ADD = ToolSpec("add", parameters={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
PATCH = ToolSpec("apply_patch", kind="freeform")
FREE = ToolChoice()
LAB = ToolSpec("add", namespace="mcp__lab")


def asking(*tools: ToolSpec, choice: ToolChoice = FREE) -> Generation:
    return Generation(Residence(), Conversation(()), tools=tools, tool_choice=choice)


def is_valid(schema: Any, value: Any) -> bool:
    Draft202012Validator.check_schema(schema)
    return bool(Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize(
    ("namespace", "name", "flat"),
    [
        (None, "add", "add"),
        (None, "fs.read", "fs.read"),
        ("mcp__lab", "add", "mcp__lab__add"),
        ("mcp__lab__", "add", "mcp__lab__add"),
        ("multi_agent_v1", "spawn_agent", "multi_agent_v1__spawn_agent"),
    ],
)
def test_a_name_that_reads_in_one_way_is_the_namespace_and_the_name(namespace: str, name: str, flat: str) -> None:
    assert flat_name(ToolSpec(name, namespace=namespace)) == flat


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (ToolSpec("b__c", namespace="a"), ToolSpec("c", namespace="a__b")),
        (ToolSpec("_b", namespace="a"), ToolSpec("b", namespace="a_")),
        (ToolSpec("b.c", namespace="a"), ToolSpec("b_c", namespace="a")),
        (ToolSpec("x" * 70, namespace="a"), ToolSpec("x" * 71, namespace="a")),
    ],
)
def test_names_that_could_be_mistaken_for_one_another_differ(left: ToolSpec, right: ToolSpec) -> None:
    assert flat_name(left) != flat_name(right)
    for tool in (left, right):
        call = restore(WrittenCall(flat_name(tool), "{}"), tools=(left, right), call_id="1")
        assert (call.namespace, call.name) == (tool.namespace, tool.name)


@pytest.mark.parametrize("name", ["x" * 100, "a b", "täg", "a.b/c"])
def test_a_namespaced_name_is_one_that_every_server_takes(name: str) -> None:
    flat = flat_name(ToolSpec(name, namespace="mcp__lab"))
    assert len(flat) <= 64
    assert flat.isascii()
    assert flat.replace("_", "").replace("-", "").isalnum()


parts = st.text(alphabet="ab_.", min_size=1, max_size=6)
specs = st.builds(ToolSpec, parts, namespace=st.one_of(st.none(), parts))


@given(st.lists(specs, max_size=6))
def test_restoring_undoes_flattening_or_the_tools_are_refused(tools: list[ToolSpec]) -> None:
    try:
        declared = callable_tools(asking(*tools))
    except InvalidField:
        return
    for tool in declared:
        call = restore(WrittenCall(flat_name(tool), "{}"), tools=declared, call_id="1")
        assert (call.namespace, call.name) == (tool.namespace, tool.name)


def test_two_tools_that_would_have_one_name_are_refused_by_it() -> None:
    with pytest.raises(InvalidField, match=r"tools: .*'mcp__lab__add'"):
        callable_tools(asking(LAB, ToolSpec("mcp__lab__add")))


def test_a_tool_that_is_declared_twice_is_taken() -> None:
    assert callable_tools(asking(ADD, ADD)) == (ADD, ADD)


def test_a_bare_name_means_the_tool_without_a_namespace() -> None:
    assert restore(WrittenCall("add", "{}"), tools=(LAB, ADD), call_id="1").namespace is None


@pytest.mark.parametrize("written", ["mcp__lab__add", "mcp__lab.add", "add"])
def test_a_namespaced_tool_is_found_however_the_model_spells_it(written: str) -> None:
    call = restore(WrittenCall(written, "{}"), tools=(PATCH, LAB), call_id="1")
    assert call == ToolCall("1", "add", "{}", namespace="mcp__lab")


def test_a_bare_name_that_two_namespaces_have_is_not_guessed() -> None:
    tools = (LAB, ToolSpec("add", namespace="other"))
    assert restore(WrittenCall("add", "{}"), tools=tools, call_id="1").namespace is None


def test_the_choice_narrows_the_tools_by_name_or_by_flat_name() -> None:
    narrow = ToolChoice(ToolMode.AUTO, names=("mcp__lab__add", "apply_patch"))
    assert callable_tools(asking(ADD, PATCH, LAB, choice=narrow)) == (PATCH, LAB)
    assert callable_tools(asking(ADD, choice=ToolChoice(ToolMode.NONE))) == ()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [('{"input": "*** Begin"}', "*** Begin"), ('{"other": 1}', '{"other": 1}'), ("[" * 100_000, "[" * 100_000)],
)
def test_a_freeform_call_comes_back_as_bare_text(arguments: str, text: str) -> None:
    call = restore(WrittenCall("apply_patch", arguments), tools=(PATCH,), call_id="1")
    assert (call.kind, call.arguments) == ("freeform", text)


@pytest.mark.parametrize(
    ("kind", "arguments", "shown"),
    [
        ("function", '{"a": 1}', '{"a": 1}'),
        ("function", "", "{}"),
        ("function", '{"a": ', '{"input": "{\\"a\\": "}'),
        ("function", "[1]", '{"input": "[1]"}'),
        ("freeform", '{"a": 1}', '{"input": "{\\"a\\": 1}"}'),
        ("freeform", "", '{"input": ""}'),
    ],
)
def test_arguments_of_the_past_are_an_object_whatever_they_were(kind: Any, arguments: str, shown: str) -> None:
    assert flat_arguments(ToolCall("1", "f", arguments, kind=kind)) == shown


def test_one_tool_is_forced_by_its_arguments_alone() -> None:
    assert forced_calls('{"a": 1}', (ADD,), parallel=False) == (WrittenCall("add", '{"a":1}'),)
    assert is_valid(forced_schema((ADD,), parallel=False), {"a": 1})
    assert not is_valid(forced_schema((ADD,), parallel=False), {"a": 1, "b": 1})


def test_one_of_several_tools_is_forced_by_name() -> None:
    schema = forced_schema((ADD, PATCH), parallel=False)
    assert is_valid(schema, {"name": "add", "arguments": {"a": 1}})
    assert is_valid(schema, {"name": "apply_patch", "arguments": {"input": "x"}})
    assert not is_valid(schema, {"name": "apply_patch", "arguments": {"a": 1}})
    text = '{"name": "apply_patch", "arguments": {"input": "x"}}'
    assert forced_calls(text, (ADD, PATCH), parallel=False) == (WrittenCall("apply_patch", '{"input":"x"}'),)


def test_several_calls_are_forced_as_a_list_that_ends() -> None:
    schema = forced_schema((ADD, PATCH), parallel=True)
    call = {"name": "add", "arguments": {"a": 1}}
    assert is_valid(schema, [call] * 8)
    assert not is_valid(schema, [call] * 9)
    assert not is_valid(schema, [])
    assert len(forced_calls(json.dumps([call, call]), (ADD, PATCH), parallel=True)) == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1',
        "",
        "[" * 100_000,
        "[1]",
        '"x"',
        '{"name": ["add"], "arguments": {}}',
        '{"name": "rm", "arguments": {}}',
    ],
)
def test_what_is_no_whole_declared_call_is_none(text: str) -> None:
    assert forced_calls(text, (ADD, PATCH), parallel=False) == ()


def test_halves_of_a_surrogate_pair_do_not_come_through() -> None:
    (call,) = forced_calls('{"a": "x\\ud800"}', (ADD,), parallel=False)
    assert call.arguments == '{"a":"x?"}'


def with_item(kind: str, key: str = "$defs") -> ToolSpec:
    return ToolSpec(
        f"put_{kind}",
        parameters={
            "type": "object",
            "properties": {"item": {"$ref": f"#/{key}/Item"}},
            "required": ["item"],
            key: {"Item": {"type": kind}},
        },
    )


@pytest.mark.parametrize("key", ["$defs", "definitions"])
def test_definitions_of_two_tools_with_one_name_stay_apart(key: str) -> None:
    schema = forced_schema((with_item("string", key), with_item("integer", key)), parallel=False)
    assert is_valid(schema, {"name": "put_string", "arguments": {"item": "x"}})
    assert is_valid(schema, {"name": "put_integer", "arguments": {"item": 1}})
    assert not is_valid(schema, {"name": "put_string", "arguments": {"item": 1}})


def test_a_schema_that_holds_itself_still_means_itself_among_others() -> None:
    tree = ToolSpec(
        "tree", parameters={"type": "object", "properties": {"v": {"type": "string"}, "next": {"$ref": "#"}}}
    )
    schema = forced_schema((tree, ADD), parallel=True)
    assert is_valid(schema, [{"name": "tree", "arguments": {"v": "a", "next": {"v": "b", "next": {}}}}])
    assert not is_valid(schema, [{"name": "tree", "arguments": {"next": {"v": 1}}}])


@pytest.mark.parametrize(
    "parameters",
    [{}, {"properties": {"a": {"type": "integer"}}}, {"type": ["object", "null"]}, {"type": "object"}],
)
def test_arguments_are_an_object_even_where_the_schema_does_not_say_so(parameters: dict[str, Any]) -> None:
    schema = forced_schema((ToolSpec("f", parameters=parameters),), parallel=False)
    assert is_valid(schema, {})
    assert not is_valid(schema, None)
    assert not is_valid(schema, "x")


@pytest.mark.parametrize("kind", ["string", "array", ["string", "null"]])
def test_a_tool_whose_parameters_are_no_object_is_refused_by_name(kind: Any) -> None:
    with pytest.raises(InvalidField, match="tools: the parameters of 'f' must be of type object"):
        forced_schema((ToolSpec("f", parameters={"type": kind}),), parallel=False)


def test_the_list_of_tools_tells_what_there_is_and_how_to_call_it() -> None:
    text = tool_list_text((ADD, LAB, PATCH))
    listed = [json.loads(line) for line in text.split("<tools>\n")[1].split("\n</tools>")[0].splitlines()]
    assert [each["name"] for each in listed] == ["add", "mcp__lab__add", "apply_patch"]
    assert '<tool_call>{"name": "the name", "arguments": {"the": "arguments"}}</tool_call>' in text


def test_calls_of_the_past_are_written_in_the_form_that_is_asked_for() -> None:
    assert written_calls(
        (ToolCall("1", "add", '{"a": 1}', namespace="mcp__lab"), ToolCall("2", "apply_patch", "x", kind="freeform"))
    ) == (
        '<tool_call>{"name": "mcp__lab__add", "arguments": {"a": 1}}</tool_call>\n'
        '<tool_call>{"name": "apply_patch", "arguments": {"input": "x"}}</tool_call>'
    )


def test_more_tools_than_can_be_chosen_between_are_not_forced() -> None:
    with pytest.raises(InvalidField) as raised:
        forced_schema(tuple(ToolSpec(f"tool_{index}") for index in range(1001)), parallel=False)
    assert raised.value.field == "tools"
