"""POST /v1/chat/completions: a chat in, an answer out, whole or as server-sent events.

Neighbours: `messages`, `tools`, `format`, `sampling`, `thinking` read the parts of the body; `chunks` frames the stream.
Invariant: the chunks, folded by OpenAI's own package, are the whole answer.
Source: the types of the `openai` package, which are generated from OpenAI's specification.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, assert_never

import msgspec

from diglot.core.errors import AnyFault, InvalidField, UnsupportedField
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
from diglot.core.items import ToolCall
from diglot.core.request import Conversation, Generation
from diglot.core.result import Choice, Result
from diglot.dialects.openai.body import decode
from diglot.dialects.openai.chunks import ChunkStream, encode
from diglot.dialects.openai.errors import render_error
from diglot.dialects.openai.format import FormatBody, format_of
from diglot.dialects.openai.logprobs import ChatLogprobsReply, chat_logprobs
from diglot.dialects.openai.messages import MessageBody, items_of
from diglot.dialects.openai.sampling import SamplingBody, Whole, includes_usage, residence_of, sampling_of
from diglot.dialects.openai.thinking import EffortBody, ReasoningBody, TemplateArgumentsBody, think_of
from diglot.dialects.openai.tools import (
    UNHELD,
    CalledFunctionReply,
    FunctionBody,
    FunctionCallBody,
    ToolBody,
    ToolCallReply,
    ToolChoiceBody,
    call_reply,
    choice_of,
    function_reply,
    specs_of,
)
from diglot.dialects.openai.usage import UsageReply, usage_reply
from diglot.dialects.operation import Operation, Parsed, Rendered, Stamp, Wire

FinishReason = Literal["stop", "length", "tool_calls", "function_call"]
_Alternatives = Annotated[int, msgspec.Meta(ge=0, le=20)]


class ChatBody(SamplingBody, kw_only=True):
    """A chat."""

    messages: Annotated[list[MessageBody], msgspec.Meta(min_length=1)]
    max_completion_tokens: Whole | None = None
    logprobs: bool | None = None
    top_logprobs: _Alternatives | None = None
    tools: list[ToolBody] | None = None
    tool_choice: ToolChoiceBody | None = None
    parallel_tool_calls: bool | None = None
    functions: list[FunctionBody] | None = None
    function_call: FunctionCallBody | None = None
    response_format: FormatBody | None = None
    reasoning_effort: EffortBody | None = None
    reasoning: ReasoningBody | None = None
    think: bool | EffortBody | None = None
    chat_template_kwargs: TemplateArgumentsBody | None = None
    modalities: list[Literal["text", "audio"]] | None = None
    audio: Any = None
    web_search_options: Any = None
    moderation: Any = None
    prediction: Any = None
    verbosity: Literal["low", "medium", "high"] | None = None
    store: bool | None = None
    metadata: Any = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: Any = None
    prompt_cache_retention: str | None = None
    service_tier: str | None = None


class MessageReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the model said. `content` is null where it only called. Reasoning stands under both names in use."""

    role: Literal["assistant", ""] = ""
    content: str | None
    refusal: str | None
    reasoning_content: str | msgspec.UnsetType = msgspec.UNSET
    reasoning: str | msgspec.UnsetType = msgspec.UNSET
    tool_calls: list[ToolCallReply] | msgspec.UnsetType = msgspec.UNSET
    function_call: CalledFunctionReply | msgspec.UnsetType = msgspec.UNSET


class ChoiceReply(msgspec.Struct, frozen=True):
    """One answer."""

    index: int
    message: MessageReply
    logprobs: ChatLogprobsReply | None
    finish_reason: FinishReason


