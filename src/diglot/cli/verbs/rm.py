"""`diglot rm`: remove models from the store, after asking the server, if one runs, to let them go."""

from __future__ import annotations

from contextlib import suppress

import click

from diglot.cli.failure import Failure
from diglot.cli.flags import REACH, STORE, takes_settings
from diglot.cli.server import Server, url_option
from diglot.cli.verbs.stop import unload
from diglot.core.errors import ModelNotFound
from diglot.core.model import InvalidName, ModelRef
from diglot.settings import Settings


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="MODEL...")
@url_option
@takes_settings(*REACH, *STORE)
def command(settings: Settings, *, names: tuple[str, ...], url: str | None) -> None:
    """Remove models, with all files that no other model needs."""
    from diglot.store.local import LocalStore  # noqa: PLC0415  after the help is shown

    store = LocalStore(settings.model_folder)
    missing = []
    with Server.at(settings, url) as server:
        for model in names:
            with suppress(Failure):  # No server, or it does not know the model: then nothing is loaded.
                unload(server, model)
            try:
                store.remove(ModelRef.parse(model))
            except (ModelNotFound, InvalidName):
                missing.append(model)
            else:
                click.echo(f"{model} is removed")
    if missing:
        raise Failure(f"there is no model {' or '.join(missing)} here; diglot list shows those there are")
