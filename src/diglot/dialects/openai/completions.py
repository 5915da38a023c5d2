"""POST /v1/completions: a bare prompt in, its continuation out.

The prompt goes to the model as it is, without a chat template, so nothing in the answer is read as reasoning
or as a call. Neighbours: `sampling`, `chunks`, `logprobs`.
Invariant: the chunks, their texts put together, are the whole answer.
"""

from __future__ import annotations

from typing import Annotated, Literal, assert_never

import msgspec

from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.events import (
    Compacted,
    Event,
    Finished,
    Progress,
    Reason,
    ReasoningDelta,
    Started,
    TextDelta,
    ToolCallDone,
)
from diglot.core.request import Generation, RawPrompt
from diglot.core.result import Choice, Result
from diglot.dialects.openai.body import decode
from diglot.dialects.openai.chunks import ChunkStream, encode
from diglot.dialects.openai.inputs import InputBody, inputs_of
from diglot.dialects.openai.logprobs import TextLogprobsReply, text_logprobs
from diglot.dialects.openai.sampling import Choices, SamplingBody, includes_usage, residence_of, sampling_of
from diglot.dialects.openai.usage import UsageReply, usage_reply
from diglot.dialects.operation import Operation, Parsed, Rendered, Stamp, Wire

FinishReason = Literal["stop", "length"]


class CompletionBody(SamplingBody, kw_only=True):
    """A prompt: text, or token ids, alone or as the one member of a list."""

    prompt: InputBody | None
    suffix: str | None = None
    echo: bool | None = None
    best_of: Choices | None = None
    logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None


class TextChoiceReply(msgspec.Struct, frozen=True):
    """One continuation, or, in a stream, more of it."""

    index: int
    text: str
    logprobs: TextLogprobsReply | None = None
    finish_reason: FinishReason | None = None


class CompletionReply(msgspec.Struct, frozen=True, kw_only=True):
    """All continuations, whole."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[TextChoiceReply]
    usage: UsageReply


class CompletionView(msgspec.Struct, frozen=True):
    """What the renderer must know. `echo` stands before every continuation."""

    model: str | None = None
    choices: int = 1
    include_usage: bool = False
    echo: str = ""


_DECODER = msgspec.json.Decoder(CompletionBody)


def parse(wire: Wire) -> Parsed:
    """Read a prompt."""
    body = decode(wire.body, _DECODER)
    prompt = _prompt(body)
    _refuse(body, prompt)
    request = Generation(
        residence=residence_of(body, window=body.num_ctx, options=body.options),
        prompt=RawPrompt(content=prompt, suffix=body.suffix or None),
        sampling=sampling_of(body, body.max_tokens),
        choices=body.n or 1,
        logprobs=body.logprobs,
    )
    view = CompletionView(
        model=body.model or None,
        choices=request.choices,
        include_usage=includes_usage(body),
        echo=prompt if body.echo and isinstance(prompt, str) else "",
    )
    return Parsed(request=request, view=view, stream=bool(body.stream))


def _prompt(body: CompletionBody) -> str | tuple[int, ...]:
    """Return the one prompt; none at all is the beginning of a text."""
    if body.prompt is None:
        return ""
    prompts = inputs_of(body.prompt, field="prompt")
    if len(prompts) > 1:
        raise UnsupportedField("prompt", f"{len(prompts)} prompts in one request; send one request for each")
    return prompts[0]


def _refuse(body: CompletionBody, prompt: str | tuple[int, ...]) -> None:
    """Refuse by name what cannot be done."""
    if body.max_tokens == 0:
        raise InvalidField("max_tokens", "must be at least 1, or negative for as many as the window holds")
    if body.best_of is not None and body.best_of != (body.n or 1):
        if body.best_of < (body.n or 1):
            raise InvalidField("best_of", "must not be less than n")
        raise UnsupportedField("best_of", "answers are not ranked; it may only equal n")
    if body.echo and not isinstance(prompt, str):
        raise UnsupportedField("echo", "a prompt of token ids cannot be echoed as text")
    if body.echo and body.logprobs is not None:
        raise UnsupportedField("echo", "the tokens of a prompt have no log-probabilities here")
    if body.suffix and not isinstance(prompt, str):
        raise UnsupportedField("suffix", "needs a prompt of text")


def whole(view: CompletionView, stamp: Stamp, result: Result) -> Rendered:
    """Render all continuations."""
    reply = CompletionReply(
        id=_id(stamp),
        created=int(stamp.now),
        model=view.model or result.model,
        choices=[_choice(index, choice, view) for index, choice in enumerate(result.choices)],
        usage=usage_reply(result.usage),
    )
    return Rendered(body=encode(reply))


def _id(stamp: Stamp) -> str:
    return f"cmpl-{stamp.id}"


def _choice(index: int, choice: Choice, view: CompletionView) -> TextChoiceReply:
    return TextChoiceReply(
        index=index,
        text=view.echo + choice.text,
        logprobs=text_logprobs(choice.logprobs),
        finish_reason=_finish(choice.reason),
    )


def _finish(reason: Reason) -> FinishReason:
    return "length" if reason == "length" else "stop"


class CompletionStream(ChunkStream):
    """Renders the events of a continuation."""

    def __init__(self, view: CompletionView, stamp: Stamp) -> None:
        super().__init__(
            id=_id(stamp),
            kind="text_completion",
            created=int(stamp.now),
            model=view.model,
            include_usage=view.include_usage,
        )
        self._view = view
        self._length = [0] * view.choices
        self._before: list[bytes] = []
        self._after = b""

    def feed(self, event: Event, now: float) -> bytes:  # noqa: ARG002  Chunks carry the time of the answer's beginning.
        """Render one event."""
        match event:
            case TextDelta():
                if not event.logprobs:
                    return self._before[event.choice] + encode(event.text) + self._after
                offset = self._length[event.choice]
                self._length[event.choice] = offset + sum(len(each.token) for each in event.logprobs)
                table = text_logprobs(event.logprobs, offset=offset)
                return self.chunk(TextChoiceReply(event.choice, event.text, logprobs=table))
            case Finished():
                self.count(event)
                return self.chunk(TextChoiceReply(event.choice, "", finish_reason=_finish(event.reason)))
            case Started():
                self.open(event)
                return self._begin()
            # Of a bare prompt come no thoughts and no calls.
            case Progress() | Compacted() | ReasoningDelta() | ToolCallDone():
                return b""
            case _:
                assert_never(event)

    def _begin(self) -> bytes:
        self._after = b',"logprobs":null,"finish_reason":null}' + self.tail
        head, echo = self.head, self._view.echo
        self._before = [head + b'{"index":%d,"text":' % index for index in range(self._view.choices)]
        return (
            b"".join(self.chunk(TextChoiceReply(index, echo)) for index in range(self._view.choices)) if echo else b""
        )


OPERATION = Operation(
    method="POST",
    path="/v1/completions",
    summary="Continue a text.",
    parse=parse,
    whole=whole,
    stream=CompletionStream,
    body=CompletionBody,
    reply=CompletionReply,
)
