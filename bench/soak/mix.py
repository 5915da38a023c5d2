"""The mix: what is asked, and what counts as an answer.

A `Card` is one thing that a client does; a deck holds each as often as it is to be done. Whatever is asked ends in an
`Ending`: an answer, an error in the form of its dialect, or our own leaving. What is none of them, such as a stream
without an end, is `lost`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Final, Literal

import httpx2
import msgspec

CHAT: Final = "smollm2:135m"
EMBEDDING: Final = "all-minilm:l6-v2"
PATIENCE: Final = 300.0
"""Seconds of silence after which a request counts as left without an answer."""

Way = Literal["answered", "refused", "left", "lost"]


class Ending(msgspec.Struct, frozen=True):
    """How a request ended. `kind` is the code of an error, or its words where the dialect has no codes."""

    way: Way
    kind: str = ""


class Card(msgspec.Struct, frozen=True):
    """One thing to do, by name. `refused` are the kinds of error that it is meant to bring."""

    name: str
    play: Callable[[httpx2.AsyncClient, Random], Awaitable[Ending]]
    times: int = 1
    refused: frozenset[str] = frozenset()


def _story(random: Random) -> str:
    return f"Tell me story number {random.randrange(1000)} about a {random.choice(['fox', 'boat', 'king', 'train'])}."


def _transcript(random: Random) -> list[dict[str, Any]]:
    """Return the items of an agent's session that is worth folding up."""
    items: list[dict[str, Any]] = [{"role": "user", "content": f"Mend bug {random.randrange(1000)}, please."}]
    for number in range(5):
        call = {"type": "function_call", "call_id": f"c{number}", "name": "shell"}
        arguments = json.dumps({"command": f"sed -n {number}p src/part_{random.randrange(100)}.py"})
        output = "\n".join(f"{line}: value_{line} = {random.randrange(1000)}" for line in range(12))
        items += [
            call | {"arguments": arguments},
            {"type": "function_call_output", "call_id": f"c{number}", "output": output},
        ]
    return items


def _body(path: str, random: Random, *, stream: bool, most: int) -> dict[str, Any]:
    """Return a question for at most so many tokens."""
    said = [{"role": "user", "content": _story(random)}]
    match path:
        case "/api/chat":
            return {"model": CHAT, "messages": said, "stream": stream, "options": {"num_predict": most}}
        case "/api/generate":
            return {"model": CHAT, "prompt": _story(random), "stream": stream, "options": {"num_predict": most}}
        case "/v1/chat/completions":
            return {"model": CHAT, "messages": said, "stream": stream, "max_tokens": most}
        case "/v1/completions":
            return {"model": CHAT, "prompt": _story(random), "stream": stream, "max_tokens": most}
        case _:
            return {"model": CHAT, "input": said, "stream": stream, "max_output_tokens": most}


def _kind(text: str) -> str:
    """Return what kind of error the last line of a text tells of; nothing where it tells of none."""
    last = (text.strip().splitlines() or [""])[-1].removeprefix("data: ")
    try:
        said = json.loads(last)
    except ValueError:
        return ""
    if isinstance(said, dict) and said.get("type") == "response.failed":
        said = said["response"]
    error = said.get("error") if isinstance(said, dict) else None
    if isinstance(error, dict):
        code = str(error.get("code") or error.get("type"))
        return _plain(str(error.get("message"))) if code == "server_error" else code  # All that a stream may say.
    return _plain(error) if isinstance(error, str) else ""


def _plain(words: str) -> str:
    """Return the words of an error by the code that the other dialect has for it, where it is known."""
    known = {
        "ended unexpectedly": "engine_crashed",
        "not found": "model_not_found",
        "could not be loaded": "model_load_failed",
    }
    return next((code for part, code in known.items() if part in words), words)


def _ended(path: str, text: str) -> bool:
    """Whether a stream has come to its own end."""
    if path.startswith("/api"):
        return '"done":true' in text
    if path == "/v1/responses":
        return any(f'"type":"response.{end}"' in text for end in ("completed", "incomplete"))
    return "data: [DONE]" in text


