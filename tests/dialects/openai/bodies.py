"""The least body of every operation, and how it is read: what the tests of single fields add to."""

from collections.abc import Callable
from typing import Any, Final

from diglot.dialects.openai import chat, completions, embeddings
from diglot.dialects.openai.compat import CHAT, COMPLETIONS, EMBEDDINGS
from diglot.dialects.operation import Parsed, Wire

SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "string"}}}
PARSERS: Final[dict[str, Callable[[Wire], Parsed]]] = {
    CHAT: chat.parse,
    COMPLETIONS: completions.parse,
    EMBEDDINGS: embeddings.parse,
}
LEAST: Final[dict[str, dict[str, Any]]] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}]},
    COMPLETIONS: {"prompt": "Once"},
    EMBEDDINGS: {"input": "hi"},
}


def said(*messages: dict[str, Any]) -> dict[str, Any]:
    """Return what makes a body of these messages."""
    return {"messages": list(messages)}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return what makes a body of one message of these parts."""
    return said({"role": "user", "content": list(parts)})
