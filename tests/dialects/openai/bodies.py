"""The least body of every operation, and how it is read: what the tests of single fields add to."""

from collections.abc import Callable
from typing import Any, Final

from diglot.dialects.openai import chat, completions, embeddings, rerank
from diglot.dialects.openai.compat import CHAT, COMPLETIONS, EMBEDDINGS, RERANK
from diglot.dialects.openai.compat_responses import COMPACT, COUNT, RESPONSES
from diglot.dialects.openai.responses import compact, count, create
from diglot.dialects.operation import Parsed, Wire

SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "string"}}}
PARSERS: Final[dict[str, Callable[[Wire], Parsed]]] = {
    CHAT: chat.parse,
    COMPLETIONS: completions.parse,
    EMBEDDINGS: embeddings.parse,
    RERANK: rerank.parse,
    RESPONSES: create.parse,
    COMPACT: compact.parse,
    COUNT: count.parse,
}
LEAST: Final[dict[str, dict[str, Any]]] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}]},
    COMPLETIONS: {"prompt": "Once"},
    EMBEDDINGS: {"input": "hi"},
    RERANK: {"query": "hi", "documents": ["a"]},
    RESPONSES: {"input": "hi"},
    COMPACT: {"model": "m", "input": "hi"},
    COUNT: {"input": "hi"},
}


def said(*messages: dict[str, Any]) -> dict[str, Any]:
    """Return what makes a body of these messages."""
    return {"messages": list(messages)}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return what makes a body of one message of these parts."""
    return said({"role": "user", "content": list(parts)})


def said_in_items(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return what makes a body of one item, a message of these parts."""
    return {"input": [{"type": "message", "role": "user", "content": list(parts)}]}


def given_back(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return what makes a body of one item, a result of these parts."""
    return {"input": [{"type": "function_call_output", "call_id": "c", "output": list(parts)}]}
