"""The body of a request, and what of it is told back to the client.

Neighbours: `create`, `compact` and `count` read the same body; `input` and `tools` read the lists in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from diglot.core.allowance import Allowance, Toolbox
from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.request import (
    Compacting,
    Conversation,
    Generation,
    OutputFormat,
    Overflow,
    PlainText,
    Respond,
)
from diglot.dialects.openai.format import JsonObjectBody, SchemaBody, TextResponseBody, format_of, schema_format
from diglot.dialects.openai.responses.ids import bare_id
from diglot.dialects.openai.responses.input import Received, received
from diglot.dialects.openai.responses.raw import absent, is_null, read
from diglot.dialects.openai.responses.reply import EchoReply, View, encode
from diglot.dialects.openai.responses.tools import ChoiceBody, ChosenBody, Declared, ToolChoiceBody, choice_of, declared
from diglot.dialects.openai.sampling import SamplingBody, Whole, residence_of, sampling_of
from diglot.dialects.openai.thinking import EffortBody, think_of
from diglot.dialects.openai.thinking import ReasoningBody as ThinkingBody
from diglot.dialects.openai.tools import UNHELD

LEAST_THRESHOLD = 1000
_LOGPROBS = "message.output_text.logprobs"


class SchemaFormatBody(msgspec.Struct, tag_field="type", tag="json_schema"):
    """JSON under a schema."""

    schema: dict[str, Any]
    name: str = "answer"
    strict: bool | None = None
    description: str | None = None


class TextBody(msgspec.Struct):
    """How the answer looks."""

    format: TextResponseBody | JsonObjectBody | SchemaFormatBody | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ReasoningBody(msgspec.Struct):
    """How much the model thinks, and whether that is shown as a summary or as it is."""

    effort: EffortBody | None = None
    summary: str | None = None
    generate_summary: str | None = None


class ContextManagementBody(msgspec.Struct):
    """What happens to a conversation that grows long."""

    type: str
    compact_threshold: int | None = None


class ResponseBody(SamplingBody, kw_only=True):
    """A request for a response."""

    input: msgspec.Raw = msgspec.field(default_factory=absent)
    instructions: str | None = None
    previous_response_id: str | None = None
    max_output_tokens: Whole | None = None
    max_tool_calls: Whole | None = None
    tools: list[msgspec.Raw] | None = None
    tool_choice: ToolChoiceBody | None = None
    parallel_tool_calls: bool | None = None
    text: TextBody | None = None
    reasoning: ReasoningBody | None = None
    include: list[str] | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    context_management: list[ContextManagementBody] | None = None
    store: bool | None = None
    background: bool | None = None
    metadata: dict[str, str] | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    conversation: Any = None
    prompt: Any = None
    moderation: Any = None


class Understood(msgspec.Struct, frozen=True):
    """A body, read: the request, what is told back, and what was left out."""

    respond: Respond
    view: View
    notes: tuple[str, ...]
    trigger: bool


def understand(body: ResponseBody, allowance: Allowance, *, keep: bool = True) -> Understood:
    """Read a body. `keep` is whether the response is stored where the body does not say. Raises faults."""
    _refuse(body)
    toolbox = Toolbox(allowance)
    given = received(body.input, toolbox)
    if not (given.items or given.trigger or body.previous_response_id):
        raise InvalidField("input", "is required" if is_null(body.input) else "must not be empty")
    tools = declared(body.tools or (), toolbox, field="tools")
    store = keep if body.store is None else body.store
    view = View(echo=_echo(body, store=store), open_text=not (body.reasoning and _summary(body.reasoning)))
    respond = Respond(
        _generation(body, given, tools),
        previous=bare_id(body.previous_response_id) if body.previous_response_id else None,
        instructions=body.instructions,
        keep=store,
        background=bool(body.background),
        found=given.found,
        references=given.references,
        echo=encode(view) if store else b"",
    )
    notes = [f"a tool of the kind {kind!r} was left out: nothing here runs it" for kind in tools.left_out]
    if any(spec.grammar for spec in (*tools.specs, *given.found)):
        notes.append(UNHELD)
    return Understood(respond, view, tuple(notes), trigger=given.trigger)


def without_answer(respond: Respond) -> Respond:
    """Return the request with nothing left in it that only shapes an answer."""
    asked = respond.generation
    bare = Generation(
        residence=asked.residence,
        prompt=asked.prompt,
        tools=asked.tools,
        tool_choice=asked.tool_choice,
        think=asked.think,
    )
    return msgspec.structs.replace(respond, generation=bare, background=False)


def _refuse(body: ResponseBody) -> None:
    """Refuse by name what cannot be done."""
    for field in ("max_output_tokens", "max_tokens"):
        if getattr(body, field) == 0:
            raise InvalidField(field, "must be at least 1")
    if (body.n or 1) > 1:
        raise UnsupportedField("n", "a response is one answer")
    if body.conversation is not None:
        raise UnsupportedField(
            "conversation", "conversations are not kept; use previous_response_id, or send the items"
        )
    if body.prompt is not None:
        raise UnsupportedField("prompt", "there are no prompt templates here; send instructions and input")
    if body.moderation is not None:
        raise UnsupportedField("moderation", "this server moderates nothing")
    if body.background and body.stream:
        raise UnsupportedField("background", "an answer in the background is not streamed; fetch it by its id")
    if body.background and body.store is False:
        raise InvalidField("background", "needs store to be true, for it is fetched by its id")


def _generation(body: ResponseBody, given: Received, tools: Declared) -> Generation:
    limit = body.max_output_tokens if body.max_output_tokens is not None else body.max_tokens
    compacting, folds = _compacting(body.context_management or (), trigger=given.trigger)
    overflow = Overflow.TRUNCATE if body.truncation == "auto" else Overflow.ERROR
    thinking = ThinkingBody(effort=body.reasoning.effort) if body.reasoning else None
    logprobs = body.top_logprobs or (0 if _LOGPROBS in (body.include or ()) else None)
    return Generation(
        residence=residence_of(body, window=body.num_ctx, options=body.options),
        prompt=Conversation(given.items),
        tools=tools.specs,
        tool_choice=choice_of(body.tool_choice, (*tools.specs, *given.found)),
        parallel_calls=body.parallel_tool_calls is not False,
        sampling=sampling_of(body, limit),
        format=_format(body.text),
        think=think_of(effort=None, reasoning=thinking, think=None, arguments=None),
        logprobs=logprobs,
        overflow=Overflow.COMPACT if folds else overflow,
        compacting=compacting,
    )


def _compacting(rules: Sequence[ContextManagementBody], *, trigger: bool) -> tuple[Compacting | None, bool]:
    """Return the wish for compaction, and whether it comes true where the conversation would not fit."""
    threshold: int | None = None
    for index, rule in enumerate(rules):
        field = f"context_management[{index}]"
        if rule.type != "compaction":
            raise UnsupportedField(f"{field}.type", "only compaction is known here")
        if index:
            raise InvalidField(field, "one rule is all that can hold")
        threshold = rule.compact_threshold
        if threshold is not None and threshold < LEAST_THRESHOLD:
            raise InvalidField(f"{field}.compact_threshold", f"must be at least {LEAST_THRESHOLD}")
    if trigger:
        return Compacting(threshold=threshold, instead=True), False
    return (Compacting(threshold=threshold) if threshold is not None else None), bool(rules) and threshold is None


def _format(text: TextBody | None) -> OutputFormat:
    match text.format if text else None:
        case None:
            return PlainText()
        case SchemaFormatBody() as body:
            named = SchemaBody(schema=body.schema, name=body.name, strict=body.strict)
            return schema_format(named, field="text.format.schema")
        case body:
            return format_of(body)


def _summary(reasoning: ReasoningBody) -> str | None:
    return reasoning.summary or reasoning.generate_summary


def _echo(body: ResponseBody, *, store: bool) -> EchoReply:
    reasoning = body.reasoning or ReasoningBody()
    chosen: dict[str, Any] = {
        "background": body.background,
        "frequency_penalty": body.frequency_penalty,
        "metadata": body.metadata,
        "parallel_tool_calls": body.parallel_tool_calls,
        "presence_penalty": body.presence_penalty,
        "temperature": body.temperature,
        "top_logprobs": body.top_logprobs,
        "top_p": body.top_p,
        "truncation": body.truncation,
    }
    return EchoReply(
        model=body.model or "",
        instructions=body.instructions,
        max_output_tokens=body.max_output_tokens,
        max_tool_calls=body.max_tool_calls,
        previous_response_id=body.previous_response_id,
        prompt_cache_key=body.prompt_cache_key,
        reasoning={"effort": reasoning.effort, "summary": _summary(reasoning)},
        safety_identifier=body.safety_identifier,
        store=store,
        text=_text_echo(body.text or TextBody()),
        tool_choice=_choice_echo(body.tool_choice),
        tools=msgspec.Raw(encode([_tool_echo(raw, f"tools[{index}]") for index, raw in enumerate(body.tools or ())])),
        user=body.user,
        **{name: value for name, value in chosen.items() if value is not None},
    )


def _text_echo(text: TextBody) -> dict[str, Any]:
    shown: Any = text.format or TextResponseBody()
    if isinstance(shown, SchemaFormatBody):
        shown = msgspec.structs.replace(shown, strict=shown.strict is not False)
    return {"format": shown, "verbosity": text.verbosity or "medium"}


def _choice_echo(choice: ToolChoiceBody | ChosenBody | None) -> Any:
    if isinstance(choice, ChoiceBody) and choice.type == "allowed_tools":
        return {"type": choice.type, "mode": choice.mode, "tools": [_choice_echo(each) for each in choice.tools or ()]}
    if not isinstance(choice, ChosenBody):
        return choice or "auto"
    return {key: value for key in ("type", "name", "namespace") if (value := getattr(choice, key)) is not None}


_FUNCTION_ECHO: Final[Mapping[str, None]] = {"description": None, "parameters": None, "strict": None}
_OBJECT = msgspec.json.Decoder(dict[str, Any])


def _tool_echo(raw: msgspec.Raw, path: str) -> Any:
    """Return a tool as it was declared, a function with all of its keys."""
    tool = read(raw, _OBJECT, path)
    return {**_FUNCTION_ECHO, **tool} if tool.get("type") == "function" else tool
