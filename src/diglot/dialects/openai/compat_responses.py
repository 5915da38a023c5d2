"""What becomes of every field of Responses: the lines of `docs/compat.md` for its three operations with a body.

They read the same body. Where nothing is answered (counting, compacting) what only shapes an answer has no effect.
Neighbour: `compat`, which takes these lines in and says what a line means.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from diglot.dialects.operation import Support, Trait

RESPONSES: Final = "POST /v1/responses"
COMPACT: Final = "POST /v1/responses/compact"
COUNT: Final = "POST /v1/responses/input_tokens"

_PROMPT: Final = (
    "keep_alive num_ctx options options.num_ctx options.num_batch options.num_thread options.num_gpu"
    " options.main_gpu options.use_mmap"
    " input input.type input.role input.content input.content.type input.content.text input.content.refusal"
    " input.content.image_url input.id input.phase input.summary input.summary.text"
    " input.call_id input.name input.namespace input.arguments input.input"
    " input.output input.output.type input.output.text input.output.image_url input.action input.operation"
    " input.encrypted_content input.tools instructions previous_response_id"
    " tools tools.type tools.name tools.description tools.strict tools.tools"
    " tool_choice tool_choice.type tool_choice.name tool_choice.namespace tool_choice.mode tool_choice.tools"
    " tool_choice.tools.type tool_choice.tools.name tool_choice.tools.namespace"
    " reasoning reasoning.effort"
)
_ANSWER: Final = (
    "stream temperature top_p presence_penalty frequency_penalty seed max_output_tokens max_tokens stop"
    " logit_bias top_k min_p typical_p repeat_penalty repetition_penalty repeat_last_n options.num_predict options.seed"
    " options.stop options.temperature options.top_k options.top_p options.min_p options.typical_p options.repeat_last_n"
    " options.repeat_penalty options.presence_penalty options.frequency_penalty"
    " parallel_tool_calls text text.format text.format.type text.format.name text.format.schema text.format.strict"
    " reasoning.summary reasoning.generate_summary include top_logprobs truncation"
    " context_management context_management.type context_management.compact_threshold store metadata"
)
_REFUSED: Final = (
    (
        "input.content.file_id input.content.file_url input.output.file_id input.output.file_url",
        "no files are kept or fetched here; send the data",
    ),
    ("conversation", "use previous_response_id, or send the items"),
    ("prompt", "there are no prompt templates here"),
    ("moderation", "this server moderates nothing"),
    ("n", "unless it is 1: a response is one answer"),
)
_EVERYWHERE: Final = (
    (
        "input.* input.content.* input.output.* input.action.* input.operation.* input.tools.* input.summary.*",
        "an item of a kind that no model reads is kept and shown again; of the others, what has no line is passed over",
    ),
    (
        "tools.* tools.tools.* tools.execution",
        "what only OpenAI's servers could run is left out, with a line in the log, and so is a search that is not the client's",
    ),
    (
        "tools.format tools.format.type tools.format.definition tools.format.syntax",
        "the text of a custom tool is not held to its grammar, which a line in the log says; describe it to the model",
    ),
    ("tool_choice.server_label", "no tool of a server is run here"),
    ("reasoning.mode reasoning.context", "a model has one way to think, and all of its thoughts are sent along"),
    ("text.verbosity", "local models have no such setting; it is told back"),
    ("max_tool_calls", "it counts calls of hosted tools, and there are none; it is told back"),
    ("user safety_identifier", "there are no accounts to tell apart; it is told back"),
    ("service_tier", "there is one tier"),
    (
        "prompt_cache_key prompt_cache_options prompt_cache_retention",
        "prefixes are always cached, as long as the model stays loaded",
    ),
    ("stream_options", "events carry no padding; the usage always stands in the last"),
    ("text.format.description", "the schema binds without it"),
    ("image access_programs background_options personality", "nothing here answers to it"),
    ("*", "a field that no line names is passed over: OpenAI adds new ones often, and clients send them to all"),
)
_NO_ANSWER: Final = "no answer is made"


def _lines(operation: str, fields: str, *, support: Support, note: str = "") -> Iterator[Trait]:
    return (Trait(operation=operation, field=field, support=support, note=note) for field in fields.split())


def _traits() -> Iterator[Trait]:
    for operation in (RESPONSES, COMPACT, COUNT):
        note = "it makes the summary too; there is no other one that could be missing" if operation == COMPACT else ""
        yield from _lines(operation, "model", support="honoured", note=note)
        yield from _lines(operation, _PROMPT, support="honoured")
        yield from _lines(
            operation, "input.content.file_data input.content.filename", support="honoured", note="files of text"
        )
        yield from _lines(
            operation, "input.output.file_data input.output.filename", support="honoured", note="files of text"
        )
        yield from _lines(
            operation,
            "tools.parameters",
            support="honoured",
            note="without `strict`, what no grammar can enforce is left out of a schema",
        )
        if operation == RESPONSES:
            yield from _lines(operation, _ANSWER, support="honoured")
            yield from _lines(operation, "background", support="honoured", note="not together with stream")
        elif operation == COMPACT:
            yield from _lines(operation, "store", support="honoured", note="off by default")
            yield from _lines(operation, "background", support="refused", note="the client waits for it")
        for fields, note in _REFUSED:
            yield from _lines(operation, fields, support="refused", note=note)
        for fields, note in _EVERYWHERE:
            yield from _lines(operation, fields, support="ignored", note=note)
        if operation == COMPACT:
            yield from _lines(operation, _ANSWER.replace(" store ", " "), support="ignored", note=_NO_ANSWER)
        elif operation == COUNT:
            yield from _lines(operation, f"{_ANSWER} background", support="ignored", note=_NO_ANSWER)


RESPONSES_TRAITS: Final[tuple[Trait, ...]] = tuple(_traits())
