"""Every field of Responses that is honoured, with a body that asks for it and the place where it arrives."""

import base64
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from diglot.core.items import Compaction, Image, Message, Reasoning, Text, ToolCall, ToolResult
from diglot.core.request import (
    AnyJson,
    Compacting,
    CountTokens,
    Generation,
    JsonSchema,
    Overflow,
    Respond,
    ToolChoice,
    ToolMode,
    ToolSpec,
)
from diglot.dialects.openai.compat_responses import COMPACT, COUNT, RESPONSES
from diglot.dialects.operation import Parsed
from tests.dialects.openai.bodies import LEAST, PARSERS, SCHEMA
from tests.dialects.openai.material import data_url, png, wire

ALL: Final = (RESPONSES, COMPACT, COUNT)


class Case(NamedTuple):
    """A body beside the least one, what to look at, and what is seen there. Shows one field or several."""

    operation: str
    fields: str
    body: dict[str, Any]
    look: Callable[[Parsed], Any]
    seen: Any


def respond(parsed: Parsed) -> Respond:
    """Return what is asked for."""
    request = parsed.request.respond if isinstance(parsed.request, CountTokens) else parsed.request
    assert isinstance(request, Respond)
    return request


def generation(parsed: Parsed) -> Generation:
    """Return the answer that is asked for."""
    return respond(parsed).generation


def last(parsed: Parsed) -> Any:
    """Return the last item."""
    return generation(parsed).prompt.items[-1]  # type: ignore[union-attr]


def _of(name: str) -> Callable[[Parsed], Any]:
    return lambda parsed: getattr(generation(parsed), name)


def _asked(name: str) -> Callable[[Parsed], Any]:
    return lambda parsed: getattr(respond(parsed), name)


def _sampling(name: str) -> Callable[[Parsed], Any]:
    return lambda parsed: getattr(generation(parsed).sampling, name)


def _load(name: str) -> Callable[[Parsed], Any]:
    return lambda parsed: getattr(generation(parsed).residence.load, name)


def _items(*items: Any) -> dict[str, Any]:
    return {"input": list(items)}


def _everywhere(fields: str, body: dict[str, Any], look: Callable[[Parsed], Any], seen: Any) -> Iterator[Case]:
    return (Case(operation, fields, body, look, seen) for operation in ALL)


def _residence_cases() -> Iterator[Case]:
    residence = _of("residence")
    yield from _everywhere("model", {"model": "a/b:c"}, lambda parsed: residence(parsed).model, "a/b:c")
    yield from _everywhere("keep_alive", {"keep_alive": "1.5h"}, lambda parsed: residence(parsed).keep_alive, 5400.0)
    yield from _everywhere("num_ctx", {"num_ctx": 512}, _load("window"), 512)
    loads = {"num_ctx": "window", "num_batch": "batch", "num_thread": "threads", "num_gpu": "gpu_layers"}
    loads |= {"main_gpu": "main_gpu"}
    for field, name in loads.items():
        yield from _everywhere(f"options options.{field}", {"options": {field: 64}}, _load(name), 64)
    yield from _everywhere("options.use_mmap", {"options": {"use_mmap": False}}, _load("use_mmap"), seen=False)


def _message_cases() -> Iterator[Case]:
    yield from _everywhere("input", {"input": "Hello"}, last, Message(role="user", content=(Text("Hello"),)))
    marked = {"type": "message", "role": "assistant", "content": "Hello", "id": "msg_1", "phase": "commentary"}
    seen = Message(role="assistant", content=(Text("Hello"),), id="msg_1", phase="commentary")
    fields = "input.type input.role input.content input.id input.phase"
    yield from _everywhere(fields, _items(marked), last, seen)
    parts = [{"type": "input_text", "text": "a"}, {"type": "refusal", "refusal": "b"}]
    parts.append({"type": "input_image", "image_url": data_url(png())})
    several = (Text("a"), Text("b"), Image(data=png(), media_type="image/png"))
    fields = "input.content.type input.content.text input.content.refusal input.content.image_url"
    body = _items({"role": "user", "content": parts})
    yield from _everywhere(fields, body, last, Message(role="user", content=several))
    data = base64.b64encode(b"line").decode()
    file = {"type": "input_file", "file_data": f"data:text/plain;base64,{data}", "filename": "a.txt"}
    fields = "input.content.file_data input.content.filename"
    seen = Message(role="user", content=(Text("[a.txt]\nline"),))
    yield from _everywhere(fields, _items({"role": "user", "content": [file]}), last, seen)
    fields = "input.output.file_data input.output.filename"
    body = _items({"type": "function_call_output", "call_id": "c", "output": [file]})
    yield from _everywhere(fields, body, last, ToolResult(call_id="c", content=(Text("[a.txt]\nline"),)))


