"""`GET /`, `GET /api/version` and `GET /api/status`: that the server is there, and what it is like.

Many health checks compare the text of `/` word for word. The version is a level of Ollama's protocol, not
our own: clients switch features on by it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from diglot.core.request import Ping
from diglot.dialects.operation import TEXT, Operation, Parsed, Rendered, Stamp, Wire

LEVEL: Final = "0.34.0"
"""The release of Ollama whose protocol this package speaks, Responses compaction included.

Clients ask for at least 0.6.4 (VS Code) and 0.13.4 (Codex, for `/v1/responses`).
"""


class VersionReply(msgspec.Struct, frozen=True):
    """The level of the protocol."""

    version: str


class CloudReply(msgspec.Struct, frozen=True):
    """Whether models in Ollama's cloud can be reached, and what decided it."""

    disabled: bool
    source: str


class StatusReply(msgspec.Struct, frozen=True):
    """What this server is connected to."""

    cloud: CloudReply


def _parse(_wire: Wire) -> Parsed:
    return Parsed(Ping())


def _running(_view: None, _stamp: Stamp, _answer: None) -> Rendered:
    return Rendered(b"Ollama is running", media_type=TEXT)


def _version(_view: None, _stamp: Stamp, _answer: None) -> Rendered:
    return Rendered(msgspec.json.encode(VersionReply(LEVEL)))


def _status(_view: None, _stamp: Stamp, _answer: None) -> Rendered:
    return Rendered(msgspec.json.encode(StatusReply(CloudReply(disabled=True, source="config"))))


RUNNING: Final = Operation(
    method="GET",
    path="/",
    summary="Say that the server is there",
    parse=_parse,
    whole=_running,
)
VERSION: Final = Operation(
    method="GET",
    path="/api/version",
    summary="Tell the level of Ollama's protocol",
    parse=_parse,
    whole=_version,
    reply=VersionReply,
)
STATUS: Final = Operation(
    method="GET",
    path="/api/status",
    summary="Tell that there is no cloud behind this server",
    parse=_parse,
    whole=_status,
    reply=StatusReply,
)
