"""What becomes of every field that Ollama's API knows: the source of `docs/compat.md`.

Data only. A test holds it against the body structs both ways, and asks for a test behind every field that
is honoured or refused.

Invariant: each field of each body stands here once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from diglot.dialects.ollama.options import DEAD
from diglot.dialects.operation import Support, Trait

_Table = Mapping[str, tuple[Support, str]]

_PLAIN: Final[tuple[Support, str]] = ("honoured", "")


def _fields(support: Support, note: str, *names: str) -> dict[str, tuple[Support, str]]:
    return dict.fromkeys(names, (support, note))


_MODEL: Final = _fields("honoured", "without it the model used last is taken", "model")
_KEEP_ALIVE: Final = _fields(
    "honoured",
    'a number of seconds or a duration such as 10m, negative for ever; "-1" as a text too, which Ollama refuses',
    "keep_alive",
)
_SAMPLING: Final = (
    *("temperature", "top_p", "top_k", "min_p", "typical_p", "repeat_penalty", "repeat_last_n"),
    *("presence_penalty", "frequency_penalty", "seed", "num_predict", "stop"),
)
_LOADING: Final = tuple(
    f"options.{name}" for name in ("num_ctx", "num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread")
)
_OPTIONS: Final = {
    **_fields("honoured", "unknown keys are read over, as in Ollama", "options"),
    **dict.fromkeys(_LOADING, _PLAIN),
    **_fields("ignored", "nothing is ever dropped from a full window, so there is nothing to keep", "options.num_keep"),
    **_fields("ignored", "there is no draft model", "options.draft_num_predict"),
    **_fields("ignored", "Ollama knows it no more", *(f"options.{name}" for name in DEAD)),
}
_ANSWER: Final = {
    **_MODEL,
    **_KEEP_ALIVE,
    **_OPTIONS,
    **_fields("honoured", "", *(f"options.{name}" for name in _SAMPLING)),
    **_fields("honoured", "on unless it is false", "stream"),
    **_fields("honoured", 'null, "", "json" or a JSON schema', "format"),
    **_fields("honoured", "a bool, low, medium, high or max; a model that cannot think is an error", "think"),
    **_fields(
        "honoured",
        "only true cuts: a prompt that does not fit is an error by default, where Ollama leaves messages out and "
        "does not say so",
        "truncate",
    ),
    **_fields("ignored", "a window is never shifted: an answer that fills it ends with done_reason length", "shift"),
    **_fields("honoured", "", "logprobs"),
    **_fields("honoured", "0 to 20, counts together with logprobs", "top_logprobs"),
    **_fields("refused", "the rendered prompt is not shown", "_debug_render_only"),
}
_CALL: Final = "messages.tool_calls"
_CHAT: Final[_Table] = {
    **_ANSWER,
    **_fields("honoured", "none: the model is loaded, or unloaded with keep_alive 0", "messages"),
    **_fields("honoured", "system, developer, user, assistant or tool, in any case of letters", "messages.role"),
    **_fields("honoured", "a text; a list of text parts is read as well", "messages.content"),
    **_fields("honoured", "text only, other parts are refused", "messages.content.type"),
    **_fields("honoured", "", "messages.content.text", "messages.thinking"),
    **_fields("honoured", "PNG, JPEG or WebP in base64; links where `fetch_images` is set", "messages.images"),
    **_fields("honoured", "", "messages.tool_calls", f"{_CALL}.function", f"{_CALL}.function.name"),
    **_fields("honoured", "an object; a text that holds one is read as well", f"{_CALL}.function.arguments"),
    **_fields("ignored", "calls keep their order", f"{_CALL}.function.index"),
    **_fields("honoured", "without ids, results belong to calls by name and order", f"{_CALL}.id"),
    **_fields("ignored", "all calls are calls of functions", f"{_CALL}.type"),
    **_fields("honoured", "", "messages.tool_name", "messages.tool_call_id"),
    **_fields("honoured", "", "tools", "tools.function", "tools.function.name", "tools.function.description"),
    **_fields(
        "honoured",
        "null keywords count as not given; what no grammar can enforce is left out",
        "tools.function.parameters",
    ),
    **_fields("honoured", "function, other types are refused", "tools.type"),
    **_fields(
        "honoured",
        "a bare function without its envelope is read as well",
        *("tools.name", "tools.description", "tools.parameters"),
    ),
    **_fields("ignored", "no chat template has a place for it", "tools.items"),
}
_GENERATE: Final[_Table] = {
    **_ANSWER,
    **_fields("honoured", "empty: the model is loaded, or unloaded with keep_alive 0", "prompt"),
    **_fields("honoured", "asks to fill the middle, which the model must be able to", "suffix"),
    **_fields("honoured", "replaces the one of the model and of context", "system"),
    **_fields(
        "refused", "prompts are rendered by the model's own chat template, not by one in Go's notation", "template"
    ),
    **_fields("honoured", "the conversation itself, of this server's answers only; images are left out", "context"),
    **_fields("honoured", "not together with template, system, context or images", "raw"),
    **_fields("honoured", "PNG, JPEG or WebP in base64; links where `fetch_images` is set", "images"),
    **_fields("refused", "images are not generated here", "width", "height", "steps"),
}
_UNDRAWN: Final = _fields("ignored", "no token is drawn", *(f"options.{name}" for name in _SAMPLING))
_EMBED: Final[_Table] = {
    **_MODEL,
    **_KEEP_ALIVE,
    **_OPTIONS,
    **_UNDRAWN,
    **_fields("honoured", "a text or a list of texts; empty: the model is loaded", "input"),
    **_fields("honoured", "on unless it is false", "truncate"),
    **_fields("honoured", "more than the model has changes nothing", "dimensions"),
}
_EMBEDDINGS: Final[_Table] = {
    **_MODEL,
    **_KEEP_ALIVE,
    **_OPTIONS,
    **_UNDRAWN,
    **_fields("honoured", "empty: the model is loaded; too long is an error", "prompt"),
}
_SHOW: Final[_Table] = {
    **_fields("honoured", "", "model", "verbose"),
    **_fields("honoured", "where model is empty", "name"),
    **_fields("honoured", "shown in place of the model's own", "system"),
    **_fields("honoured", "shown in the Modelfile", "options"),
    **_fields("ignored", "deprecated; Ollama ignores it as well", "template"),
}
_MOVING: Final = {
    **_fields("honoured", "", "model", "stream"),
    **_fields("honoured", "where model is empty", "name"),
    **_fields("honoured", "the registry is reached by http", "insecure"),
    **_fields("refused", "registries are told who asks by the key of this machine", "username", "password"),
}
_COPY: Final = _fields("honoured", "", "source", "destination")
_CREATE: Final[_Table] = {
    **_fields("honoured", "", "model", "stream", "files", "messages", "messages.role", "messages.content"),
    **_fields("honoured", "where model is empty", "name"),
    **_fields("honoured", "a model that is not here is fetched; not together with files", "from"),
    **_fields("honoured", "GGUF", "adapters"),
    **_fields(
        "honoured",
        "kept with the model and shown; prompts are rendered by the chat template of the weights, and a model whose "
        "weights have none answers raw prompts only",
        "template",
    ),
    **_fields("honoured", "", "system"),
    **_fields("honoured", "a text or a list of texts, added to those of from", "license"),
    **_fields("honoured", "the options of a request; one of another name is refused", "parameters"),
    **_fields("ignored", "an example holds what was said, not what was thought", "messages.thinking"),
    **_fields("refused", "examples are of text", "messages.images", "messages.tool_calls"),
    **_fields(
        "honoured", "f32, f16 or q8_0, for files of safetensors; weights in GGUF are kept as they are", "quantize"
    ),
    **_fields("honoured", "where quantize is empty", "quantization"),
    **_fields(
        "ignored",
        "kept with the model, for other servers; prompts and answers go by the model's own chat template",
        *("renderer", "parser", "requires"),
    ),
    **_fields("refused", "what stands in a Modelfile goes into fields of its own", "modelfile"),
    **_fields("refused", "no file of this machine is opened for a client", "path"),
    **_fields("refused", "models are run here", "remote_host"),
    **_fields("refused", "a model's header is kept as it is", "info"),
}
_DELETE: Final = {
    **_fields("honoured", "", "model"),
    **_fields("honoured", "where model is empty", "name"),
}
_TABLES: Final[Mapping[str, _Table]] = MappingProxyType(
    {
        "POST /api/chat": _CHAT,
        "POST /api/generate": _GENERATE,
        "POST /api/embed": _EMBED,
        "POST /api/embeddings": _EMBEDDINGS,
        "POST /api/show": _SHOW,
        "POST /api/pull": _MOVING,
        "POST /api/push": _MOVING,
        "POST /api/create": _CREATE,
        "POST /api/copy": _COPY,
        "DELETE /api/delete": _DELETE,
    }
)


def _traits() -> Iterator[Trait]:
    for operation, table in _TABLES.items():
        for field, (support, note) in table.items():
            yield Trait(operation, field, support, note)


TRAITS: Final[tuple[Trait, ...]] = tuple(_traits())
