"""A rich body for every operation that reads one: sound, and with something in every field that means anything.

From these, `test_parsers` goes on to what is nearly sound. A test there holds that none is missing and each is read.
"""

from __future__ import annotations

import json
from typing import Any, Final

from diglot.core.items import said
from diglot.dialects.ollama.context import pack
from tests.dialects.openai.material import data_url, png

_PNG: Final = data_url(png())
_DIGEST: Final = "sha256:" + "0123456789abcdef" * 4
_SCHEMA: Final = {
    "type": "object",
    "properties": {"at": {"type": "string", "pattern": "^a{2}$"}, "n": {"$ref": "#/$defs/n"}},
    "$defs": {"n": {"anyOf": [{"type": "integer", "minimum": 1}, {"enum": [1, None]}]}},
    "required": ["at"],
}
_FUNCTION: Final = {"name": "look", "description": "Look.", "parameters": _SCHEMA}
_OPTIONS: Final = {"num_ctx": 5, "stop": ["a"], "temperature": 0.5, "top_k": 1.0, "seed": 3, "num_predict": 9}
_OLLAMA: Final = {
    "model": "m",
    "stream": True,
    "keep_alive": "5m",
    "options": _OPTIONS,
    "think": "high",
    "format": _SCHEMA,
}
_SAMPLING: Final = {"temperature": 1, "top_p": 0.5, "seed": 3, "stop": ["a"], "frequency_penalty": 0.1, "user": "u"}
_COMPACTED: Final = json.dumps(
    {"type": "ollama_compaction", "version": 1, "summary": "s", "retained": [{"role": "user", "content": "x"}]}
)

_CHAT: Final = {
    "model": "tiny",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": _PNG}}],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning": "Hm.",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "blue"},
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "blue"},
    ],
    "tools": [
        {"type": "function", "function": _FUNCTION},
        {"type": "custom", "custom": {"name": "b", "format": {"type": "text"}}},
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "look"}}]},
    },
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": _SCHEMA}},
    "stream_options": {"include_usage": True},
    "options": _OPTIONS,
    "logit_bias": {"3": 1},
    "logprobs": True,
    "top_logprobs": 2,
    "chat_template_kwargs": {"enable_thinking": True},
    **_SAMPLING,
}
_RESPONSE: Final = {
    "model": "tiny",
    "instructions": "Be brief.",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"role": "user", "content": [{"type": "input_image", "image_url": _PNG}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "x",
        },
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at":"aa"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "blue"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "b", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "y"},
        {"type": "local_shell_call", "call_id": "c3", "action": {"type": "exec", "command": ["ls"], "env": {"A": "b"}}},
        {"type": "local_shell_call_output", "call_id": "c3", "output": "z"},
        {"type": "shell_call", "call_id": "c4", "action": {"commands": ["ls"], "timeout_ms": 5}},
        {
            "type": "shell_call_output",
            "call_id": "c4",
            "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        },
        {"type": "apply_patch_call", "call_id": "c5", "operation": {"type": "create_file", "path": "a", "diff": "+b"}},
        {"type": "apply_patch_call_output", "call_id": "c5", "status": "completed", "output": "ok"},
        {"type": "tool_search_call", "call_id": "c6", "execution": "client", "arguments": {"query": "x"}},
        {
            "type": "tool_search_output",
            "call_id": "c6",
            "execution": "client",
            "tools": [{"type": "function", "name": "far"}],
        },
        {"type": "compaction", "id": "cmp_1", "encrypted_content": _COMPACTED},
        {"type": "web_search_call", "odd": [1, 2.5]},
        {"type": "item_reference", "id": "msg_0123456789abcdef01234567_0"},
        {"role": "user", "content": "and now?"},
    ],
    "tools": [
        {"type": "function", **_FUNCTION},
        {"type": "custom", "name": "b", "format": {"type": "text"}},
        {"type": "namespace", "name": "n", "description": "d", "tools": [{"type": "function", "name": "in"}]},
        {"type": "local_shell"},
        {"type": "web_search"},
    ],
    "tool_choice": {"type": "function", "name": "look"},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": _SCHEMA}, "verbosity": "low"},
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["message.output_text.logprobs"],
    "top_logprobs": 2,
    "truncation": "auto",
    "context_management": [{"type": "compaction", "compact_threshold": 2000}],
    "metadata": {"a": "b"},
    "previous_response_id": "resp_1",
    "temperature": 1,
    "top_p": 0.5,
}

BODIES: Final[dict[str, dict[str, Any]]] = {
    "/api/chat": {
        **_OLLAMA,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi", "images": [_PNG.partition(",")[2]]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "hm",
                "tool_calls": [{"id": "c", "function": {"index": 0, "name": "look", "arguments": {"at": "aa"}}}],
            },
            {"role": "tool", "content": "blue", "tool_name": "look", "tool_call_id": "c"},
        ],
        "tools": [{"type": "function", "function": _FUNCTION}],
        "logprobs": True,
        "top_logprobs": 2,
        "truncate": True,
    },
    "/api/generate": {
        **_OLLAMA,
        "prompt": "hi",
        "system": "Be brief.",
        "images": [_PNG.partition(",")[2]],
        "context": pack((said("user", "before"),)),
    },
    "/api/embed": {
        "model": "m",
        "input": ["a", "b"],
        "truncate": True,
        "dimensions": 3,
        "options": {},
        "keep_alive": -1,
    },
    "/api/embeddings": {"model": "m", "prompt": "a", "keep_alive": "1h"},
    "/api/show": {"model": "m", "verbose": True, "system": "s", "options": {"temperature": 1}},
    "/api/pull": {"model": "host:9/a/b:c", "insecure": True, "stream": False},
    "/api/push": {"name": "a/b", "insecure": False, "stream": True},
    "/api/create": {
        "model": "m",
        "from": "base",
        "adapters": {"a.gguf": _DIGEST},
        "system": "s",
        "template": "t",
        "license": ["MIT"],
        "parameters": {"temperature": 0.5, "stop": ["a"], "num_ctx": 9},
        "messages": [{"role": "user", "content": "x"}],
        "quantize": "q8_0",
        "requires": "0.1",
    },
    "/api/copy": {"source": "a", "destination": "b"},
    "/api/delete": {"model": "a"},
    "/v1/chat/completions": _CHAT,
    "/v1/completions": {
        "model": "m",
        "prompt": ["a"],
        "suffix": "z",
        "echo": False,
        "max_tokens": 3,
        "logprobs": 1,
        **_SAMPLING,
    },
    "/v1/embeddings": {"model": "m", "input": [[1, 2], [3]], "dimensions": 3, "encoding_format": "base64", "user": "u"},
    "/v1/rerank": {"model": "m", "query": "q", "documents": ["a", {"text": "b"}], "top_n": 1, "return_documents": True},
    "/v1/responses": _RESPONSE,
    "/v1/responses/compact": {key: _RESPONSE[key] for key in ("model", "instructions", "input", "tools")},
    "/v1/responses/input_tokens": {
        key: _RESPONSE[key] for key in ("model", "input", "tools", "tool_choice", "reasoning")
    },
}
