"""`diglot compaction show`: what a compaction item holds, for a person who wonders what a model will remember."""

from __future__ import annotations

from typing import Any, TextIO

import click
import msgspec

from diglot.cli.failure import Failure
from diglot.cli.flags import takes_settings
from diglot.cli.words import plain
from diglot.settings import Settings


@click.command("show")
@click.argument("file", type=click.File(encoding="utf-8"), metavar="FILE|-")
@takes_settings("home")
def show(settings: Settings, *, file: TextIO) -> None:
    """Print what compaction items hold.

    FILE may be an item, its `encrypted_content`, an answer or an input that holds items, or a session of Codex
    (one JSON value a line). Sealed items open with the key in the home folder.
    """
    from diglot.core.items import Compaction  # noqa: PLC0415
    from diglot.services.envelopes import Envelopes  # noqa: PLC0415
    from diglot.state.seal import FileSeal  # noqa: PLC0415

    payloads = payloads_in(file.read())
    if not payloads:
        raise Failure("there is no compaction item in it")
    envelopes = Envelopes(FileSeal(settings.state_folder / "seal.key"))
    for number, payload in enumerate(payloads, start=1):
        summary = envelopes.open(Compaction(payload))
        if len(payloads) > 1:
            click.echo(f"--- item {number} of {len(payloads)}")
        click.echo(plain(summary.text))
        for item in summary.retained:
            click.echo(f"--- kept word for word: {plain(msgspec.json.encode(item).decode())}")


def payloads_in(text: str) -> list[str]:
    """Return the payloads of all compaction items in a text, in order; the text itself where it is a payload."""
    text = text.strip()
    values = [value for line in (text, *text.splitlines()) if (value := _json(line)) is not None]
    if not values:
        return [text] if text else []
    found: list[str] = []
    _collect(values[0], found)
    for value in values[1:] if not found else ():
        _collect(value, found)
    return list(dict.fromkeys(found)) or ([text] if _is_payload(values[0]) else [])


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return None


def _is_payload(value: Any) -> bool:
    return isinstance(value, dict) and "summary" in value and "retained" in value


def _collect(value: Any, found: list[str]) -> None:
    match value:
        case {"type": "compaction" | "compaction_summary", "encrypted_content": str(payload)}:
            found.append(payload)
        case dict():
            for each in value.values():
                _collect(each, found)
        case list():
            for each in value:
                _collect(each, found)
        case _:
            pass


command = click.Group(
    "compaction",
    commands=[show],
    help="Look into compaction items.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
