"""`POST /api/copy`, `DELETE /api/delete`, `HEAD` and `POST /api/blobs/:digest`: what is changed on disk.

Invariant: what succeeds is answered with a status and no body, as Ollama's clients expect.
"""

from __future__ import annotations

from typing import Final

import msgspec

from diglot.core.digest import Digest
from diglot.core.errors import AnyFault, InvalidField, WrongDigest
from diglot.core.model import InvalidName, ModelRef
from diglot.core.request import CheckBlob, CopyModel, DeleteModel, StoreBlob
from diglot.dialects.ollama.errors import Wording
from diglot.dialects.ollama.wire import read
from diglot.dialects.operation import Operation, Parsed, Rendered, Stamp, Wire

_MOST_DIGITS: Final = 18


class CopyBody(msgspec.Struct, frozen=True, kw_only=True):
    """A model, and the further name it is to have."""

    source: str = ""
    destination: str = ""


class DeleteBody(msgspec.Struct, frozen=True, kw_only=True):
    """What to remove. The CLI and the JS client write `name`, the Python client `model`."""

    model: str | None = None
    name: str | None = None


class BlobWording(Wording, frozen=True):
    """How the endpoints of contents speak."""

    def _sentence(self, fault: AnyFault) -> str:
        if isinstance(fault, WrongDigest):
            return f'digest mismatch, expected "{fault.expected}", got "{fault.found}"'
        return super()._sentence(fault)


_COPY: Final = msgspec.json.Decoder(CopyBody)
_DELETE: Final = msgspec.json.Decoder(DeleteBody)


def _parse_copy(wire: Wire) -> Parsed:
    body = read(_COPY, wire)
    for field in ("source", "destination"):
        name = getattr(body, field)
        _require_name(field, name, f'{field} "{name}" is invalid')
    return Parsed(CopyModel(source=body.source, target=body.destination))


def _parse_delete(wire: Wire) -> Parsed:
    body = read(_DELETE, wire)
    name = body.model or body.name or ""
    _require_name("name", name, f'name "{name}" is invalid')
    return Parsed(DeleteModel(name))


def _require_name(field: str, name: str, sentence: str) -> None:
    try:
        ModelRef.parse(name)
    except InvalidName as error:
        raise InvalidField(field, sentence) from error


def _parse_check(wire: Wire) -> Parsed:
    return Parsed(CheckBlob(_digest(wire)))


def _parse_store(wire: Wire) -> Parsed:
    declared = wire.headers.get("content-length", "")
    size = int(declared) if declared.isdecimal() and len(declared) <= _MOST_DIGITS else 0
    return Parsed(StoreBlob(_digest(wire), size=size))


def _digest(wire: Wire) -> Digest:
    try:
        return Digest.parse(wire.path["digest"])
    except ValueError as error:
        raise InvalidField("digest", "invalid digest format") from error


def _done(_view: None, _stamp: Stamp, _answer: None) -> Rendered:
    return Rendered(b"")


def _checked(_view: None, _stamp: Stamp, there: bool) -> Rendered:  # noqa: FBT001  the answer itself
    return Rendered(b"", 200 if there else 404)


def _stored(_view: None, _stamp: Stamp, new: bool) -> Rendered:  # noqa: FBT001  the answer itself
    return Rendered(b"", 201 if new else 200)


COPY: Final = Operation(
    method="POST",
    path="/api/copy",
    summary="Give a model a further name",
    parse=_parse_copy,
    whole=_done,
    body=CopyBody,
    error=Wording(not_found='model "{name}" not found').render,
)
DELETE: Final = Operation(
    method="DELETE",
    path="/api/delete",
    summary="Remove a model, with all files that no other model needs",
    parse=_parse_delete,
    whole=_done,
    body=DeleteBody,
)
CHECK_BLOB: Final = Operation(
    method="HEAD",
    path="/api/blobs/{digest}",
    summary="Say whether a content is here",
    parse=_parse_check,
    whole=_checked,
    error=BlobWording().render,
)
STORE_BLOB: Final = Operation(
    method="POST",
    path="/api/blobs/{digest}",
    summary="Keep a content, to make a model of it",
    parse=_parse_store,
    whole=_stored,
    upload=True,
    error=BlobWording().render,
)
