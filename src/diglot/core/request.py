"""Requests: what a client asks of the server, in no dialect's words.

Each dialect parses its bytes into one of these; each service takes one of these. A request holds
values only, and every default means "the client said nothing", so that a model's own parameters can
stand in for it. Neighbours: `core.items` (what a conversation holds), `core.events` (what comes back).

Invariant: a request is complete. Whoever holds it needs nothing else of what the client sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

import msgspec

from diglot.core.digest import Digest
from diglot.core.items import CallKind, Item
from diglot.core.recipe import Recipe

Schema = Mapping[str, Any]
Effort = Literal["none", "low", "medium", "high", "max"]


class Sampling(msgspec.Struct, frozen=True):
    """How the next token is drawn. `None` leaves the choice to the model, then to the engine.

    `max_tokens` counts generated tokens; a negative number means "until the window is full".
    `logit_bias` maps token ids to an amount added to their logit.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    logit_bias: Mapping[int, float] | None = None

    def over(self, defaults: Sampling) -> Sampling:
        """Return these choices, with `defaults` where nothing was chosen."""
        chosen = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(defaults, **chosen)


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool that the client can run. `parameters` is a JSON schema of an object.

    A `freeform` tool takes plain text; `grammar` is its Lark grammar where it has one.
    """

    name: str
    description: str = ""
    parameters: Schema = msgspec.field(default_factory=dict)
    strict: bool | None = None
    namespace: str | None = None
    kind: CallKind = "function"
    grammar: str | None = None


class ToolMode(Enum):
    """Whether the model may call, must not, or must."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


class ToolChoice(msgspec.Struct, frozen=True):
    """Which tools may be called: `names` narrows the declared ones, `None` means all of them.

    A named tool is `ToolChoice(ToolMode.REQUIRED, names=("it",))`.
    """

    mode: ToolMode = ToolMode.AUTO
    names: tuple[str, ...] | None = None


class PlainText(msgspec.Struct, frozen=True, tag="text"):
    """No constraint on the answer."""


class AnyJson(msgspec.Struct, frozen=True, tag="json"):
    """The answer is a JSON object of any shape."""


class JsonSchema(msgspec.Struct, frozen=True, tag="schema"):
    """The answer is valid under `schema`. Not `strict`: the schema is a hint that need not be enforced."""

    schema: Schema
    name: str = "answer"
    strict: bool = True


OutputFormat = PlainText | AnyJson | JsonSchema


class LoadOptions(msgspec.Struct, frozen=True):
    """How a model is loaded; a change of one of these means that it is loaded anew.

    `window` is the context window in tokens, `batch` in tokens, `gpu_layers` negative for "all that fit".
    """

    window: int | None = None
    batch: int | None = None
    threads: int | None = None
    gpu_layers: int | None = None
    main_gpu: int | None = None
    use_mmap: bool | None = None

    def over(self, defaults: LoadOptions) -> LoadOptions:
        """Return these options, with `defaults` where nothing was chosen."""
        chosen = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(defaults, **chosen)


class Residence(msgspec.Struct, frozen=True):
    """Which model is meant, how it is loaded, and how long it stays afterwards.

    `model` is the name as the client wrote it, `None` for the one used last. `keep_alive` is in
    seconds, `inf` for ever, 0 for "until the answer ends", `None` for the server's setting.
    """

    model: str | None = None
    load: LoadOptions = LoadOptions()
    keep_alive: float | None = None


class Overflow(Enum):
    """What happens to a prompt that does not fit the window."""

    ERROR = "error"
    TRUNCATE = "truncate"
    COMPACT = "compact"


class Compacting(msgspec.Struct, frozen=True):
    """A wish for compaction: when the prompt has more than `threshold` tokens, or at once and `instead` of an answer."""

    threshold: int | None = None
    instead: bool = False


class Conversation(msgspec.Struct, frozen=True, tag="conversation"):
    """A prompt that the model's chat template renders."""

    items: tuple[Item, ...]


class RawPrompt(msgspec.Struct, frozen=True, tag="raw"):
    """A prompt that goes to the model as it is: text, or token ids. `suffix` asks to fill the middle."""

    content: str | tuple[int, ...]
    suffix: str | None = None


class Generation(msgspec.Struct, frozen=True):
    """Make an answer.

    `think` is None for the model's habit, a bool, or an effort; `must_think` refuses a model that cannot,
    where otherwise the wish is dropped. `choices` is how many answers are
    made of the same prompt. `logprobs` is None for none, else how many alternatives each token shows.
    `template_arguments` go to the chat template by name.
    """

    residence: Residence
    prompt: Conversation | RawPrompt
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel_calls: bool = True
    sampling: Sampling = Sampling()
    format: OutputFormat = PlainText()
    think: bool | Effort | None = None
    must_think: bool = False
    choices: int = 1
    logprobs: int | None = None
    overflow: Overflow = Overflow.ERROR
    compacting: Compacting | None = None
    template_arguments: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Load(msgspec.Struct, frozen=True):
    """Load a model and say when it is ready. `must_think` refuses a model that cannot."""

    residence: Residence
    must_think: bool = False


