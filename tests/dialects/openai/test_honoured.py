"""Every field that is honoured, with a body that asks for it and the place where it arrives."""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from diglot.core.items import Image, Message, Reasoning, Text, ToolCall, ToolResult
from diglot.core.request import AnyJson, JsonSchema, ToolChoice, ToolMode, ToolSpec
from diglot.dialects.openai.compat import CHAT, COMPLETIONS, EMBEDDINGS, RERANK
from diglot.dialects.operation import Parsed
from tests.dialects.openai.bodies import LEAST, PARSERS, SCHEMA, said, user
from tests.dialects.openai.material import data_url, function, png, wire


class Case(NamedTuple):
    """A body beside the least one, what to look at, and what is seen there. Shows one field or several."""

    operation: str
    fields: str
    body: dict[str, Any]
    look: Callable[[Parsed], Any]
    seen: Any


def _same(fields: str, value: Any, name: str = "") -> Iterator[Case]:
    """Chat and completions take this field for sampling, by this name."""
    look = _sampling(name or fields)
    for operation in (CHAT, COMPLETIONS):
        yield Case(operation, fields, {fields: value}, look, value)


def _option(field: str, value: Any, look: Callable[[Parsed], Any]) -> Iterator[Case]:
    for operation in (CHAT, COMPLETIONS):
        yield Case(operation, f"options options.{field}", {"options": {field: value}}, look, value)


def _sampling(name: str) -> Callable[[Parsed], Any]:
    return lambda parsed: getattr(parsed.request.sampling, name)  # type: ignore[union-attr]


def _load(name: str) -> Callable[[Parsed], Any]:
    return lambda parsed: getattr(parsed.request.residence.load, name)  # type: ignore[union-attr]


def _of(name: str) -> Callable[[Parsed], Any]:
    return lambda parsed: getattr(parsed.request, name)


def _last(parsed: Parsed) -> Any:
    return parsed.request.prompt.items[-1]  # type: ignore[union-attr]


_LOOK: Final = function("look", description="Looks.", parameters={"type": "object"}, strict=True)
_PATCH: Final = {"type": "custom", "custom": {"name": "patch", "description": "Patches."}}
_TOOLS: Final = [_LOOK, _PATCH]
_IMAGE: Final = Image(data=png(), media_type="image/png")
_LOOKED: Final = ToolSpec(name="look", description="Looks.", parameters={"type": "object"}, strict=True)


def _sampling_cases() -> Iterator[Case]:
    yield from _same("temperature", 0.5)
    yield from _same("top_p", 0.5)
    yield from _same("top_k", 5)
    yield from _same("min_p", 0.1)
    yield from _same("typical_p", 0.2)
    yield from _same("repeat_penalty", 1.1)
    yield from _same("repetition_penalty", 1.1, "repeat_penalty")
    yield from _same("repeat_last_n", 8)
    yield from _same("presence_penalty", 0.5)
    yield from _same("frequency_penalty", -0.5)
    yield from _same("seed", 7)
    yield from _same("max_tokens", 9)
    for operation in (CHAT, COMPLETIONS):
        yield Case(operation, "stop", {"stop": "END"}, _sampling("stop"), ("END",))
        yield Case(operation, "stop", {"stop": ["a", "", "b"]}, _sampling("stop"), ("a", "b"))
        yield Case(operation, "logit_bias", {"logit_bias": {"17": -100}}, _sampling("logit_bias"), {17: -100})
        yield Case(operation, "n", {"n": 3}, _of("choices"), 3)
        yield Case(operation, "n", {"n": 3}, lambda parsed: parsed.view.choices, 3)
        yield Case(operation, "stream", {"stream": True}, lambda parsed: parsed.stream, seen=True)
        usage = {"stream_options": {"include_usage": True}}
        fields = "stream_options stream_options.include_usage"
        yield Case(operation, fields, usage, lambda parsed: parsed.view.include_usage, seen=True)
        yield Case(operation, "num_ctx", {"num_ctx": 512}, _load("window"), 512)


