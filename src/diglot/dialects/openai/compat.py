"""What becomes of every field that a client may send: the lines of `docs/compat.md` for this dialect.

A field is honoured, refused by its name, or listed here as having no effect, with the reason. What a line says
of a field holds for all that is inside it, unless a line of its own says otherwise. Tests hold this table against
the types of the `openai` package, against our own structs, and against what `parse` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from diglot.dialects.openai.compat_responses import RESPONSES_TRAITS
from diglot.dialects.operation import Trait

CHAT: Final = "POST /v1/chat/completions"
COMPLETIONS: Final = "POST /v1/completions"
EMBEDDINGS: Final = "POST /v1/embeddings"
RERANK: Final = "POST /v1/rerank"

_UNKNOWN: Final = "a field that no line names is passed over: OpenAI adds new ones often, and clients send them to all"
_NO_PADDING: Final = "chunks carry no padding; nothing between the server and its client measures them"
_CACHE: Final = "prefixes are always cached, as long as the model stays loaded"
_LOOSE: Final = "without `strict`, what no grammar can enforce is left out of a schema"
_NOBODY: Final = "there are no accounts to tell apart"


def _honoured(operation: str, fields: str, note: str = "") -> Iterator[Trait]:
    return (Trait(operation=operation, field=field, support="honoured", note=note) for field in fields.split())


def _refused(operation: str, fields: str, note: str) -> Iterator[Trait]:
    return (Trait(operation=operation, field=field, support="refused", note=note) for field in fields.split())


def _ignored(operation: str, fields: str, note: str) -> Iterator[Trait]:
    return (Trait(operation=operation, field=field, support="ignored", note=note) for field in fields.split())


_SAMPLING: Final = (
    "model stream stream_options stream_options.include_usage n temperature top_p presence_penalty frequency_penalty"
    " seed max_tokens stop logit_bias keep_alive top_k min_p typical_p repeat_penalty repetition_penalty repeat_last_n"
    " num_ctx options options.num_ctx options.num_predict options.num_batch options.num_thread options.num_gpu"
    " options.main_gpu options.use_mmap options.seed options.stop options.temperature options.top_k options.top_p"
    " options.min_p options.typical_p options.repeat_last_n options.repeat_penalty options.presence_penalty"
    " options.frequency_penalty"
)
_CHAT: Final = (
    "messages messages.role messages.content messages.content.type messages.content.text messages.content.refusal"
    " messages.content.image_url messages.content.image_url.url messages.refusal messages.reasoning_content"
    " messages.reasoning messages.tool_calls messages.tool_calls.id messages.tool_calls.type"
    " messages.tool_calls.function messages.tool_calls.function.name messages.tool_calls.function.arguments"
    " messages.tool_calls.custom messages.tool_calls.custom.name messages.tool_calls.custom.input"
    " messages.tool_call_id messages.function_call messages.function_call.name messages.function_call.arguments"
    " max_completion_tokens logprobs top_logprobs"
    " tools tools.type tools.function tools.function.name tools.function.description"
    " tools.function.strict tools.custom tools.custom.name tools.custom.description"
    " tool_choice tool_choice.type tool_choice.function tool_choice.function.name tool_choice.custom"
    " tool_choice.custom.name tool_choice.allowed_tools tool_choice.allowed_tools.mode"
    " tool_choice.allowed_tools.tools tool_choice.allowed_tools.tools.type tool_choice.allowed_tools.tools.function"
    " tool_choice.allowed_tools.tools.function.name tool_choice.allowed_tools.tools.custom"
    " tool_choice.allowed_tools.tools.custom.name parallel_tool_calls functions functions.name"
    " functions.description functions.strict function_call function_call.name"
    " response_format response_format.type response_format.schema response_format.json_schema"
    " response_format.json_schema.name response_format.json_schema.schema response_format.json_schema.strict"
    " reasoning_effort reasoning reasoning.effort reasoning.enabled think"
    " chat_template_kwargs chat_template_kwargs.enable_thinking chat_template_kwargs.reasoning_effort"
)

TRAITS: Final[tuple[Trait, ...]] = (
    *_honoured(CHAT, _SAMPLING),
    *_honoured(CHAT, _CHAT),
    *_honoured(CHAT, "tools.function.parameters functions.parameters", _LOOSE),
    *_honoured(CHAT, "modalities", "text; sound is refused"),
    *_refused(CHAT, "audio messages.audio messages.content.input_audio", "no model here hears or speaks"),
    *_refused(CHAT, "messages.content.file", "send the text, or a picture as image_url"),
    *_refused(CHAT, "web_search_options", "this server searches nothing; declare a tool of your own"),
    *_refused(CHAT, "moderation", "this server moderates nothing"),
    *_ignored(CHAT, "messages.name", "chat templates know no names of speakers; the name of a tool is used"),
    *_ignored(CHAT, "messages.content.image_url.detail", "the model decides how large it sees a picture"),
    *_ignored(
        CHAT,
        "tools.custom.format tools.custom.format.type tools.custom.format.grammar"
        " tools.custom.format.grammar.definition tools.custom.format.grammar.syntax",
        "the text of a custom tool is not held to its grammar, which a line in the log says; describe it to the model",
    ),
    *_ignored(CHAT, "response_format.json_schema.description", "the schema binds without it"),
    *_ignored(CHAT, "prediction", "it could only make the same answer faster"),
    *_ignored(CHAT, "verbosity", "local models have no such setting; ask for it in words"),
    *_ignored(CHAT, "store metadata", "chats are not stored; Responses are"),
    *_ignored(CHAT, "user safety_identifier", _NOBODY),
    *_ignored(CHAT, "service_tier", "there is one tier"),
    *_ignored(
        CHAT,
        "prompt_cache_key prompt_cache_options prompt_cache_retention messages.content.prompt_cache_breakpoint",
        _CACHE,
    ),
    *_ignored(CHAT, "stream_options.include_obfuscation", _NO_PADDING),
    *_ignored(CHAT, "*", _UNKNOWN),
    *_honoured(COMPLETIONS, _SAMPLING),
    *_honoured(COMPLETIONS, "prompt", "one; several in one request are refused"),
    *_honoured(COMPLETIONS, "suffix logprobs"),
    *_honoured(COMPLETIONS, "echo", "for a prompt of text, without logprobs; else refused"),
    *_refused(COMPLETIONS, "best_of", "unless it equals n"),
    *_ignored(COMPLETIONS, "user", _NOBODY),
    *_ignored(COMPLETIONS, "stream_options.include_obfuscation", _NO_PADDING),
    *_ignored(COMPLETIONS, "*", _UNKNOWN),
    *_honoured(EMBEDDINGS, "model keep_alive input encoding_format dimensions"),
    *_ignored(EMBEDDINGS, "user", _NOBODY),
    *_ignored(EMBEDDINGS, "*", _UNKNOWN),
    *_honoured(RERANK, "model keep_alive query top_n"),
    *_honoured(RERANK, "documents documents.text", "texts, or objects with a text"),
    *_honoured(RERANK, "return_documents", "off unless it is true"),
    *_refused(RERANK, "max_tokens_per_doc max_chunks_per_doc truncate_prompt_tokens", "documents are not cut"),
    *_ignored(RERANK, "user", _NOBODY),
    *_ignored(RERANK, "*", _UNKNOWN),
    *RESPONSES_TRAITS,
)