def _history_cases() -> Iterator[Case]:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"}
    fields = "input.summary input.summary.text input.encrypted_content"
    yield from _everywhere(fields, _items(thought), last, Reasoning("hm", sealed="x"))
    folded = {"type": "compaction", "encrypted_content": "x"}
    yield from _everywhere(
        "input.encrypted_content", _items(folded), last, Compaction("x", origin="input[0].encrypted_content")
    )
    call = {"type": "function_call", "call_id": "c", "name": "n", "namespace": "s", "arguments": '{"a": "cut o'}
    made = ToolCall(call_id="c", name="n", namespace="s", arguments='{"a": "cut o')
    yield from _everywhere("input.call_id input.name input.namespace input.arguments", _items(call), last, made)
    custom = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "text"}
    made = ToolCall(call_id="c", name="patch", arguments="text", kind="freeform")
    yield from _everywhere("input.input", _items(custom), last, made)
    shell = {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}
    made = ToolCall(call_id="c", name="shell", arguments='{"commands":["ls"]}', kind="shell")
    yield from _everywhere("input.action", _items(shell), last, made)
    patch = {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}}
    arguments = '{"type":"delete_file","path":"a"}'
    made = ToolCall(call_id="c", name="apply_patch", arguments=arguments, kind="patch")
    yield from _everywhere("input.operation", _items(patch), last, made)
    output = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": data_url(png())}]
    result = {"type": "function_call_output", "call_id": "c", "output": output}
    seen = ToolResult(call_id="c", content=(Text("a"), Image(data=png(), media_type="image/png")))
    fields = "input.output input.output.type input.output.text input.output.image_url"
    yield from _everywhere(fields, _items(result), last, seen)
    yield from _everywhere("instructions", {"instructions": "Be."}, _asked("instructions"), "Be.")
    yield from _everywhere("previous_response_id", {"previous_response_id": "resp_a1"}, _asked("previous"), "a1")


_LOOK: Final = {"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA, "strict": True}
_LOOKED: Final = ToolSpec(name="look", description="Looks.", parameters=SCHEMA, strict=True)
_GRAMMAR: Final = {"type": "grammar", "syntax": "lark", "definition": "start: /a/"}
_PATCH: Final = {"type": "custom", "name": "patch", "description": "Patches.", "format": _GRAMMAR}
_SPACE: Final = {"type": "namespace", "name": "mcp__lab", "description": "A lab.", "tools": [_LOOK, _PATCH]}


def _tool_cases() -> Iterator[Case]:
    fields = "tools tools.type tools.name tools.description tools.parameters tools.strict"
    yield from _everywhere(fields, {"tools": [_LOOK]}, _of("tools"), (_LOOKED,))
    yield from _everywhere(
        "tools.tools",
        {"tools": [_SPACE]},
        lambda parsed: [(tool.namespace, tool.name) for tool in generation(parsed).tools],
        [("mcp__lab", "look"), ("mcp__lab", "patch")],
    )
    found = {"type": "tool_search_output", "call_id": "c", "tools": [_LOOK]}
    yield from _everywhere("input.tools", _items(found), _asked("found"), (_LOOKED,))
    more = {"type": "additional_tools", "role": "developer", "tools": [_LOOK]}
    yield from _everywhere("input.tools", _items(more), _asked("found"), (_LOOKED,))


def _choice_cases() -> Iterator[Case]:
    def chosen(choice: Any) -> dict[str, Any]:
        return {"tools": [_LOOK, _SPACE, {"type": "shell"}], "tool_choice": choice}

    look = _of("tool_choice")
    yield from _everywhere("tool_choice", chosen("none"), look, ToolChoice(ToolMode.NONE))
    yield from _everywhere("tool_choice", chosen("required"), look, ToolChoice(ToolMode.REQUIRED))
    one = ToolChoice(ToolMode.REQUIRED, names=("look",))
    yield from _everywhere("tool_choice.type tool_choice.name", chosen({"type": "function", "name": "look"}), look, one)
    spaced = {"type": "function", "name": "look", "namespace": "mcp__lab"}
    flat = ToolChoice(ToolMode.REQUIRED, names=("mcp__lab__look",))
    yield from _everywhere("tool_choice.namespace", chosen(spaced), look, flat)
    shell = ToolChoice(ToolMode.REQUIRED, names=("shell",))
    yield from _everywhere("tool_choice.type", chosen({"type": "shell"}), look, shell)
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [spaced, {"type": "shell"}, {"type": "mcp"}]}
    fields = "tool_choice.mode tool_choice.tools tool_choice.tools.type tool_choice.tools.name"
    some = ToolChoice(ToolMode.AUTO, names=("mcp__lab__look", "shell"))
    yield from _everywhere(f"{fields} tool_choice.tools.namespace", chosen(allowed), look, some)