class ChatReply(msgspec.Struct, frozen=True, kw_only=True):
    """All answers, whole."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChoiceReply]
    usage: UsageReply


class DeltaReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """More of an answer; a finish chunk has none of these."""

    role: Literal["assistant", ""] = ""
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCallReply] | None = None
    function_call: CalledFunctionReply | None = None


class ChunkChoiceReply(msgspec.Struct, frozen=True):
    """One choice of a chunk."""

    index: int
    delta: DeltaReply
    logprobs: ChatLogprobsReply | None = None
    finish_reason: FinishReason | None = None


class ChatView(msgspec.Struct, frozen=True):
    """What the renderer must know: the name as asked for, how many answers, usage, and the older form of calls."""

    model: str | None = None
    choices: int = 1
    include_usage: bool = False
    old_calls: bool = False


_DECODER = msgspec.json.Decoder(ChatBody)


def parse(wire: Wire) -> Parsed:
    """Read a chat."""
    body = decode(wire.body, _DECODER)
    _refuse(body)
    wire.allowance.admit_messages(len(body.messages), field="messages")
    items = items_of(body.messages, links=wire.allowance.links)
    wire.allowance.admit_contents(items, field="messages")
    tools = specs_of(body.tools, body.functions, wire.allowance)
    limit = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    old_calls = bool(body.functions) and not body.tools
    request = Generation(
        residence=residence_of(body, window=body.num_ctx, options=body.options),
        prompt=Conversation(items),
        tools=tools,
        tool_choice=choice_of(body.tool_choice, body.function_call, tools),
        parallel_calls=body.parallel_tool_calls is not False and not old_calls,
        sampling=sampling_of(body, limit),
        format=format_of(body.response_format),
        think=think_of(
            effort=body.reasoning_effort,
            reasoning=body.reasoning,
            think=body.think,
            arguments=body.chat_template_kwargs,
        ),
        choices=body.n or 1,
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
    )
    view = ChatView(
        model=body.model or None, choices=request.choices, include_usage=includes_usage(body), old_calls=old_calls
    )
    notes = (UNHELD,) if any(tool.grammar for tool in tools) else ()
    return Parsed(request=request, view=view, stream=bool(body.stream), notes=notes)


def _refuse(body: ChatBody) -> None:
    """Refuse by name what cannot be done."""
    if body.max_tokens == 0 or body.max_completion_tokens == 0:
        field = "max_tokens" if body.max_completion_tokens is None else "max_completion_tokens"
        raise InvalidField(field, "must be at least 1, or negative for as many as the window holds")
    if body.top_logprobs and not body.logprobs:
        raise InvalidField("top_logprobs", "needs logprobs to be true")
    if body.audio is not None or "audio" in (body.modalities or ()):
        raise UnsupportedField("modalities" if body.audio is None else "audio", "no model here speaks")
    if body.web_search_options is not None:
        raise UnsupportedField("web_search_options", "this server searches nothing; declare a tool of yours")
    if body.moderation is not None:
        raise UnsupportedField("moderation", "this server moderates nothing")


def whole(view: ChatView, stamp: Stamp, result: Result) -> Rendered:
    """Render all answers."""
    reply = ChatReply(
        id=_id(stamp),
        created=int(stamp.now),
        model=view.model or result.model,
        choices=[_choice(index, choice, view) for index, choice in enumerate(result.choices)],
        usage=usage_reply(result.usage),
    )
    return Rendered(body=encode(reply))


def _id(stamp: Stamp) -> str:
    return f"chatcmpl-{stamp.id}"


def _choice(index: int, choice: Choice, view: ChatView) -> ChoiceReply:
    calls: list[ToolCallReply] | msgspec.UnsetType = msgspec.UNSET
    called: CalledFunctionReply | msgspec.UnsetType = msgspec.UNSET
    if choice.calls and view.old_calls:
        called = function_reply(choice.calls[0])
    elif choice.calls:
        calls = [call_reply(call) for call in choice.calls]
    message = MessageReply(
        role="assistant",
        content=choice.text or (None if choice.calls else ""),
        refusal=None,
        reasoning_content=choice.reasoning or msgspec.UNSET,
        reasoning=choice.reasoning or msgspec.UNSET,
        tool_calls=calls,
        function_call=called,
    )
    return ChoiceReply(
        index=index,
        message=message,
        logprobs=chat_logprobs(choice.logprobs),
        finish_reason=_finish(choice.reason, called=bool(choice.calls), view=view),
    )


def _finish(reason: Reason, *, called: bool, view: ChatView) -> FinishReason:
    if reason == "length":
        return "length"
    if called:
        return "function_call" if view.old_calls else "tool_calls"
    return "stop"


class ChatStream(ChunkStream):
    """Renders the events of a chat."""

    def __init__(self, view: ChatView, stamp: Stamp) -> None:
        super().__init__(
            id=_id(stamp),
            kind="chat.completion.chunk",
            created=int(stamp.now),
            model=view.model,
            include_usage=view.include_usage,
        )
        self._view = view
        self._calls = [0] * view.choices
        self._silent = set(range(view.choices))
        self._before: list[bytes] = []
        self._after = b""

    def feed(self, event: Event, now: float) -> bytes:  # noqa: ARG002  Chunks carry the time of the answer's beginning.
        """Render one event. Text without log-probabilities, the commonest by far, is put between ready bytes."""
        match event:
            case TextDelta():
                self._silent.discard(event.choice)
                if not event.logprobs:
                    return self._before[event.choice] + encode(event.text) + self._after
                delta = DeltaReply(content=event.text)
                return self.chunk(ChunkChoiceReply(event.choice, delta, logprobs=chat_logprobs(event.logprobs)))
            case ReasoningDelta():
                thought = DeltaReply(reasoning_content=event.text, reasoning=event.text)
                piece = self.chunk(ChunkChoiceReply(event.choice, thought))
            case ToolCallDone():
                piece = self._call(event.call, event.choice)
            case Finished():
                piece = self._finish(event)
            case Started():
                piece = self._begin(event)
            case Progress() | Compacted():
                piece = b""
            case _:
                assert_never(event)
        return piece

    def _begin(self, event: Started) -> bytes:
        self.open(event)
        self._after = b'},"logprobs":null,"finish_reason":null}' + self.tail
        head = self.head
        self._before = [head + b'{"index":%d,"delta":{"content":' % index for index in range(self._view.choices)]
        role = DeltaReply(role="assistant")
        return b"".join(self.chunk(ChunkChoiceReply(index, role)) for index in range(self._view.choices))

    def _call(self, call: ToolCall, choice: int) -> bytes:
        index = self._calls[choice]
        self._calls[choice] += 1
        self._silent.discard(choice)
        if not self._view.old_calls:
            return self.chunk(ChunkChoiceReply(choice, DeltaReply(tool_calls=[call_reply(call, index)])))
        if index:  # The older form holds one call.
            return b""
        return self.chunk(ChunkChoiceReply(choice, DeltaReply(function_call=function_reply(call))))

    def _finish(self, event: Finished) -> bytes:
        self.count(event)
        reason = _finish(event.reason, called=bool(self._calls[event.choice]), view=self._view)
        end = self.chunk(ChunkChoiceReply(event.choice, DeltaReply(), finish_reason=reason))
        if event.choice in self._silent:  # An answer of no words is "" and not null.
            return self.chunk(ChunkChoiceReply(event.choice, DeltaReply(content=""))) + end
        return end


def error(fault: AnyFault) -> Rendered:
    """Render a fault. An engine that refuses a schema knows the field by the core's name for it."""
    if isinstance(fault, InvalidField | UnsupportedField) and fault.field == "format":
        fault = type(fault)("response_format", fault.reason)
    return render_error(fault)


OPERATION = Operation(
    method="POST",
    path="/v1/chat/completions",
    summary="Answer a chat.",
    parse=parse,
    whole=whole,
    stream=ChatStream,
    body=ChatBody,
    reply=ChatReply,
    error=error,
)
