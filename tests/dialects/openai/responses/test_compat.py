"""The lines of the manifest for Responses: what is refused, what has no effect, what is only told back."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from diglot.core.request import CountTokens, Respond
from diglot.dialects.openai.compat_responses import COMPACT, COUNT, RESPONSES, RESPONSES_TRAITS
from diglot.dialects.operation import Parsed
from tests.dialects.openai.bodies import LEAST, PARSERS, SCHEMA, given_back, said_in_items
from tests.dialects.openai.material import refusal, wire

ALL: Final = (RESPONSES, COMPACT, COUNT)
_REFUSED: Final[dict[str, dict[str, Any]]] = {
    "input.content.file_id": said_in_items({"type": "input_image", "file_id": "f"}),
    "input.content.file_url": said_in_items({"type": "input_file", "file_url": "f"}),
    "input.output.file_id": given_back({"type": "input_file", "file_id": "f"}),
    "input.output.file_url": given_back({"type": "input_file", "file_url": "f"}),
    "conversation": {"conversation": "conv_1"},
    "prompt": {"prompt": {"id": "p"}},
    "moderation": {"moderation": {"model": "m"}},
    "n": {"n": 2},
}
REFUSED: Final = (
    *((operation, field, body) for operation in ALL for field, body in _REFUSED.items()),
    (COMPACT, "background", {"background": True}),
)


@pytest.mark.parametrize(("operation", "field", "body"), REFUSED, ids=[field for _, field, _ in REFUSED])
def test_a_refused_field_is_named(operation: str, field: str, body: dict[str, Any]) -> None:
    error = refusal(PARSERS[operation], {**LEAST[operation], **body})
    assert error["status"] == 400
    assert error["param"].replace("[0]", "") == field
    assert error["code"] == "unsupported_parameter"


def test_every_refused_field_is_shown_and_no_other() -> None:
    told = {(trait.operation, trait.field) for trait in RESPONSES_TRAITS if trait.support == "refused"}
    assert told == {(operation, field) for operation, field, _ in REFUSED}


_CUSTOM: Final = {"type": "custom", "name": "write"}
_LOOK: Final = {"type": "function", "name": "look", "parameters": {}}
WITHOUT_EFFECT: Final[dict[str, Any]] = {
    "reasoning.mode": {"reasoning": {"mode": "pro"}},
    "reasoning.context": {"reasoning": {"context": "all_turns"}},
    "text.verbosity": {"text": {"verbosity": "low"}},
    "max_tool_calls": {"max_tool_calls": 3},
    "user": {"user": "me"},
    "safety_identifier": {"safety_identifier": "me"},
    "service_tier": {"service_tier": "flex"},
    "prompt_cache_key": {"prompt_cache_key": "key"},
    "prompt_cache_options": {"prompt_cache_options": {"mode": "explicit"}},
    "prompt_cache_retention": {"prompt_cache_retention": "24h"},
    "stream_options": {"stream_options": {"include_obfuscation": True, "include_usage": True}},
    "image": {"image": {"context_compression": "auto"}},
    "access_programs": {"access_programs": {"cyber": "standard"}},
    "background_options": {"background_options": {"completion_window": "soonest"}},
    "personality": {"personality": "pragmatic"},
    "*": {"unheard_of": ["thing"]},
}
"""Beside the least body."""

_ITEM: Final = {"type": "message", "role": "user", "content": "hi"}
_TEXT: Final = {"type": "input_text", "text": "hi"}
_RESULT: Final = {"type": "function_call_output", "call_id": "c"}
_SHELL: Final = {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}
_PATCH: Final = {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}}
_FOUND: Final = {"type": "tool_search_output", "call_id": "c", "tools": [_LOOK]}
_THOUGHT: Final = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
_SPACE: Final = {"type": "namespace", "name": "s", "description": "d", "tools": [_LOOK]}


def _items(*items: dict[str, Any]) -> dict[str, Any]:
    return {"input": list(items)}


BESIDE: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "input.*": (
        _items(_ITEM),
        _items({**_ITEM, "internal_chat_message_metadata_passthrough": {}, "status": "completed"}),
    ),
    "input.content.*": (
        _items({**_ITEM, "content": [_TEXT]}),
        _items({**_ITEM, "content": [{**_TEXT, "prompt_cache_breakpoint": {"mode": "explicit"}}]}),
    ),
    "input.output.*": (
        _items({**_RESULT, "output": [_TEXT]}),
        _items({**_RESULT, "output": [{**_TEXT, "detail": "low"}]}),
    ),
    "input.tools.*": (_items(_FOUND), _items({**_FOUND, "tools": [{**_LOOK, "defer_loading": True}]})),
    "input.summary.*": (
        _items(_THOUGHT),
        _items({**_THOUGHT, "summary": [{"type": "text", "text": "hm"}]}),
    ),
    "tools.*": ({"tools": []}, {"tools": [{"type": "web_search", "external_web_access": True}]}),
    "tools.tools.*": ({"tools": [_SPACE]}, {"tools": [{**_SPACE, "tools": [{**_LOOK, "async": True}]}]}),
    "tools.execution": ({"tools": []}, {"tools": [{"type": "tool_search", "execution": "server"}]}),
    "tools.format": ({"tools": [_CUSTOM]}, {"tools": [{**_CUSTOM, "format": {"type": "text"}}]}),
    "tool_choice.server_label": (
        {"tools": [_LOOK], "tool_choice": {"type": "function", "name": "look"}},
        {"tools": [_LOOK], "tool_choice": {"type": "function", "name": "look", "server_label": "s"}},
    ),
    "text.format.description": (
        {"text": {"format": {"type": "json_schema", "name": "it", "schema": SCHEMA}}},
        {"text": {"format": {"type": "json_schema", "name": "it", "schema": SCHEMA, "description": "d"}}},
    ),
}
"""Two bodies that mean the same."""
KEPT: Final = {
    "input.action.*": _items({**_SHELL, "action": {"commands": ["ls"], "unheard_of": 1}}),
    "input.operation.*": _items({**_PATCH, "operation": {"type": "delete_file", "path": "a", "unheard_of": 1}}),
}
"""What is not known in these is passed on to the model, which may have written it."""

NO_ANSWER: Final[dict[str, Any]] = {
    "stream": True,
    "temperature": 0.5,
    "top_p": 0.5,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "seed": 1,
    "max_output_tokens": 5,
    "max_tokens": 5,
    "stop": "END",
    "logit_bias": {"1": 1},
    "top_k": 5,
    "min_p": 0.5,
    "typical_p": 0.5,
    "repeat_penalty": 1.5,
    "repetition_penalty": 1.5,
    "repeat_last_n": 5,
    "options": dict.fromkeys(
        ("seed", "temperature", "top_k", "top_p", "min_p", "typical_p", "repeat_last_n", "repeat_penalty"), 1
    )
    | dict.fromkeys(("presence_penalty", "frequency_penalty", "num_predict"), 1)
    | {"stop": "END"},
    "parallel_tool_calls": False,
    "text": {"format": {"type": "json_schema", "name": "it", "schema": SCHEMA, "strict": True}},
    "reasoning": {"summary": "auto", "generate_summary": "auto"},
    "include": ["message.output_text.logprobs"],
    "top_logprobs": 3,
    "truncation": "auto",
    "context_management": [{"type": "compaction", "compact_threshold": 1000}],
    "metadata": {"a": "b"},
}
"""Without effect where no answer is made."""


def asked(parsed: Parsed) -> Any:
    """Return what is asked for, without what is only told back."""
    match parsed.request:
        case Respond() as respond:
            return _bare(respond)
        case CountTokens(respond=respond):
            return _bare(respond)
        case other:
            return other


def _bare(respond: Respond) -> Any:
    return {name: getattr(respond, name) for name in respond.__struct_fields__ if name != "echo"}


@pytest.mark.parametrize("operation", ALL)
@pytest.mark.parametrize("body", WITHOUT_EFFECT.values(), ids=list(WITHOUT_EFFECT))
def test_a_field_without_effect_changes_nothing(operation: str, body: dict[str, Any]) -> None:
    least, parse = LEAST[operation], PARSERS[operation]
    assert asked(parse(wire({**least, **body}))) == asked(parse(wire(least)))


@pytest.mark.parametrize("operation", ALL)
@pytest.mark.parametrize(("plain", "richer"), BESIDE.values(), ids=list(BESIDE))
def test_a_field_without_effect_inside_another_changes_nothing(
    operation: str, plain: dict[str, Any], richer: dict[str, Any]
) -> None:
    least, parse = LEAST[operation], PARSERS[operation]
    assert asked(parse(wire({**least, **richer}))) == asked(parse(wire({**least, **plain})))


@pytest.mark.parametrize("body", KEPT.values(), ids=list(KEPT))
def test_what_is_not_known_in_an_action_is_taken(body: dict[str, Any]) -> None:
    PARSERS[RESPONSES](wire(body))


@pytest.mark.parametrize("operation", [COMPACT, COUNT])
@pytest.mark.parametrize(("field", "value"), NO_ANSWER.items(), ids=list(NO_ANSWER))
def test_what_shapes_an_answer_changes_nothing_where_none_is_made(operation: str, field: str, value: Any) -> None:
    least, parse = LEAST[operation], PARSERS[operation]
    assert asked(parse(wire({**least, field: value}))) == asked(parse(wire(least)))


@pytest.mark.parametrize(("field", "value"), [("store", True), ("background", True)])
def test_a_count_is_neither_stored_nor_made_later(field: str, value: Any) -> None:
    parse = PARSERS[COUNT]
    assert asked(parse(wire({**LEAST[COUNT], field: value}))) == asked(parse(wire(LEAST[COUNT])))


def _paths(value: Any, path: str) -> Iterator[str]:
    yield path
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            for name, inner in each.items():
                yield from _paths(inner, f"{path}.{name}")


def test_every_field_without_effect_is_tried() -> None:
    told = {trait.field for trait in RESPONSES_TRAITS if trait.support == "ignored"}
    tried = {path for field, value in NO_ANSWER.items() for path in _paths(value, field)} | {"store", "background"}
    tried |= WITHOUT_EFFECT.keys() | BESIDE.keys() | KEPT.keys()
    assert {field for field in told - tried if not field.startswith("tools.format.")} == set()
