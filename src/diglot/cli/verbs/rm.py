"""`diglot rm`: remove models, by the server where one runs, so that none is taken from under an answer."""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus

import click

from diglot.cli.failure import Failure, NoServer, Refused
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
    missing = []
    with Server.at(settings, url) as server:
        for model in names:
            if _remove(settings, server, model, given=url is not None):
                click.echo(f"{model} is removed")
            else:
                missing.append(model)
    if missing:
        raise Failure(f"there is no model {' or '.join(missing)} here; diglot list shows those there are")


def _remove(settings: Settings, server: Server, model: str, *, given: bool) -> bool:
    """Remove a model; returns whether there was one. `given`: only that server is meant. Raises Failure."""
    try:
        with suppress(Refused):  # It does not know the model: then nothing is loaded.
            unload(server, model)
        server.tell("DELETE", "/api/delete", {"model": model})
    except NoServer:
        if given:
            raise
        return _remove_here(settings, model)
    except Refused as refused:
        if refused.status in {HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST}:
            return False
        raise
    return True


def _remove_here(settings: Settings, model: str) -> bool:
    from diglot.store.local import LocalStore  # noqa: PLC0415  only where no server answers

    try:
        LocalStore(settings.model_folder).remove(ModelRef.parse(model))
    except (ModelNotFound, InvalidName):
        return False
    return True
