"""`diglot push`: bring a model to the registry that its name tells of."""

from __future__ import annotations

import click

from diglot.cli.flags import REACH, STORE, takes_settings
from diglot.cli.moving import move
from diglot.cli.server import url_option
from diglot.core.request import Push
from diglot.settings import Settings


@click.command()
@click.argument("name", metavar="MODEL")
@click.option("--insecure", is_flag=True, help="Reach the registry by http.")
@url_option
@takes_settings(*REACH, *STORE)
def command(settings: Settings, *, name: str, insecure: bool, url: str | None) -> None:
    """Bring a model to its registry.

    The registry is told who asks by the key of this machine, in the file id_ed25519 of the state folder.
    """
    move(settings, Push(name, insecure=insecure), url=url)
    click.echo(f"{name} is there")
