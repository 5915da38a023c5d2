"""`diglot cp`: give a model a further name, by the server where one runs."""

from __future__ import annotations

import click

from diglot.cli.failure import NoServer
from diglot.cli.flags import REACH, STORE, takes_settings
from diglot.cli.server import Server, url_option
from diglot.core.model import ModelRef
from diglot.settings import Settings


@click.command()
@click.argument("source", metavar="MODEL")
@click.argument("target", metavar="NAME")
@url_option
@takes_settings(*REACH, *STORE)
def command(settings: Settings, *, source: str, target: str, url: str | None) -> None:
    """Give a model a further name. It takes up no more room."""
    with Server.at(settings, url) as server:
        try:
            server.tell("POST", "/api/copy", {"source": source, "destination": target})
        except NoServer:
            if url is not None:
                raise
            _copy(settings, source, target)
    click.echo(f"{source} is also {target}")


def _copy(settings: Settings, source: str, target: str) -> None:
    from diglot.store.local import LocalStore  # noqa: PLC0415  only where no server answers

    LocalStore(settings.model_folder).copy(ModelRef.parse(source), ModelRef.parse(target))
