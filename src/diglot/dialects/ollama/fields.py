"""Fields that several operations share: what they may hold, and what they mean.

Neighbours: `wire` has already seen to the types, each operation puts the pieces together.

Invariant: a value that cannot be honoured is a fault that names the field.
"""

from __future__ import annotations

from typing import Any, Final

from diglot.core.durations import InvalidDuration, seconds_of
from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.request import AnyJson, Effort, JsonSchema, OutputFormat, Overflow, PlainText, Residence
from diglot.core.schema import check_schema
from diglot.dialects.ollama.options import OptionsBody, load_options_of
from diglot.dialects.ollama.wire import THINK_VALUES, named

MOST_ALTERNATIVES: Final = 20


def residence_of(model: str | None, options: OptionsBody | None, keep_alive: float | str | None) -> Residence:
    """Return which model is meant, how it is loaded and how long it stays."""
    return Residence(model=named(model), load=load_options_of(options), keep_alive=keep_alive_of(keep_alive))


def keep_alive_of(value: float | str | None) -> float | None:
    """Return seconds: a number counts them, a text is a duration in Go's notation, negative means for ever."""
    try:
        return None if value is None else seconds_of(value)
    except InvalidDuration as error:
        raise InvalidField("keep_alive", f'time: {error} "{value}"') from error


def format_of(value: Any) -> OutputFormat:
    """Return the constraint: none for null and the empty text, `json`, or a JSON schema."""
    match value:
        case None | "":
            return PlainText()
        case "json":
            return AnyJson()
        case dict():
            check_schema(value, "format")
            return JsonSchema(value)
        case _:
            shown = value if isinstance(value, str) else type(value).__name__
            raise InvalidField("format", f'invalid format: "{shown}"; expected "json" or a valid JSON Schema object')


def think_of(value: bool | str | None) -> bool | Effort | None:  # noqa: FBT001  a value of the wire, not a flag
    """Return whether, or how much, the model is to think."""
    match value:
        case None | True | False | "low" | "medium" | "high" | "max":
            return value
        case _:
            raise InvalidField("think", f'invalid think value: "{value}" (must be {THINK_VALUES})')


def logprobs_of(wanted: bool | None, top: int | None) -> int | None:  # noqa: FBT001  as above
    """Return how many alternatives each token shows, None for no log-probabilities."""
    if top is not None and not 0 <= top <= MOST_ALTERNATIVES:
        raise InvalidField("top_logprobs", f"top_logprobs must be between 0 and {MOST_ALTERNATIVES}")
    return (top or 0) if wanted else None


def overflow_of(truncate: bool | None) -> Overflow:  # noqa: FBT001  as above
    """Return what happens to a conversation that does not fit: it is cut only where the client says so.

    Ollama cuts by default and says nothing, which is the one default we do not share (docs/compat.md).
    """
    return Overflow.TRUNCATE if truncate else Overflow.ERROR


def refuse(field: str, value: Any, reason: str) -> None:
    """Refuse a field that is given and not empty."""
    if value:
        raise UnsupportedField(field, reason)
