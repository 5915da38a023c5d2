"""Bytes into the bodies of Ollama's protocol, and what is wrong with them into faults.

It knows the form of a request and not its meaning. Neighbours: each operation has its body struct and its
decoder; `options` knows the words for the types of options.

Invariant: whatever the bytes, the outcome is a body or a fault that names the field.
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

import msgspec

from diglot.core.errors import InvalidField, MalformedBody
from diglot.core.model import InvalidName, ModelRef
from diglot.dialects.numerals import with_whole_numbers
from diglot.dialects.ollama.options import type_word
from diglot.dialects.operation import Wire

THINK_VALUES: Final = '"high", "medium", "low", "max", true, or false'

_B = TypeVar("_B")
_WHERE = re.compile(r"(?P<what>.*?)(?: - at `(?:key` in `)?\$\.?(?P<field>.*)`)?", re.DOTALL)
_GOT = re.compile(r"got `(\w+)`")


def read(decoder: msgspec.json.Decoder[_B], wire: Wire) -> _B:
    """Decode a body. Its declared content type is ignored, as Ollama ignores it."""
    if not wire.body or wire.body.isspace():
        raise MalformedBody("missing request body")
    try:
        return _decoded(decoder, wire.body)
    except msgspec.ValidationError as error:
        raise _misfit(str(error)) from error
    except msgspec.DecodeError as error:
        raise MalformedBody(f"the body is no valid JSON: {error}") from error
    except RecursionError as error:
        raise MalformedBody("the body is nested too deeply") from error


def _decoded(decoder: msgspec.json.Decoder[_B], body: bytes) -> _B:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError:
        whole = with_whole_numbers(body)
        if whole == body:
            raise
    return decoder.decode(whole)


def _misfit(text: str) -> InvalidField | MalformedBody:
    """Turn msgspec's sentence, which ends in the path of the value, into a fault on that field."""
    found = _WHERE.fullmatch(text)
    field = found["field"] if found else ""
    what = (found["what"] if found else text).replace("`", "")
    got = _GOT.search(text)
    if not field:
        return MalformedBody(f"the body must be a JSON object, not {got[1] if got else 'this'}")
    return InvalidField(field, _reason(field, what, got[1] if got else "this"))


def _reason(field: str, what: str, got: str) -> str:
    """Return Ollama's own sentence where it has one: clients show and sometimes recognise them."""
    root, _, leaf = field.partition(".")
    if root == "options" and leaf:
        name, element, _ = leaf.partition("[")
        return f'option "{name}" must be of {"an array of strings" if element else f"type {type_word(name)}"}'
    match root.partition("[")[0]:
        case "keep_alive":
            return f"Unsupported type: '{got}'"
        case "think":
            return f"think must be a boolean or string ({THINK_VALUES})"
        case "input":
            return "invalid input type"
        case _:
            return what[:1].lower() + what[1:]


def named(model: str | None) -> str | None:
    """Return the name as it was written, None where there is none. A name outside the grammar is a fault."""
    if not model:
        return None
    try:
        ModelRef.parse(model)
    except InvalidName as error:
        raise InvalidField("model", f"invalid model name: {error.reason}") from error
    return model
