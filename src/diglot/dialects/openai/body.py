"""Bodies: bytes into the wire structs of this dialect, and what is wrong with them into faults.

The wire structs say what is allowed; nothing here knows any of them. Fields that no struct names are
passed over: OpenAI adds new ones every few weeks, and clients send them to every server
(see the `*` lines in `compat`).
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from diglot.core.errors import Fault, InvalidField, MalformedBody, UnsupportedField
from diglot.dialects.numerals import with_whole_numbers

Body = TypeVar("Body")

_PLACE = re.compile(r"(?P<reason>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_LONGEST = 300


def decode(data: bytes, decoder: msgspec.json.Decoder[Body]) -> Body:
    """Return the body. Raises MalformedBody, InvalidField and UnsupportedField, nothing else."""
    try:
        return _decode(data, decoder)
    except msgspec.ValidationError as error:
        raise _misfit(str(error)) from None
    except msgspec.DecodeError as error:
        raise MalformedBody(f"the body is no valid JSON: {error}") from None
    except RecursionError:
        raise MalformedBody("the body is nested too deeply") from None


def _decode(data: bytes, decoder: msgspec.json.Decoder[Body]) -> Body:
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        whole = with_whole_numbers(data)
        if whole == data:
            raise
    return decoder.decode(whole)


def _misfit(text: str) -> Fault:
    """Return the fault for msgspec's account of a value that does not fit: a sentence, then ``- at `$.path` ``."""
    place = _PLACE.fullmatch(text)
    reason, path = (place["reason"], place["path"] or "") if place else (text, "")
    if missing := _MISSING.fullmatch(reason):
        return InvalidField(_joined(path, missing["name"]), "is required")
    if unknown := _UNKNOWN.fullmatch(reason):
        return UnsupportedField(_joined(path, unknown["name"]), "is not known here")
    if not path:
        return MalformedBody("the body must be a JSON object")
    return InvalidField(path, (reason[:1].lower() + reason[1:])[:_LONGEST])


def _joined(path: str, name: str) -> str:
    return f"{path}.{name[:_LONGEST]}" if path else name[:_LONGEST]
