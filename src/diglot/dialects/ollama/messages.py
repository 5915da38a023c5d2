"""The messages of a chat, as items.

A message of this protocol may hold thought, text, images and calls at once; each becomes an item of its
own. Results of calls are matched to their calls here, since the protocol lets clients leave ids out: by id, by
the tool's name, by order. Neighbours: `tools` reads the calls, `core.images` judges the images.

Invariant: every call has an id of its own, the same for the same messages, and a result carries the id of its call.
"""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict, deque

import msgspec

from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.images import NotAnImage, image_of, linked
from diglot.core.items import Image, Item, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from diglot.dialects.ollama.tools import CallBody, arguments_of


class PartBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a content that is given as a list, which the protocol does not know but clients send."""

    type: str | None = None
    text: str | None = None


class MessageBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message. `images` are files in base64."""

    role: str | None = None
    content: str | list[PartBody] | None = None
    thinking: str | None = None
    images: list[str] | None = None
    tool_calls: list[CallBody] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None


def items_of(messages: list[MessageBody], *, links: bool) -> tuple[Item, ...]:
    """Return a conversation as items, in which pictures may be `links`."""
    reading = _Reading(links=links)
    for index, message in enumerate(messages):
        reading.take(message, f"messages[{index}]")
    return tuple(reading.items)


def parts_of(text: str, images: list[str] | None, field: str, *, links: bool) -> tuple[Part, ...]:
    """Return a content: its images, then its text, as the chat templates of vision models have them."""
    pictures = tuple(_image(image, f"{field}[{index}]", links=links) for index, image in enumerate(images or ()))
    return (*pictures, Text(text)) if text or not pictures else pictures


def _image(text: str, field: str, *, links: bool) -> Image:
    if text.startswith(("http://", "https://")):
        if links:
            return linked(text)
        raise UnsupportedField(
            field, "images are not fetched unless the server is set to (fetch_images), send the file itself in base64"
        )
    data = text.partition(";base64,")[2] if text.startswith("data:") else text
    try:
        return image_of(base64.b64decode(data.replace("\n", "").replace("\r", ""), validate=True))
    except (binascii.Error, ValueError) as error:
        reason = str(error) if isinstance(error, NotAnImage) else "this is no base64"
        raise InvalidField(field, reason) from error


class _Pending(msgspec.Struct, frozen=True):
    """A call that waits for its result: its own id, the client's (empty where it gave none), its name."""

    call_id: str
    given: str
    name: str


class _Waiting:
    """Calls without a result. Each stands in a queue for every way to ask for it, so that none is searched for."""

    def __init__(self) -> None:
        self._queues: defaultdict[tuple[str, str], deque[_Pending]] = defaultdict(deque)
        self._taken: set[str] = set()

    def add(self, call: _Pending) -> None:
        ways = [("id", call.given), ("any", call.name), ("any", "")]
        for way in ways if call.given else [*ways[1:], ("bare", call.name), ("bare", "")]:
            self._queues[way].append(call)

    def take(self, given: str, name: str | None) -> _Pending | None:
        """Return the call that a result belongs to: by id, else the oldest of that name, else the oldest.

        A result with an id belongs to no call with another one.
        """
        for way in [("id", given), ("bare", name or "")] if given else [("any", name or "")]:
            queue = self._queues[way]
            while queue:
                call = queue.popleft()
                if call.call_id not in self._taken:
                    self._taken.add(call.call_id)
                    return call
        return None


class _Reading:
    """The items so far, and the calls without a result."""

    def __init__(self, *, links: bool) -> None:
        self.links = links
        self.items: list[Item] = []
        self.waiting = _Waiting()
        self.used: set[str] = set()
        self.calls = 0

    def take(self, message: MessageBody, field: str) -> None:
        role = (message.role or "").lower()
        text = _text(message.content, f"{field}.content")
        content = parts_of(text, message.images, f"{field}.images", links=self.links)
        match role:
            case "system" | "developer" | "user":
                self.items.append(Message(role=role, content=content))
            case "assistant":
                self.say(message, content, field)
            case "tool":
                self.items.append(self.result(message, content))
            case _:
                raise InvalidField(
                    f"{field}.role", f'unknown role "{role}", known are system, developer, user, assistant and tool'
                )

    def say(self, message: MessageBody, content: tuple[Part, ...], field: str) -> None:
        """Take in what the model thought, said and called. An empty text beside calls counts as none."""
        role: Role = "assistant"
        if message.thinking:
            self.items.append(Reasoning(message.thinking))
        if content != (Text(""),) or not (message.thinking or message.tool_calls):
            self.items.append(Message(role=role, content=content))
        for index, call in enumerate(message.tool_calls or ()):
            self.items.append(self.call(call, f"{field}.tool_calls[{index}].function"))

    def call(self, body: CallBody, field: str) -> ToolCall:
        function = body.function
        if function is None or not function.name:
            raise InvalidField(f"{field}.name", "a call needs the name of a function")
        self.calls += 1
        given = body.id or ""
        pending = _Pending(call_id=self.fresh(given), given=given, name=function.name)
        self.waiting.add(pending)
        return ToolCall(call_id=pending.call_id, name=function.name, arguments=arguments_of(function, field))

    def fresh(self, given: str) -> str:
        """Return the client's id if nothing has it yet, else one that follows from the call's position."""
        call_id = given if given and given not in self.used else f"call_{self.calls}"
        while call_id in self.used:
            call_id += "_"
        self.used.add(call_id)
        return call_id

    def result(self, message: MessageBody, content: tuple[Part, ...]) -> ToolResult:
        given, name = message.tool_call_id or "", message.tool_name or None
        call = self.waiting.take(given, name)
        if call is None:
            return ToolResult(call_id=given or f"result_{len(self.items)}", content=content, name=name)
        return ToolResult(call_id=call.call_id, content=content, name=name or call.name)


def _text(content: str | list[PartBody] | None, field: str) -> str:
    if not isinstance(content, list):
        return content or ""
    for index, part in enumerate(content):
        if part.type not in (None, "text", "input_text", "output_text"):
            raise UnsupportedField(f"{field}[{index}].type", f'parts of type "{part.type}" are not read, use images')
    return "".join(part.text or "" for part in content)