def _option_cases() -> Iterator[Case]:
    samplings: dict[str, Any] = {
        "seed": 3,
        "temperature": 3.5,
        "top_k": 4,
        "top_p": 0.4,
        "min_p": 0.4,
        "typical_p": 0.4,
    }
    samplings |= {"repeat_last_n": 3, "repeat_penalty": 1.2, "presence_penalty": 3.0, "frequency_penalty": 3.0}
    for field, value in samplings.items():
        yield from _option(field, value, _sampling(field))
    yield from _option("num_predict", 5, _sampling("max_tokens"))
    loads = {"num_ctx": "window", "num_batch": "batch", "num_thread": "threads", "num_gpu": "gpu_layers"}
    for field, name in loads.items():
        yield from _option(field, 64, _load(name))
    yield from _option("main_gpu", 1, _load("main_gpu"))
    yield from _option("use_mmap", False, _load("use_mmap"))
    for operation in (CHAT, COMPLETIONS):
        yield Case(operation, "options.stop", {"options": {"stop": "END"}}, _sampling("stop"), ("END",))


def _residence_cases() -> Iterator[Case]:
    for operation in (CHAT, COMPLETIONS, EMBEDDINGS, RERANK):
        look = _of("residence")
        yield Case(operation, "model", {"model": "a/b:c"}, lambda parsed, look=look: look(parsed).model, "a/b:c")  # type: ignore[misc]
        yield Case(operation, "model", {"model": "a/b:c"}, lambda parsed: parsed.view.model, "a/b:c")
        for value, seconds in (("1.5h", 5400.0), (-1, float("inf")), ("-1m", float("inf")), (0, 0.0)):
            body = {"keep_alive": value}
            yield Case(operation, "keep_alive", body, lambda parsed, look=look: look(parsed).keep_alive, seconds)  # type: ignore[misc]


def _message_cases() -> Iterator[Case]:
    hello = Message(role="system", content=(Text("Hello"),))
    yield Case(
        CHAT, "messages messages.role messages.content", said({"role": "system", "content": "Hello"}), _last, hello
    )
    texts = user({"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"})
    fields = "messages.content.type messages.content.text messages.content.refusal"
    yield Case(CHAT, fields, texts, _last, Message(role="user", content=(Text("a"), Text("b"))))
    seen = Message(role="user", content=(_IMAGE,))
    url = data_url(png(), "image/jpeg")
    fields = "messages.content.image_url messages.content.image_url.url"
    yield Case(CHAT, fields, user({"type": "image_url", "image_url": {"url": url}}), _last, seen)
    yield Case(CHAT, "messages.content.image_url", user({"type": "image_url", "image_url": url}), _last, seen)
    no = Message(role="assistant", content=(Text("No."),))
    yield Case(CHAT, "messages.refusal", said({"role": "assistant", "refusal": "No."}), _last, no)
    for name in ("reasoning_content", "reasoning"):
        body = said({"role": "assistant", name: "Hm.", "content": ""})
        yield Case(CHAT, f"messages.{name}", body, _last, Reasoning(text="Hm."))


