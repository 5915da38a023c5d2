"""The table of fields, held against OpenAI's types, our own structs, and what parsing does."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import pytest
import typing_extensions
from openai.types import completion_create_params, embedding_create_params
from openai.types.chat import completion_create_params as chat_create_params
from openai.types.responses import input_token_count_params, response_compact_params, response_create_params

from diglot.dialects.openai import DIALECT
from diglot.dialects.openai.compat import CHAT, COMPLETIONS, EMBEDDINGS, RERANK, TRAITS
from diglot.dialects.openai.compat_responses import COMPACT, COUNT, RESPONSES, RESPONSES_TRAITS
from tests.dialects.openai.bodies import LEAST, PARSERS, SCHEMA, said, user
from tests.dialects.openai.material import SHOWN, data_url, png, refusal, wire

ORACLES: Final = {
    CHAT: chat_create_params.CompletionCreateParamsStreaming,
    COMPLETIONS: completion_create_params.CompletionCreateParamsStreaming,
    EMBEDDINGS: embedding_create_params.EmbeddingCreateParams,
    RESPONSES: response_create_params.ResponseCreateParamsStreaming,
    COMPACT: response_compact_params.ResponseCompactParams,
    COUNT: input_token_count_params.InputTokenCountParams,
}
BODIES: Final = {
    f"{operation.method} {operation.path}": operation.body for operation in DIALECT.operations if operation.body
}


def spec_fields(kind: Any, path: str = "") -> Iterator[str]:
    """Yield the dotted paths of a typed dictionary of the `openai` package."""
    if typing_extensions.is_typeddict(kind):
        for name, inner in typing_extensions.get_type_hints(kind).items():
            yield f"{path}{name}"
            yield from spec_fields(inner, f"{path}{name}.")
    elif typing.get_origin(kind) not in {dict, Literal, typing_extensions.Literal}:
        for inner in typing.get_args(kind):
            yield from spec_fields(inner, path)


def struct_fields(kind: msgspec.inspect.Type, path: str = "") -> Iterator[str]:
    """Yield the dotted paths of one of our structs."""
    match kind:
        case msgspec.inspect.StructType():
            if kind.tag_field:
                yield f"{path}{kind.tag_field}"
            for field in kind.fields:
                yield f"{path}{field.encode_name}"
                yield from struct_fields(field.type, f"{path}{field.encode_name}.")
        case msgspec.inspect.ListType():
            yield from struct_fields(kind.item_type, path)
        case msgspec.inspect.UnionType():
            for inner in kind.types:
                yield from struct_fields(inner, path)
        case _:
            pass


def missing(operation: str, fields: Iterator[str]) -> list[str]:
    """Return the fields that no line speaks of, nor a line of something around them that is not honoured."""
    told = {trait.field: trait.support for trait in TRAITS if trait.operation == operation}

    def is_told(field: str) -> bool:
        around = [field[:at] for at, letter in enumerate(field) if letter == "."]
        return field in told or any(told.get(each) in {"refused", "ignored"} or f"{each}.*" in told for each in around)

    return sorted({field for field in fields if not is_told(field)})


@pytest.mark.parametrize("operation", ORACLES)
def test_every_field_of_the_specification_is_told(operation: str) -> None:
    assert missing(operation, spec_fields(ORACLES[operation])) == []


@pytest.mark.parametrize("operation", BODIES)
def test_every_field_of_our_structs_is_told(operation: str) -> None:
    assert missing(operation, struct_fields(msgspec.inspect.type_info(BODIES[operation]))) == []


def test_every_line_is_of_an_operation_and_stands_once() -> None:
    lines = [(trait.operation, trait.field) for trait in TRAITS]
    assert len(lines) == len(set(lines))
    assert {operation for operation, _ in lines} == set(BODIES)


def test_what_has_no_effect_says_why() -> None:
    assert [trait.field for trait in TRAITS if trait.support != "honoured" and not trait.note] == []


def test_every_honoured_field_is_shown_and_no_other(request: pytest.FixtureRequest) -> None:
    shown = request.config.stash[SHOWN]
    if shown.files < {path.name for path in Path(__file__).parent.glob("test_*.py")}:
        pytest.skip("only some of the tests that show fields were collected")
    assert shown.fields == {(trait.operation, trait.field) for trait in TRAITS if trait.support == "honoured"}


OTHERS: Final = tuple(trait for trait in TRAITS if trait not in RESPONSES_TRAITS)
"""All but those of Responses, which `responses/test_compat.py` tries."""

REFUSED: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    (CHAT, "audio", {"audio": {"voice": "alloy", "format": "wav"}}),
    (CHAT, "messages.audio", said({"role": "assistant", "audio": {"id": "a"}})),
    (
        CHAT,
        "messages.content.input_audio",
        user({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}),
    ),
    (CHAT, "messages.content.file", user({"type": "file", "file": {"file_id": "f"}})),
    (CHAT, "web_search_options", {"web_search_options": {}}),
    (CHAT, "moderation", {"moderation": {"model": "m"}}),
    (COMPLETIONS, "best_of", {"best_of": 2}),
    (RERANK, "max_tokens_per_doc", {"max_tokens_per_doc": 100}),
    (RERANK, "max_chunks_per_doc", {"max_chunks_per_doc": 1}),
    (RERANK, "truncate_prompt_tokens", {"truncate_prompt_tokens": 100}),
)


@pytest.mark.parametrize(("operation", "field", "body"), REFUSED, ids=[field for _, field, _ in REFUSED])
def test_a_refused_field_is_named(operation: str, field: str, body: dict[str, Any]) -> None:
    error = refusal(PARSERS[operation], {**LEAST[operation], **body})
    assert error["status"] == 400
    assert error["param"].replace("[0]", "") == field
    assert error["code"] == "unsupported_parameter"


def test_every_refused_field_is_shown_and_no_other() -> None:
    told = {(trait.operation, trait.field) for trait in OTHERS if trait.support == "refused"}
    assert told == {(operation, field) for operation, field, _ in REFUSED}


IGNORED: Final[dict[str, Any]] = {
    "prediction": {"type": "content", "content": "x"},
    "verbosity": "low",
    "store": True,
    "metadata": {"a": "b"},
    "user": "me",
    "safety_identifier": "me",
    "service_tier": "flex",
    "prompt_cache_key": "key",
    "prompt_cache_options": {"mode": "explicit"},
    "prompt_cache_retention": "24h",
    "stream_options.include_obfuscation": True,
    "*": {"new": ["thing"]},
}
INSIDE: Final = {
    "messages.name": said({"role": "user", "content": "hi", "name": "me"}),
    "messages.content.image_url.detail": user(
        {"type": "image_url", "image_url": {"url": data_url(png()), "detail": "low"}}
    ),
    "messages.content.prompt_cache_breakpoint": user(
        {"type": "text", "text": "hi", "prompt_cache_breakpoint": {"mode": "explicit"}}
    ),
    "tools.custom.format": {"tools": [{"type": "custom", "custom": {"name": "a", "format": {"type": "text"}}}]},
    "response_format.json_schema.description": {
        "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA, "description": "d"}}
    },
}


def _ignored() -> Iterator[tuple[str, dict[str, Any]]]:
    for trait in OTHERS:
        if trait.support == "ignored" and trait.field in IGNORED:
            body: Any = IGNORED[trait.field]
            for name in reversed(trait.field.replace("*", "unheard_of").split(".")):
                body = {name: body}
            yield trait.operation, body


@pytest.mark.parametrize(("operation", "body"), list(_ignored()), ids=str)
def test_a_field_without_effect_changes_nothing(operation: str, body: dict[str, Any]) -> None:
    least = LEAST[operation]
    assert PARSERS[operation](wire({**least, **body})) == PARSERS[operation](wire(least))


@pytest.mark.parametrize("body", INSIDE.values(), ids=list(INSIDE))
def test_a_field_without_effect_inside_another_is_taken(body: dict[str, Any]) -> None:
    PARSERS[CHAT](wire({**LEAST[CHAT], **body}))


def test_every_field_without_effect_is_tried() -> None:
    told = {trait.field for trait in OTHERS if trait.support == "ignored"}
    assert {field for field in told if not field.startswith("tools.custom.format.")} == IGNORED.keys() | INSIDE.keys()