class Unload(msgspec.Struct, frozen=True):
    """Let a model go as soon as nobody uses it."""

    residence: Residence


class Embedding(msgspec.Struct, frozen=True):
    """Turn each input (text, or token ids) into a vector.

    `dimensions` cuts each vector to its first numbers. `normalise` scales it to length 1.
    `overflow` says whether an input longer than the window is cut at its end.
    """

    residence: Residence
    inputs: tuple[str | tuple[int, ...], ...]
    dimensions: int | None = None
    normalise: bool = True
    overflow: Overflow = Overflow.ERROR


class Rerank(msgspec.Struct, frozen=True):
    """Say of each of `documents` how well it answers `query`."""

    residence: Residence
    query: str
    documents: tuple[str, ...]


class Reference(msgspec.Struct, frozen=True):
    """An item of a stored response, by its place in the output. `field` is where the client named it, for faults."""

    response: str
    output: int
    field: str


class Respond(msgspec.Struct, frozen=True):
    """Make an answer that can be taken up again later.

    `generation` holds what the client sent now; the conversation of the response `previous` goes before it.
    `instructions` are for this answer only. `keep` stores it; `background` goes on without the client.
    `found` are tools that a search in the conversation brought up, for this answer and for those that go on from it.
    `references` stand, by their position, for items of stored responses. `prime` takes everything in without answering.
    `echo` is what the dialect wants to see again with the stored response: it is not looked into.
    """

    generation: Generation
    previous: str | None = None
    instructions: str | None = None
    keep: bool = False
    background: bool = False
    prime: bool = False
    found: tuple[ToolSpec, ...] = ()
    references: Mapping[int, Reference] = msgspec.field(default_factory=dict)
    echo: bytes = b""


class CountTokens(msgspec.Struct, frozen=True):
    """Count the tokens of the prompt that a response would have."""

    respond: Respond


class FetchResponse(msgspec.Struct, frozen=True):
    """Show a stored response."""

    response: str


class ForgetResponse(msgspec.Struct, frozen=True):
    """Delete a stored response."""

    response: str


class CancelResponse(msgspec.Struct, frozen=True):
    """Stop a response that goes on in the background."""

    response: str


class Ping(msgspec.Struct, frozen=True):
    """Say that the server is there."""


class ListModels(msgspec.Struct, frozen=True):
    """List the models of the store."""


class ListRunning(msgspec.Struct, frozen=True):
    """List the models that are loaded."""


class ShowModel(msgspec.Struct, frozen=True):
    """Show one model; `verbose` asks for long arrays too."""

    model: str
    verbose: bool = False


class Pull(msgspec.Struct, frozen=True):
    """Get a model onto this machine.

    `name` is what `core.source` reads: a name in a registry, a repository, a URL. `insecure` allows a
    connection that nobody vouches for.
    """

    name: str
    insecure: bool = False


class Push(msgspec.Struct, frozen=True):
    """Bring a model to the registry that its name tells of."""

    name: str
    insecure: bool = False


class CreateModel(msgspec.Struct, frozen=True):
    """Make the model `name`, which is replaced if it is taken."""

    name: str
    recipe: Recipe


class CopyModel(msgspec.Struct, frozen=True):
    """Give the model `source` the further name `target`, which is replaced if it is taken."""

    source: str
    target: str


class DeleteModel(msgspec.Struct, frozen=True):
    """Remove a name, and the contents that no other name needs."""

    model: str


class CheckBlob(msgspec.Struct, frozen=True):
    """Say whether a content is here. The answer is a bool."""

    digest: Digest


class StoreBlob(msgspec.Struct, frozen=True):
    """Keep the content that comes with the request, of `size` bytes (0: unknown). The answer is a bool: whether it is new here."""

    digest: Digest
    size: int = 0


Answering = Generation | Respond | Load | Unload
Moving = Pull | Push | CreateModel
Receiving = StoreBlob
Asking = (
    Ping
    | Embedding
    | Rerank
    | ListModels
    | ListRunning
    | ShowModel
    | CountTokens
    | FetchResponse
    | ForgetResponse
    | CancelResponse
    | CopyModel
    | DeleteModel
    | CheckBlob
)
Request = Answering | Moving | Receiving | Asking
