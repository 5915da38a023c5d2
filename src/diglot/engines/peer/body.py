"""Bodies: a request written down for an OpenAI-compatible server.

Everything a request says is in the body, or is refused by name here, before anything is sent.
Neighbours: `core.turns` lays the conversation out, `hosts` says what the server takes, `client` sends.

Invariant: the same conversation gives the same bytes up to what was appended, so that the prompt cache holds;
a schema and sampling come behind the messages and change nothing in front.
"""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.images import url_of
from diglot.core.items import File, Image, Part, Text, ToolCall, text_of
from diglot.core.request import (
    AnyJson,
    Conversation,
    Generation,
    JsonSchema,
    PlainText,
    RawPrompt,
    Sampling,
    Schema,
    ToolMode,
    ToolSpec,
)
from diglot.core.tools import callable_tools, flat_arguments, flat_name, flat_parameters, forced_schema
from diglot.core.turns import Turn, turns_of
from diglot.engines.peer.hosts import Host
from diglot.engines.peer.plain import plain_turns

_LARGEST = 2**31 - 1
_SEEDS = 2**32 - 1  # llama.cpp takes the last one for "random".
_BRIEF = 1024  # Bytes of a body whose prompt is read in a batch or two: word of it would only come in between.
SETTINGS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "repeat_penalty",
    "repeat_last_n",
    "presence_penalty",
    "frequency_penalty",
)
encode = msgspec.json.Encoder().encode


class Target(msgspec.Struct, frozen=True):
    """The model that is spoken to: its name there, the kind of server, whether its template knows tools, its window."""

    model: str
    host: Host
    template_tools: bool = True
    window: int = _LARGEST


def forced_tools(request: Generation) -> tuple[ToolSpec, ...]:
    """Return the tools of which one must be called, none if the model is free. Raises InvalidField."""
    if request.tool_choice.mode is not ToolMode.REQUIRED:
        return ()
    tools = callable_tools(request)
    if not tools:
        raise InvalidField("tool_choice", "it requires a call, but names no declared tool")
    return tools


def shown_tools(request: Generation) -> tuple[ToolSpec, ...]:
    """Return the tools that stand in the prompt: those that may be called.

    Where a schema settles what comes out, all of them: leaving some out would only cost the prompt cache.
    """
    settled = request.tool_choice.mode is ToolMode.REQUIRED or not isinstance(request.format, PlainText)
    return request.tools if settled else callable_tools(request)


def generation_body(request: Generation, target: Target) -> tuple[str, bytes]:
    """Return the path and the body that answer a request. Raises UnsupportedField and InvalidField."""
    match request.prompt:
        case Conversation():
            path, body = "/v1/chat/completions", prompt_body(request, target)
        case RawPrompt(suffix=str()):
            raise UnsupportedField("suffix", "the remote server does not fill the middle of a text")
        case RawPrompt(content=content):
            path, body = "/v1/completions", {"model": target.model, "prompt": content}
        case _:
            assert_never(request.prompt)
    body |= {"stream": True, "stream_options": {"include_usage": True}}
    if target.host.running_usage:
        body["stream_options"]["continuous_usage_stats"] = True
    body |= _sampling(request.sampling, target)
    body |= _constraint(request, target.host)
    if request.logprobs is not None:
        shown = max(1, request.logprobs)  # llama.cpp takes 0 for "no log-probabilities": `answer` drops the one.
        chat = isinstance(request.prompt, Conversation)
        body |= {"logprobs": True, "top_logprobs": shown} if chat else {"logprobs": shown}
    encoded = encode(body)
    if target.host.progress:
        # Either tells the size of the prompt.
        told = b"timings_per_token" if len(encoded) <= _BRIEF else b"return_progress"
        encoded = encoded[:-1] + b',"' + told + b'":true}'
    return path, encoded