async def whole(client: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> Ending:
    """Ask for a whole answer."""
    response = await client.post(path, json=body)
    if response.is_success:
        return Ending("answered")
    kind = _kind(response.text)
    return Ending("refused", kind) if kind else Ending("lost", f"status {response.status_code}: {response.text[:200]}")


async def streamed(client: httpx2.AsyncClient, path: str, body: dict[str, Any], *, pieces: int = 0) -> Ending:
    """Ask for a stream and read it to its end, or leave after so many pieces of it."""
    text = ""
    async with client.stream("POST", path, json=body) as response:
        count = 0
        async for piece in response.aiter_text():
            text += piece
            count += 1
            if count == pieces:
                return Ending("left")
    if _ended(path, text):
        return Ending("answered")
    kind = _kind(text)
    return Ending("refused", kind) if kind else Ending("lost", f"a stream without an end: {text[-200:]}")


def talk(path: str, *, stream: bool) -> Card:
    """Return the card of a question with its answer."""

    async def play(client: httpx2.AsyncClient, random: Random) -> Ending:
        body = _body(path, random, stream=stream, most=random.randrange(1, 24))
        return await (streamed if stream else whole)(client, path, body)

    return Card(f"{path} {'streamed' if stream else 'whole'}", play, times=2)


def leave(path: str) -> Card:
    """Return the card of a stream that is left after one or some of its pieces."""

    async def play(client: httpx2.AsyncClient, random: Random) -> Ending:
        body = _body(path, random, stream=True, most=64)
        return await streamed(client, path, body, pieces=random.randrange(1, 12))

    return Card(f"{path} left in mid-stream", play)


def vectors(path: str) -> Card:
    """Return the card of some texts to embed."""

    async def play(client: httpx2.AsyncClient, random: Random) -> Ending:
        texts = [_story(random) for _ in range(random.randrange(1, 6))]
        return await whole(client, path, {"model": EMBEDDING, "input": texts})

    return Card(path, play, times=2)


async def _goes_on(client: httpx2.AsyncClient, random: Random) -> Ending:
    """Ask for a response, and for one that goes on from it."""
    path = "/v1/responses"
    first = await client.post(path, json=_body(path, random, stream=False, most=8))
    if not first.is_success:
        return Ending("refused", _kind(first.text))
    body = _body(path, random, stream=True, most=8) | {"previous_response_id": first.json()["id"]}
    return await streamed(client, path, body)


async def _compacts(client: httpx2.AsyncClient, random: Random) -> Ending:
    return await whole(client, "/v1/responses/compact", {"model": CHAT, "input": _transcript(random)})


async def _triggers(client: httpx2.AsyncClient, random: Random) -> Ending:
    items = [*_transcript(random), {"type": "compaction_trigger"}]
    return await streamed(client, "/v1/responses", {"model": CHAT, "input": items, "stream": True})


async def _unloads(client: httpx2.AsyncClient, random: Random) -> Ending:  # noqa: ARG001  a card
    return await whole(client, "/api/generate", {"model": CHAT, "keep_alive": 0, "stream": False})


async def _unknown(client: httpx2.AsyncClient, random: Random) -> Ending:
    path = random.choice(["/api/chat", "/v1/chat/completions"])
    return await whole(client, path, _body(path, random, stream=False, most=1) | {"model": "nobody"})


async def _looks(client: httpx2.AsyncClient, random: Random) -> Ending:
    response = await client.get(random.choice(["/api/tags", "/api/ps", "/v1/models", "/health", "/"]))
    return Ending("answered") if response.is_success else Ending("lost", f"status {response.status_code}")


def deck() -> list[Card]:
    """Return everything that is done over connections that are kept; `leaving` has the rest."""
    answers = ("/api/chat", "/api/generate", "/v1/chat/completions", "/v1/completions", "/v1/responses")
    return [
        *(talk(path, stream=stream) for path in answers for stream in (True, False)),
        *(leave(path) for path in answers),
        *(vectors(path) for path in ("/api/embed", "/v1/embeddings")),
        Card("/v1/responses twice", _goes_on),
        Card("/v1/responses/compact", _compacts),
        Card("/v1/responses with compaction_trigger", _triggers),
        Card("unload", _unloads),
        Card("unknown model", _unknown, refused=frozenset({"model_not_found"})),
        Card("lists", _looks, times=2),
    ]
