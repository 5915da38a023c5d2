"""`diglot show`: what is known of a model, told by the server, or by the store where none runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from diglot.cli.failure import NoServer
from diglot.cli.flags import REACH, STORE, takes_settings
from diglot.cli.server import Server, url_option
from diglot.cli.wire import ShowReply
from diglot.cli.words import plain
from diglot.settings import Settings

_FEW = 2
"""Lines that are shown of a licence or a system prompt."""


@click.command()
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Everything there is, as JSON.")
@url_option
@takes_settings(*REACH, *STORE)
def command(settings: Settings, *, model: str, as_json: bool, url: str | None) -> None:
    """Show what is known of MODEL: size, window, what it can do, its parameters. Works without a server too."""
    with Server.at(settings, url) as server:
        try:
            answer = server.post_raw("/api/show", {"model": model})
        except NoServer:
            if url is not None:
                raise
            from diglot.cli import unserved  # noqa: PLC0415  only where no server answers

            answer = unserved.show(settings, model)
    if as_json:
        click.echo(msgspec.json.format(answer, indent=2))
    else:
        click.echo(in_words(msgspec.json.decode(answer, type=ShowReply)))


def in_words(reply: ShowReply) -> str:
    """Return what is known of a model, in indented sections."""
    sections = (
        ("Model", _facts(reply)),
        ("Capabilities", [(name, "") for name in reply.capabilities or ()]),
        ("Parameters", [_halved(line) for line in reply.parameters.splitlines() if line.strip()]),
        ("System", [(line, "") for line in _first_lines(reply.system)]),
        ("Licence", [(line, "") for line in _first_lines(reply.license)]),
    )
    return "\n\n".join(
        "\n".join((f"  {title}", *(f"    {plain(name):<20}{plain(value)}".rstrip() for name, value in rows)))
        for title, rows in sections
        if rows
    )


def _facts(reply: ShowReply) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in _known(reply) if value]


def _known(reply: ShowReply) -> Iterator[tuple[str, Any]]:
    info, details = reply.model_info, reply.details
    kind = info.get("general.architecture", details.family)
    yield "architecture", kind
    yield "parameters", details.parameter_size
    yield "context length", info.get(f"{kind}.context_length", details.context_length)
    yield "embedding length", info.get(f"{kind}.embedding_length", details.embedding_length)
    yield "quantization", details.quantization_level


def _halved(line: str) -> tuple[str, str]:
    name, _, value = line.strip().partition(" ")
    return name, value.strip()


def _first_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()][:_FEW]