def _thinking_cases() -> Iterator[Case]:
    for effort, meant in (("minimal", "low"), ("medium", "medium"), ("xhigh", "max"), ("none", "none")):
        yield from _everywhere("reasoning reasoning.effort", {"reasoning": {"effort": effort}}, _of("think"), meant)


def _one(fields: str, body: dict[str, Any], look: Callable[[Parsed], Any], seen: Any) -> Case:
    return Case(RESPONSES, fields, body, look, seen)


def _sampling_cases() -> Iterator[Case]:
    values: dict[str, Any] = {"temperature": 0.5, "top_p": 0.5, "top_k": 5, "min_p": 0.1, "typical_p": 0.2}
    values |= {"repeat_penalty": 1.1, "repeat_last_n": 8, "presence_penalty": 0.5, "frequency_penalty": -0.5, "seed": 7}
    for field, value in values.items():
        yield _one(field, {field: value}, _sampling(field), value)
        yield _one(f"options.{field}", {"options": {field: value}}, _sampling(field), value)
    yield _one("repetition_penalty", {"repetition_penalty": 1.1}, _sampling("repeat_penalty"), 1.1)
    yield _one("max_output_tokens", {"max_output_tokens": 9, "max_tokens": 3}, _sampling("max_tokens"), 9)
    yield _one("max_tokens", {"max_tokens": 3}, _sampling("max_tokens"), 3)
    yield _one("options.num_predict", {"options": {"num_predict": 5}}, _sampling("max_tokens"), 5)
    yield _one("stop", {"stop": ["a", "", "b"]}, _sampling("stop"), ("a", "b"))
    yield _one("options.stop", {"options": {"stop": "END"}}, _sampling("stop"), ("END",))
    yield _one("logit_bias", {"logit_bias": {"17": -100}}, _sampling("logit_bias"), {17: -100})


def _answer_cases() -> Iterator[Case]:
    yield _one("stream", {"stream": True}, lambda parsed: parsed.stream, seen=True)
    yield _one("parallel_tool_calls", {"parallel_tool_calls": False}, _of("parallel_calls"), seen=False)
    yield _one(
        "text text.format text.format.type", {"text": {"format": {"type": "json_object"}}}, _of("format"), AnyJson()
    )
    schema = {"type": "json_schema", "name": "it", "schema": SCHEMA}
    fields = "text.format.name text.format.schema"
    yield _one(fields, {"text": {"format": schema}}, _of("format"), JsonSchema(schema=SCHEMA, name="it"))
    loose = JsonSchema(schema=SCHEMA, name="it", strict=False)
    yield _one("text.format.strict", {"text": {"format": {**schema, "strict": False}}}, _of("format"), loose)
    for field in ("summary", "generate_summary"):
        body = {"reasoning": {field: "auto"}}
        yield _one(f"reasoning.{field}", body, lambda parsed: parsed.view.open_text, seen=False)
    yield _one("include", {"include": ["message.output_text.logprobs"]}, _of("logprobs"), 0)
    yield _one("top_logprobs", {"top_logprobs": 3}, _of("logprobs"), 3)
    yield _one("truncation", {"truncation": "auto"}, _of("overflow"), Overflow.TRUNCATE)
    rule = {"type": "compaction", "compact_threshold": 1000}
    fields = "context_management context_management.type context_management.compact_threshold"
    yield _one(fields, {"context_management": [rule]}, _of("compacting"), Compacting(threshold=1000))
    yield _one(fields, {"context_management": [{"type": "compaction"}]}, _of("overflow"), Overflow.COMPACT)
    yield _one("store", {"store": False}, _asked("keep"), seen=False)
    yield _one("store", {}, _asked("keep"), seen=True)
    yield Case(COMPACT, "store", {"store": True}, _asked("keep"), seen=True)
    yield Case(COMPACT, "store", {}, _asked("keep"), seen=False)
    yield _one("background", {"background": True}, _asked("background"), seen=True)
    yield _one("metadata", {"metadata": {"a": "b"}}, lambda parsed: parsed.view.echo.metadata, {"a": "b"})


HONOURED: Final = (
    *_residence_cases(),
    *_message_cases(),
    *_history_cases(),
    *_tool_cases(),
    *_choice_cases(),
    *_thinking_cases(),
    *_sampling_cases(),
    *_answer_cases(),
)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.fields, marks=pytest.mark.shows(case.operation, *case.fields.split()))
        for case in HONOURED
    ],
)
def test_an_honoured_field_reaches_the_request(case: Case) -> None:
    parse, least = PARSERS[case.operation], LEAST[case.operation]
    assert case.look(parse(wire({**least, **case.body}))) == case.seen
