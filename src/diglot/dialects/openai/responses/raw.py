"""Raw: values that stand in lists of many kinds, read one by one by what they say they are.

The kinds grow with every month, so a union of structs would refuse what it should keep. A value is read twice: once
for its kind, once as that kind. Faults name the place in the whole body.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from diglot.core.errors import InvalidField, MalformedBody, UnsupportedField
from diglot.dialects.openai.body import decode

Body = TypeVar("Body")
NULL: Final = msgspec.Raw(b"null")


def absent() -> msgspec.Raw:
    """Return what stands for a value that is not there."""
    return NULL


def is_null(raw: msgspec.Raw) -> bool:
    """Return whether the value is null or not there."""
    return bytes(raw) == bytes(NULL)


class _Kind(msgspec.Struct):
    type: str | None = None


_KIND = msgspec.json.Decoder(_Kind)


def kind_of(raw: msgspec.Raw, path: str) -> str | None:
    """Return the `type` of a value, None where it has none. Raises InvalidField where it is no object."""
    return read(raw, _KIND, path).type


def read(raw: msgspec.Raw, decoder: msgspec.json.Decoder[Body], path: str) -> Body:
    """Read a value that stands at `path`. Raises InvalidField and UnsupportedField."""
    try:
        return decode(bytes(raw), decoder)
    except InvalidField as fault:
        raise InvalidField(f"{path}.{fault.field}", fault.reason) from None
    except UnsupportedField as fault:
        raise UnsupportedField(f"{path}.{fault.field}", fault.reason) from None
    except MalformedBody:
        raise InvalidField(path, "must be a JSON object") from None
