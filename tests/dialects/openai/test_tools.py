"""Tools: which schemas are taken, and how."""

from typing import Any

import pytest

from diglot.core.request import Generation, ToolChoice, ToolMode, ToolSpec
from diglot.dialects.openai.chat import parse
from diglot.dialects.openai.tools import UNHELD
from tests.dialects.openai.material import chat, function, refusal, wire

LOOKING_AHEAD = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?!x)y"}}}


def request(**fields: Any) -> Generation:
    made = parse(wire(chat(**fields))).request
    assert isinstance(made, Generation)
    return made


def grammar(definition: str, syntax: str) -> dict[str, Any]:
    form = {"type": "grammar", "grammar": {"definition": definition, "syntax": syntax}}
    return {"type": "custom", "custom": {"name": "patch", "format": form}}


def test_a_tool_without_parameters_takes_none() -> None:
    assert request(tools=[function("wait")]).tools == (ToolSpec(name="wait"),)


@pytest.mark.parametrize("choice", ["auto", None])
def test_tools_may_be_chosen_by_the_model(choice: str | None) -> None:
    assert request(tools=[function()], tool_choice=choice).tool_choice == ToolChoice(ToolMode.AUTO)


@pytest.mark.parametrize("choice", ["auto", "none", None])
def test_a_choice_without_tools_is_taken_where_it_needs_none(choice: str | None) -> None:
    assert request(tool_choice=choice).tools == ()


def test_functions_make_one_call_at_a_time() -> None:
    assert not request(functions=[{"name": "look"}]).parallel_calls
    assert request(tools=[function()]).parallel_calls


def test_what_no_grammar_can_enforce_is_left_out_of_a_tool() -> None:
    (tool,) = request(tools=[function(parameters=LOOKING_AHEAD)]).tools
    assert tool.parameters == {"type": "object", "properties": {"a": {"type": "string"}}}


def test_what_no_grammar_can_enforce_is_refused_in_a_strict_tool() -> None:
    error = refusal(parse, chat(tools=[function(parameters=LOOKING_AHEAD, strict=True)]))
    assert error["param"] == "tools[0].function.parameters.properties.a.pattern"
    assert error["code"] == "unsupported_parameter"


@pytest.mark.parametrize("pattern", ["(" * 60_000, "^+a", "^{2}x", "a{99999999}", "((a{999}){999}){999}"])
@pytest.mark.parametrize("where", ["tool", "format"])
def test_a_pattern_that_would_break_an_engine_is_refused(pattern: str, where: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    if where == "tool":
        body, path = chat(tools=[function(parameters=schema)]), "tools[0].function.parameters"
    else:
        body = chat(response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": schema}})
        path = "response_format.json_schema.schema"
    error = refusal(parse, body)
    assert (error["status"], error["param"]) == (400, f"{path}.properties.a.pattern")
    assert len(error["message"]) < 300


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "foo"}, ".type"),
        ({"$ref": "#"}, ""),
        ({"$ref": "#/$defs/a"}, ".$ref"),
        ({"$ref": "https://example.com/schema"}, ".$ref"),
        ({"properties": {"a": {"uniqueItems": True}}}, ".properties.a.uniqueItems"),
    ],
)
def test_a_schema_that_cannot_be_enforced_is_refused_with_its_path(schema: dict[str, Any], path: str) -> None:
    error = refusal(parse, chat(response_format={"type": "json_schema", "json_schema": {"schema": schema}}))
    assert (error["status"], error["param"]) == (400, f"response_format.json_schema.schema{path}")


def test_a_regex_of_a_custom_tool_becomes_a_grammar() -> None:
    (tool,) = request(tools=[grammar(r"a\/b/c\\", "regex")]).tools
    assert tool.grammar == r"start: /a\/b\/c\\/"


def test_a_grammar_of_a_custom_tool_is_kept() -> None:
    (tool,) = request(tools=[grammar('start: "a"', "lark")]).tools
    assert tool.grammar == 'start: "a"'


def test_that_nothing_is_held_to_a_grammar_is_noted_for_the_log() -> None:
    assert parse(wire(chat(tools=[grammar("a", "regex")]))).notes == (UNHELD,)
    assert parse(wire(chat(tools=[function("look")]))).notes == ()


@pytest.mark.parametrize(("pattern", "code"), [("(", "invalid_value"), ("(?=a)", "unsupported_parameter")])
def test_a_bad_regex_of_a_custom_tool_is_refused(pattern: str, code: str) -> None:
    error = refusal(parse, chat(tools=[grammar(pattern, "regex")]))
    assert (error["param"], error["code"]) == ("tools[0].custom.format.grammar.definition", code)


def test_allowed_tools_name_at_least_one() -> None:
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}
    error = refusal(parse, chat(tools=[function()], tool_choice=choice))
    assert error["param"] == "tool_choice.allowed_tools.tools"


def test_an_argument_that_could_change_the_prompt_is_refused() -> None:
    error = refusal(parse, chat(chat_template_kwargs={"tokenize": True}))
    assert (error["status"], error["param"]) == (400, "chat_template_kwargs.tokenize")


def test_an_unknown_option_is_refused() -> None:
    assert refusal(parse, chat(options={"mirostat": 1}))["param"] == "options.mirostat"


@pytest.mark.parametrize(("modalities", "audio"), [(["text", "audio"], None), (["text"], {"voice": "alloy"})])
def test_speech_is_refused(modalities: list[str], audio: object) -> None:
    assert refusal(parse, chat(modalities=modalities, audio=audio))["status"] == 400
