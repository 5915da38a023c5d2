"""How these tests ask: bodies in, requests, replies and lines out, without a server."""

import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import pytest

from diglot.core.assemble import assemble
from diglot.core.errors import Fault
from diglot.core.items import Item
from diglot.core.request import Conversation, Generation
from diglot.dialects.ollama import DIALECT
from diglot.dialects.operation import Operation, Parsed, Stamp, Wire

NOW: Final = 1_796_000_000.25
STAMP: Final = Stamp(id="abcdefghijklmnopqrstuvwx", now=NOW)
OPERATIONS: Final = {operation.path: operation for operation in DIALECT.operations}
CHAT: Final = "/api/chat"
GENERATE: Final = "/api/generate"
USER: Final = {"role": "user", "content": "hi"}


def operation(path: str) -> Operation:
    return OPERATIONS[path]


def parse(path: str, body: Any, **headers: str) -> Parsed:
    """Parse a body, given as a value or as bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return operation(path).parse(Wire(body=data, headers={key.replace("_", "-"): headers[key] for key in headers}))


def generation(path: str, **body: Any) -> Generation:
    """Parse a request for an answer; what the test does not care about is filled in."""
    filled = {"model": "m", **({"messages": [USER]} if path == CHAT else {"prompt": "hi"}), **body}
    request = parse(path, filled).request
    assert isinstance(request, Generation)
    return request


def items(path: str, **body: Any) -> tuple[Item, ...]:
    """Parse a request and return its conversation."""
    prompt = generation(path, **body).prompt
    assert isinstance(prompt, Conversation)
    return prompt.items


def refusal(path: str, body: Any) -> tuple[int, str]:
    """Parse a body that is wrong and return the status and the text of the error."""
    with pytest.raises(Fault) as caught:
        parse(path, body)
    return reply_to(path, caught.value)


def reply_to(path: str, fault: Any) -> tuple[int, str]:
    error = operation(path).error or DIALECT.error
    reply = error(fault)
    answer = msgspec.json.decode(reply.body)
    assert list(answer) == ["error"]
    return reply.status, answer["error"]


def whole(path: str, parsed: Parsed, events: Iterable[Any]) -> dict[str, Any]:
    """Return the whole answer that these events make."""
    reply = operation(path).whole(parsed.view, STAMP, assemble(events))
    assert reply.status == 200
    return dict(json.loads(reply.body))


def streamed(path: str, parsed: Parsed, events: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the lines that these events make."""
    make = operation(path).stream
    assert make is not None
    renderer = make(parsed.view, STAMP)
    data = b"".join([*(renderer.feed(event, NOW) for event in events), renderer.close()])
    assert not data or data.endswith(b"\n")
    lines = data.split(b"\n")[:-1]
    assert all(lines), "a blank line ends Ollama's own client"
    return [json.loads(line) for line in lines]


def answer(path: str, answered: Any, body: Any = None) -> Any:
    """Return the JSON of an operation that does not stream."""
    parsed = parse(path, body) if body is not None else operation(path).parse(Wire())
    return json.loads(operation(path).whole(parsed.view, STAMP, answered).body)


def folded(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Fold the lines of a stream as Ollama does for a client that wants no stream."""
    out = dict(lines[-1])
    for name in ("response", "thinking"):
        text = "".join(line.get(name, "") for line in lines)
        if text or name == "response" in out:
            out[name] = text
    calls = [call for line in lines for call in _part(line).get("tool_calls", [])]
    logprobs = [each for line in lines for each in line.get("logprobs", [])]
    if "message" in out:
        out["message"] = {
            "role": "assistant",
            "content": "".join(line["message"]["content"] for line in lines),
            **({"thinking": thought} if (thought := _joined(lines)) else {}),
            **({"tool_calls": calls} if calls else {}),
        }
    elif calls:
        out["tool_calls"] = calls
    if logprobs:
        out["logprobs"] = logprobs
    return out


def _part(line: dict[str, Any]) -> dict[str, Any]:
    return dict(line.get("message", line))


def _joined(lines: list[dict[str, Any]]) -> str:
    return "".join(line["message"].get("thinking", "") for line in lines)