def prompt_body(request: Generation, target: Target) -> dict[str, Any]:
    """Return what makes the prompt of a conversation: messages, tools and arguments of the template."""
    if not isinstance(request.prompt, Conversation):
        raise TypeError(request.prompt)
    turns, tools = turns_of(request.prompt.items), shown_tools(request)
    body: dict[str, Any] = {"model": target.model}
    if target.template_tools:
        body["messages"] = [_message(turn) for turn in turns]
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
            body["parallel_tool_calls"] = request.parallel_calls
    else:
        body["messages"] = [_message(turn) for turn in plain_turns(turns, tools)]
    return body | _thinking(request, target.host)


def _message(turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": turn.role, "content": _content(turn.content)}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.calls:
        message["tool_calls"] = [_call(call) for call in turn.calls]
    if turn.call_id is not None:
        message["tool_call_id"] = turn.call_id
    if turn.name is not None:
        message["name"] = turn.name
    return message


def _content(parts: tuple[Part, ...]) -> str | list[dict[str, Any]]:
    if all(isinstance(part, Text) for part in parts):
        return text_of(parts)
    return [_part(part) for part in parts]


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image() as image:
            return {"type": "image_url", "image_url": {"url": url_of(image)}}
        case File(name=name):
            raise UnsupportedField("file", f"the engine reads no documents{f' such as {name}' if name else ''}")
        case _:
            assert_never(part)


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": flat_name(call), "arguments": flat_arguments(call)}
    return {"id": call.call_id, "type": "function", "function": function}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": flat_name(tool), "description": tool.description, "parameters": flat_parameters(tool)}
    return {"type": "function", "function": function}


def _thinking(request: Generation, host: Host) -> dict[str, Any]:
    arguments = dict(request.template_arguments)
    effort = request.think if isinstance(request.think, str) else None
    if not host.template_arguments:
        if arguments:
            raise UnsupportedField("chat_template_kwargs", "the remote server takes no arguments for the template")
        return (
            {"reasoning_effort": effort or ("medium" if request.think else "none")} if request.think is not None else {}
        )
    if request.think is not None:
        arguments.setdefault("enable_thinking", request.think not in (False, "none"))
    if effort is not None:
        arguments.setdefault("reasoning_effort", effort)
    return {"chat_template_kwargs": arguments} if arguments else {}


def _sampling(sampling: Sampling, target: Target) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name in SETTINGS:
        body |= _setting(name, sampling, target.host)
    last = sampling.repeat_last_n
    if last is not None:  # Negative means the window; more than that only costs memory, four bytes for each.
        body["repeat_last_n"] = target.window if last < 0 else min(last, target.window)
    if sampling.seed is not None and sampling.seed >= 0:
        body["seed"] = sampling.seed % _SEEDS
    if sampling.max_tokens is not None and sampling.max_tokens >= 0:
        # llama.cpp makes one token for 0: `answer` drops it.
        body["max_tokens"] = min(max(1, sampling.max_tokens), _LARGEST)
    if sampling.stop:
        body["stop"] = sampling.stop
    if sampling.logit_bias:
        body["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias.items()}
    return body


def _setting(name: str, sampling: Sampling, host: Host) -> dict[str, Any]:
    value = getattr(sampling, name)
    if value is None:
        return {}
    if name not in host.sampling:
        raise UnsupportedField(name, "the remote server does not take it")
    if isinstance(value, int):
        value = max(-_LARGEST, min(value, _LARGEST))
    return {host.sampling[name]: value}


def _constraint(request: Generation, host: Host) -> dict[str, Any]:
    forced = forced_tools(request)
    if forced:
        body = _schema("call", forced_schema(forced, parallel=False))
    else:
        match request.format:
            case PlainText():
                return {}
            case AnyJson():
                body = {"response_format": {"type": "json_object"}}
            case JsonSchema(schema=schema, name=name):
                body = _schema(name, schema)
            case _:
                assert_never(request.format)
    if shown_tools(request) and not host.schema_and_tools:
        body["tool_choice"] = "none"
    return body


def _schema(name: str, schema: Schema) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}}
