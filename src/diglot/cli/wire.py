"""What the server answers, as far as a terminal shows it.

Read with a tolerant eye: whatever is missing or unknown does not matter, so that any server of Ollama's
protocol can be asked. The dialect that writes these answers has its own structs; this is the client's side.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class DetailsReply(msgspec.Struct, frozen=True, kw_only=True):
    """A model in words."""

    family: str = ""
    parameter_size: str = ""
    quantization_level: str = ""
    context_length: int = 0
    embedding_length: int = 0


class ListedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A downloaded model. `size` is in bytes."""

    name: str
    digest: str = ""
    size: int = 0
    modified_at: datetime | None = None
    capabilities: tuple[str, ...] | None = ()


class TagsReply(msgspec.Struct, frozen=True):
    """The downloaded models, the newest first."""

    models: list[ListedReply] = []


class LoadedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A model in memory. Sizes are in bytes; `loaded` is the share of a load that is done, 1 when it is ready."""

    name: str
    digest: str = ""
    size: int = 0
    size_vram: int = 0
    expires_at: datetime | None = None
    context_length: int = 0
    loaded: float = 1.0


class PsReply(msgspec.Struct, frozen=True):
    """The models in memory or on their way there."""

    models: list[LoadedReply] = []


class ShowReply(msgspec.Struct, frozen=True, kw_only=True):
    """All there is to know of a model."""

    details: DetailsReply = DetailsReply()
    model_info: dict[str, Any] = {}
    capabilities: list[str] | None = None
    parameters: str = ""
    system: str = ""
    license: str = ""


class MessageReply(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer."""

    content: str = ""
    thinking: str = ""


class ChatReply(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a streamed answer. The last one has the counts; durations are in nanoseconds."""

    message: MessageReply = MessageReply()
    error: str = ""
    done: bool = False
    done_reason: str = ""
    total_duration: int = 0
    load_duration: int = 0
    prompt_eval_count: int = 0
    prompt_eval_duration: int = 0
    eval_count: int = 0
    eval_duration: int = 0


class VersionReply(msgspec.Struct, frozen=True):
    """Which version runs."""

    version: str = ""


class ErrorReply(msgspec.Struct, frozen=True):
    """What went wrong, in a sentence."""

    error: str = ""