def _history_cases() -> Iterator[Case]:
    def called(call: dict[str, Any]) -> dict[str, Any]:
        return said({"role": "assistant", "content": None, "tool_calls": [{"id": "c1", **call}]})

    cut = {"type": "function", "function": {"name": "look", "arguments": '{"a": "cut o'}}
    fields = "messages.tool_calls messages.tool_calls.id messages.tool_calls.type messages.tool_calls.function"
    fields += " messages.tool_calls.function.name messages.tool_calls.function.arguments"
    yield Case(CHAT, fields, called(cut), _last, ToolCall(call_id="c1", name="look", arguments='{"a": "cut o'))
    unpacked = {"function": {"name": "look", "arguments": {"a": 1}}}
    yield Case(CHAT, fields, called(unpacked), _last, ToolCall(call_id="c1", name="look", arguments='{"a":1}'))
    custom = {"type": "custom", "custom": {"name": "patch", "input": "x"}}
    fields = "messages.tool_calls.custom messages.tool_calls.custom.name messages.tool_calls.custom.input"
    patch = ToolCall(call_id="c1", name="patch", arguments="x", kind="freeform")
    yield Case(CHAT, fields, called(custom), _last, patch)
    answer = said({"role": "tool", "tool_call_id": "c1", "content": "blue"})
    yield Case(CHAT, "messages.tool_call_id", answer, _last, ToolResult(call_id="c1", content=(Text("blue"),)))
    old = {"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}}
    fields = "messages.function_call messages.function_call.name messages.function_call.arguments"
    call = ToolCall(call_id="call_messages[0]", name="look", arguments="{}")
    yield Case(CHAT, fields, said(old), _last, call)
    result = ToolResult(call_id="call_messages[0]", content=(Text("blue"),), name="look")
    yield Case(CHAT, fields, said(old, {"role": "function", "name": "look", "content": "blue"}), _last, result)


def _tool_cases() -> Iterator[Case]:
    fields = "tools tools.type tools.function tools.function.name tools.function.description"
    fields += " tools.function.parameters tools.function.strict"
    yield Case(CHAT, fields, {"tools": [_LOOK]}, _of("tools"), (_LOOKED,))
    fields = "tools.custom tools.custom.name tools.custom.description"
    patch = ToolSpec(name="patch", description="Patches.", kind="freeform")
    yield Case(CHAT, fields, {"tools": [_PATCH]}, _of("tools"), (patch,))
    yield Case(CHAT, "parallel_tool_calls", {"parallel_tool_calls": False}, _of("parallel_calls"), seen=False)
    old = {"functions": [_LOOK["function"]]}
    fields = "functions functions.name functions.description functions.parameters functions.strict"
    yield Case(CHAT, fields, old, _of("tools"), (_LOOKED,))
    yield Case(CHAT, "functions", old, lambda parsed: parsed.view.old_calls, seen=True)
    named = ToolChoice(ToolMode.REQUIRED, names=("look",))
    choice = {**old, "function_call": {"name": "look"}}
    yield Case(CHAT, "function_call function_call.name", choice, _of("tool_choice"), named)
    yield Case(CHAT, "function_call", {**old, "function_call": "none"}, _of("tool_choice"), ToolChoice(ToolMode.NONE))


def _choice_cases() -> Iterator[Case]:
    def chosen(choice: Any) -> dict[str, Any]:
        return {"tools": _TOOLS, "tool_choice": choice}

    def required(*names: str) -> ToolChoice:
        return ToolChoice(ToolMode.REQUIRED, names=names)

    look = _of("tool_choice")
    yield Case(CHAT, "tool_choice", chosen("none"), look, ToolChoice(ToolMode.NONE))
    yield Case(CHAT, "tool_choice", chosen("required"), look, ToolChoice(ToolMode.REQUIRED))
    fields = "tool_choice.type tool_choice.function tool_choice.function.name"
    yield Case(CHAT, fields, chosen(function("look")), look, required("look"))
    fields = "tool_choice.custom tool_choice.custom.name"
    yield Case(CHAT, fields, chosen({"type": "custom", "custom": {"name": "patch"}}), look, required("patch"))
    fields = "tool_choice.allowed_tools tool_choice.allowed_tools.mode tool_choice.allowed_tools.tools"
    inside = "tool_choice.allowed_tools.tools"
    fields += f" {inside}.type {inside}.function {inside}.function.name {inside}.custom {inside}.custom.name"
    names = [function("look"), {"type": "custom", "custom": {"name": "patch"}}]
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": names}}
    yield Case(CHAT, fields, chosen(allowed), look, required("look", "patch"))
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": names[:1]}}
    yield Case(CHAT, fields, chosen(allowed), look, ToolChoice(ToolMode.AUTO, names=("look",)))


def _answer_cases() -> Iterator[Case]:
    both = {"max_tokens": 9, "max_completion_tokens": 5}
    yield Case(CHAT, "max_completion_tokens", both, _sampling("max_tokens"), 5)
    yield Case(CHAT, "logprobs", {"logprobs": True}, _of("logprobs"), 0)
    yield Case(CHAT, "top_logprobs", {"logprobs": True, "top_logprobs": 3}, _of("logprobs"), 3)
    yield Case(COMPLETIONS, "logprobs", {"logprobs": 3}, _of("logprobs"), 3)
    look = _of("format")

    def formatted(**body: Any) -> dict[str, Any]:
        return {"response_format": body}

    yield Case(CHAT, "response_format response_format.type", formatted(type="json_object"), look, AnyJson())
    plain = formatted(type="json_object", schema=SCHEMA)
    yield Case(CHAT, "response_format.schema", plain, look, JsonSchema(schema=SCHEMA))
    fields = "response_format.json_schema response_format.json_schema.name response_format.json_schema.schema"
    schema = formatted(type="json_schema", json_schema={"name": "it", "schema": SCHEMA})
    yield Case(CHAT, fields, schema, look, JsonSchema(schema=SCHEMA, name="it"))
    hint = formatted(type="json_schema", json_schema={"name": "it", "schema": SCHEMA, "strict": False})
    loose = JsonSchema(schema=SCHEMA, name="it", strict=False)
    yield Case(CHAT, "response_format.json_schema.strict", hint, look, loose)
    silly = formatted(type="json_schema", json_schema={"schema": {"properties": []}, "strict": False})
    yield Case(CHAT, "response_format.json_schema.strict", silly, look, AnyJson())
    yield Case(CHAT, "modalities", {"modalities": ["text"], "n": 2}, _of("choices"), 2)


def _thinking_cases() -> Iterator[Case]:
    look = _of("think")
    for effort, meant in (("minimal", "low"), ("medium", "medium"), ("xhigh", "max"), ("none", "none")):
        yield Case(CHAT, "reasoning_effort", {"reasoning_effort": effort}, look, meant)
    yield Case(CHAT, "reasoning reasoning.effort", {"reasoning": {"effort": "high"}}, look, "high")
    yield Case(CHAT, "reasoning.enabled", {"reasoning": {"enabled": False}}, look, seen=False)
    yield Case(CHAT, "think", {"think": True}, look, seen=True)
    fields = "chat_template_kwargs chat_template_kwargs.enable_thinking"
    yield Case(CHAT, fields, {"chat_template_kwargs": {"enable_thinking": False}}, look, seen=False)
    low = {"chat_template_kwargs": {"reasoning_effort": "low"}}
    yield Case(CHAT, "chat_template_kwargs.reasoning_effort", low, look, "low")
    both = {"reasoning_effort": "low", "think": False}
    yield Case(CHAT, "reasoning_effort", both, look, "low")


def _raw_cases() -> Iterator[Case]:
    def content(parsed: Parsed) -> Any:
        return parsed.request.prompt.content  # type: ignore[union-attr]

    for prompt, seen in ((["One"], "One"), ([1, 2], (1, 2)), ([[1, 2]], (1, 2)), (None, "")):
        yield Case(COMPLETIONS, "prompt", {"prompt": prompt}, content, seen)
    suffix = _of("prompt")
    yield Case(COMPLETIONS, "suffix", {"suffix": "end"}, lambda parsed: suffix(parsed).suffix, "end")
    yield Case(COMPLETIONS, "echo", {"echo": True}, lambda parsed: parsed.view.echo, "Once")
    look = _of("inputs")
    for given, inputs in ((["a", ""], ("a", "")), ([1, 2], ((1, 2),)), ([[1], [2, 3]], ((1,), (2, 3)))):
        yield Case(EMBEDDINGS, "input", {"input": given}, look, inputs)
    yield Case(EMBEDDINGS, "dimensions", {"dimensions": 8}, _of("dimensions"), 8)
    yield Case(RERANK, "query", {"query": "why"}, _of("query"), "why")
    yield Case(RERANK, "documents documents.text", {"documents": ["a", {"text": "b"}]}, _of("documents"), ("a", "b"))
    yield Case(RERANK, "top_n", {"top_n": 2}, lambda parsed: parsed.view.most, 2)
    yield Case(RERANK, "return_documents", {"return_documents": True}, lambda parsed: parsed.view.documents, ("a",))
    packed = {"encoding_format": "base64"}
    yield Case(EMBEDDINGS, "encoding_format", packed, lambda parsed: parsed.view.base64, seen=True)


HONOURED: Final = (
    *_sampling_cases(),
    *_option_cases(),
    *_residence_cases(),
    *_message_cases(),
    *_history_cases(),
    *_tool_cases(),
    *_choice_cases(),
    *_answer_cases(),
    *_thinking_cases(),
    *_raw_cases(),
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
