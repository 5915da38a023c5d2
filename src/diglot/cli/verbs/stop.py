"""`diglot stop`: unload models. An answer under way is made to its end first."""

from __future__ import annotations

from typing import Any

import click

from diglot.cli.flags import REACH, takes_settings
from diglot.cli.server import Server, url_option
from diglot.settings import Settings


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="MODEL...")
@url_option
@takes_settings(*REACH)
def command(settings: Settings, *, names: tuple[str, ...], url: str | None) -> None:
    """Unload models and give their memory back. Answers under way are finished first."""
    with Server.at(settings, url) as server:
        for model in names:
            unload(server, model)


def unload(server: Server, model: str) -> None:
    """Ask the server to let a model go. Raises NoServer, Refused."""
    server.post("/api/generate", {"model": model, "keep_alive": 0, "stream": False}, dict[str, Any])
