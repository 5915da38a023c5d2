"""The script: what the scripted engine says, as a small value that reads well in JSON and in Python.

Values and their reading only; `engine` plays them. Invariant: a script says everything about a run, so that the
same requests in the same order give the same events.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

Misfortune = Literal["crash", "failed", "busy", "upstream"]
Pieces = str | tuple[str, ...]


class InvalidScript(ValueError):
    """The file is no script; the message says where it is wrong."""


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that the model makes. `arguments` is an object, or text to be sent as it is."""

    name: str
    arguments: dict[str, Any] | str = msgspec.field(default_factory=dict)


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer.

    `say` and `think` are text, cut into tokens, or a list, streamed piece by piece as it stands. `echo` says the
    last user message. `prefill` is how many steps of progress come first. `fault` strikes, `gate` holds and `pause`
    is silent for so many seconds before the event number `after` behind `Started`; a negative `after` means before
    `Started`. `hang` goes on without an end until it is closed. `when` picks this reply by a text in the last user message.
    """

    say: Pieces = ""
    think: Pieces = ""
    call: tuple[Call, ...] = ()
    echo: bool = False
    prefill: int = 0
    fault: Misfortune | None = None
    gate: str | None = None
    pause: float = 0.0
    after: int = 0
    hang: bool = False
    when: str | None = None


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All replies, and what kind of model it is. `window` is in tokens, `dimensions` of vectors, `steps` of a load."""

    replies: tuple[Reply, ...] = (Reply(echo=True),)
    window: int = 4096
    slots: int = 4
    dimensions: int = 32
    steps: int = 0
    load_fault: bool = False


def load_script(path: Path) -> Script:
    """Read a script from a JSON file. Raises InvalidScript and OSError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Script)
    except msgspec.MsgspecError as error:
        raise InvalidScript(f"{path}: {error}") from error
