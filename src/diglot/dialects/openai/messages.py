"""Messages: a chat as OpenAI's clients keep it, into items.

A conversation is echoed back by many hands, so history is taken as it comes: cut-off arguments, reasoning
under either name, empty and missing contents, calls without ids, which are answered in order. What a model is to read and cannot (sound, files, pictures
behind a URL) is refused by its path. Neighbours: `chat`, `core.items`.
"""

from __future__ import annotations

import base64
import binascii
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.images import NotAnImage, image_of, linked
from diglot.core.items import Image, Item, Message, Part, Reasoning, Text, ToolCall, ToolResult

NO_LINKS = "this server fetches no pictures unless it is set to (`fetch_images`); send a data: URL with base64"


class TextPartBody(msgspec.Struct, tag_field="type", tag="text"):
    """A stretch of text."""

    text: str


class RefusalPartBody(msgspec.Struct, tag_field="type", tag="refusal"):
    """What a model said instead of an answer."""

    refusal: str


class ImageUrlBody(msgspec.Struct):
    """A picture as a `data:` URL."""

    url: str


class ImagePartBody(msgspec.Struct, tag_field="type", tag="image_url"):
    """A picture."""

    image_url: ImageUrlBody | str


class AudioPartBody(msgspec.Struct, tag_field="type", tag="input_audio"):
    """Sound, which no model here hears."""

    input_audio: Any = None


class FilePartBody(msgspec.Struct, tag_field="type", tag="file"):
    """A file, which no model here reads."""

    file: Any = None


PartBody = TextPartBody | RefusalPartBody | ImagePartBody | AudioPartBody | FilePartBody


class CalledFunctionBody(msgspec.Struct):
    """A call of a function. `arguments` is JSON text; some clients write the object itself."""

    name: str
    arguments: str | dict[str, Any] | None = None


class CalledCustomBody(msgspec.Struct):
    """A call of a custom tool, with its text."""

    name: str
    input: str = ""


class ToolCallBody(msgspec.Struct):
    """A call in an assistant's message."""

    id: str | None = None
    type: Literal["function", "custom"] | None = None
    function: CalledFunctionBody | None = None
    custom: CalledCustomBody | None = None


class MessageBody(msgspec.Struct):
    """One message of any role."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[PartBody] | None = None
    name: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCallBody] | None = None
    tool_call_id: str | None = None
    function_call: CalledFunctionBody | None = None
    audio: Any = None


def items_of(messages: Sequence[MessageBody], *, links: bool) -> tuple[Item, ...]:
    """Return the conversation, in which pictures may be `links`. Raises InvalidField and UnsupportedField with the path of what is wrong."""
    calls: dict[str, str] = {}  # The last call of each function, for answers that name only the function.
    unnamed: deque[str] = deque()  # The calls without an id that no result has answered.
    items: list[Item] = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        match message.role:
            case "assistant":
                made = tuple(_assistant(message, path, links=links))
                calls.update({item.name: item.call_id for item in made if isinstance(item, ToolCall)})
                unnamed.extend(_made_up(path, at) for at, call in enumerate(message.tool_calls or ()) if not call.id)
                items.extend(made)
            case "tool":
                call_id = message.tool_call_id or (unnamed.popleft() if unnamed else None)
                items.append(_result(message, _required(call_id, f"{path}.tool_call_id"), path, links=links))
            case "function":
                name = _required(message.name, f"{path}.name")
                content = _content(message.content, path, links=links)
                items.append(ToolResult(call_id=calls.get(name, name), content=content, name=name))
            case role:
                items.append(
                    Message(role=role, content=_content(message.content, path, links=links), name=message.name)
                )
    return tuple(items)


def _assistant(message: MessageBody, path: str, *, links: bool) -> Iterator[Item]:
    """Take an assistant's turn apart, in the order in which a model makes it."""
    if message.audio is not None:
        raise UnsupportedField(f"{path}.audio", "no model here speaks or hears")
    thought = message.reasoning_content or message.reasoning
    if thought:
        yield Reasoning(text=thought)
    content = _content(message.content, path, links=links)
    if not content and message.refusal:
        content = (Text(message.refusal),)
    calls = tuple(_calls(message, path))
    if content or not (calls or thought):
        yield Message(role="assistant", content=content, name=message.name)
    yield from calls


def _made_up(path: str, index: int) -> str:
    return f"call_{path}.{index}"


def _calls(message: MessageBody, path: str) -> Iterator[ToolCall]:
    for index, call in enumerate(message.tool_calls or ()):
        where = f"{path}.tool_calls[{index}]"
        call_id = call.id or _made_up(path, index)
        if call.custom is not None:
            yield ToolCall(call_id=call_id, name=call.custom.name, arguments=call.custom.input, kind="freeform")
        elif call.function is not None:
            yield ToolCall(call_id=call_id, name=call.function.name, arguments=_arguments(call.function))
        else:
            raise InvalidField(f"{where}.{call.type or 'function'}", "is required")
    if message.function_call is not None:
        call_id = f"call_{path}"
        yield ToolCall(call_id=call_id, name=message.function_call.name, arguments=_arguments(message.function_call))


def _arguments(call: CalledFunctionBody) -> str:
    if isinstance(call.arguments, dict):
        return msgspec.json.encode(call.arguments).decode()
    return call.arguments or ""


def _result(message: MessageBody, call_id: str, path: str, *, links: bool) -> ToolResult:
    return ToolResult(call_id=call_id, content=_content(message.content, path, links=links), name=message.name)


def _required(value: str | None, field: str) -> str:
    if not value:
        raise InvalidField(field, "is required")
    return value


def _content(content: str | list[PartBody] | None, path: str, *, links: bool) -> tuple[Part, ...]:
    if not content:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_parts(content, f"{path}.content", links=links))


def _parts(parts: Iterable[PartBody], path: str, *, links: bool) -> Iterator[Part]:
    for index, part in enumerate(parts):
        where = f"{path}[{index}]"
        match part:
            case TextPartBody():
                yield Text(part.text)
            case RefusalPartBody():
                yield Text(part.refusal)
            case ImagePartBody():
                yield image_part(part.image_url, f"{where}.image_url", links=links)
            case AudioPartBody():
                raise UnsupportedField(f"{where}.input_audio", "no model here hears")
            case FilePartBody():
                raise UnsupportedField(
                    f"{where}.file", "files are not read; send their text, or a picture as image_url"
                )


def image_part(source: ImageUrlBody | str, field: str, *, links: bool) -> Image:
    """Return the picture of a `data:` URL, or one yet to be fetched. Raises InvalidField and UnsupportedField."""
    url, field = (source.url, f"{field}.url") if isinstance(source, ImageUrlBody) else (source, field)
    scheme, _, rest = url.partition(":")
    match scheme.lower():
        case "data":
            head, comma, data = rest.partition(",")
            if not comma or not head.lower().endswith(";base64"):
                raise InvalidField(field, "a data: URL must hold base64, as in data:image/png;base64,...")
            try:
                return image_of(bytes_of(data))
            except (binascii.Error, NotAnImage) as error:
                raise InvalidField(field, f"holds no image: {error}") from None
        case "http" | "https" if links:
            return linked(url)
        case "http" | "https":
            raise UnsupportedField(field, NO_LINKS)
        case _:
            raise InvalidField(field, "must be a data: URL with base64")


def bytes_of(text: str) -> bytes:
    """Return what base64 holds, broken over lines and without its padding as some clients write it."""
    packed = "".join(text.split())
    if not packed.isascii():
        raise binascii.Error("this is no base64")
    return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
