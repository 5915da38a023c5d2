"""`POST /api/generate`: an answer to a prompt.

The prompt is one turn of a conversation that `context` carries on, or goes to the model as it is (`raw`), or
asks to fill the middle (`suffix`). An empty prompt loads the model, or lets it go where `keep_alive` is 0: one
object, never a stream. Neighbours: `fields` and `context` read, `replies` and `lines` write.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from diglot.core.errors import InvalidField
from diglot.core.items import Message, said
from diglot.core.request import Conversation, Generation, Load, RawPrompt, Unload
from diglot.core.result import Result
from diglot.dialects.ollama import replies
from diglot.dialects.ollama.context import pack, unpack
from diglot.dialects.ollama.errors import Wording
from diglot.dialects.ollama.fields import format_of, logprobs_of, overflow_of, refuse, residence_of, think_of
from diglot.dialects.ollama.lines import Lines
from diglot.dialects.ollama.messages import parts_of
from diglot.dialects.ollama.options import OptionsBody, sampling_of
from diglot.dialects.ollama.replies import GenerateReply, generate_form
from diglot.dialects.ollama.wire import read
from diglot.dialects.operation import NDJSON, Operation, Parsed, Rendered, Stamp, Wire


class GenerateBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body. Null counts as not given in every field."""

    model: str | None = None
    prompt: str | None = None
    suffix: str | None = None
    system: str | None = None
    template: str | None = None
    context: list[int] | None = None
    raw: bool | None = None
    images: list[str] | None = None
    stream: bool | None = None
    format: Any = None
    options: OptionsBody | None = None
    keep_alive: float | str | None = None
    think: bool | str | None = None
    truncate: bool | None = None
    shift: Any = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    width: Any = None
    height: Any = None
    steps: Any = None
    debug_render_only: bool | None = msgspec.field(default=None, name="_debug_render_only")


DECODER: Final = msgspec.json.Decoder(GenerateBody)
WORDING: Final = Wording(task="generate")


class GenerateView(msgspec.Struct, frozen=True):
    """What rendering needs: the model's name as the client wrote it, and the conversation that `context` carries on."""

    model: str | None
    conversation: tuple[Message, ...] | None = None

    def context(self, answer: str) -> dict[str, Any]:
        """Return the field that lets the client carry on; nothing where the prompt was no conversation."""
        return {} if self.conversation is None else {"context": pack((*self.conversation, said("assistant", answer)))}


def parse(wire: Wire) -> Parsed:
    """Read a request."""
    body = read(DECODER, wire)
    residence = residence_of(body.model, body.options, body.keep_alive)
    _refuse_what_is_unknown(body)
    conversation = None if body.raw or body.suffix else _conversation(body, links=wire.allowance.links)
    wire.allowance.admit_contents(conversation or (), field="images")
    prompt = (
        RawPrompt(body.prompt or "", suffix=body.suffix or None) if conversation is None else Conversation(conversation)
    )
    generation = Generation(
        residence=residence,
        prompt=prompt,
        sampling=sampling_of(body.options),
        format=format_of(body.format),
        think=think_of(body.think),
        must_think=bool(body.think),
        logprobs=logprobs_of(body.logprobs, body.top_logprobs),
        overflow=overflow_of(body.truncate),
    )
    view = GenerateView(residence.model, conversation)
    if not body.prompt:
        load = Load(residence, must_think=bool(body.think))
        return Parsed(Unload(residence) if residence.keep_alive == 0 else load, GenerateView(view.model))
    return Parsed(generation, view, stream=body.stream is not False)


def _refuse_what_is_unknown(body: GenerateBody) -> None:
    if body.raw and (body.template or body.system or body.context):
        raise InvalidField("raw", "raw mode does not support template, system, or context")
    refuse(
        "template", body.template, "prompts are rendered by the model's own chat template, not by one in Go's notation"
    )
    refuse("_debug_render_only", body.debug_render_only, "the rendered prompt is not shown")
    for name in ("width", "height", "steps"):
        refuse(name, getattr(body, name), "images are not generated here")
    if body.raw or body.suffix:
        refuse("images", body.images, "images belong to a conversation, not to a raw prompt or a suffix")
    if body.suffix:
        refuse("system", body.system, "filling the middle knows no system text")
        refuse("context", body.context, "filling the middle knows no conversation")


def _conversation(body: GenerateBody, *, links: bool) -> tuple[Message, ...]:
    """Return the conversation so far with the prompt behind it. A new system text replaces the one carried on."""
    items = unpack(body.context or [])
    if body.system:
        items = (said("system", body.system), *(item for item in items if item.role != "system"))
    return (*items, Message(role="user", content=parts_of(body.prompt or "", body.images, "images", links=links)))


def whole(view: GenerateView, stamp: Stamp, result: Result) -> Rendered:
    """Write the whole answer."""
    return replies.whole(generate_form, view.model, stamp=stamp, result=result, **view.context(result.choices[0].text))


def stream(view: GenerateView, _stamp: Stamp) -> Lines:
    """Write the answer line by line."""
    last = None if view.conversation is None else view.context
    return Lines(generate_form, view.model, wording=WORDING.of, last=last)


GENERATE: Final = Operation(
    method="POST",
    path="/api/generate",
    summary="Answer a prompt, or load or unload a model when the prompt is empty",
    parse=parse,
    whole=whole,
    stream=stream,
    stream_type=NDJSON,
    body=GenerateBody,
    reply=GenerateReply,
    error=WORDING.render,
)
