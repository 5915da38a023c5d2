"""`diglot serve`: take the port, get the starter models if there is none, and serve.

Neighbours: `diglot.app` serves; `pull` gets the models; `port` says who else answers.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack
from typing import Final

import click
import msgspec

from diglot import __version__
from diglot.cli.failure import Failure
from diglot.cli.flags import takes_settings
from diglot.cli.port import Answers, listening, who_answers
from diglot.cli.server import base_url
from diglot.cli.verbs.pull import pull_starter
from diglot.cli.words import plain
from diglot.core.errors import Fault
from diglot.core.model import Model
from diglot.core.ports import ModelStore
from diglot.core.source import STARTER
from diglot.obs.log import set_up_log
from diglot.settings import Settings

log = logging.getLogger(__name__)

_FEW: Final = 5
_SOON: Final = 0.5
"""Seconds that serving waits for the banner."""
_UNGUARDED: Final = (
    "whoever reaches {host} could use the models. Set a key (DIGLOT_KEY, or `key` in config.toml), which every request "
    "must then bring, or say that none is wanted: diglot serve --keyless"
)


@click.command()
@click.option("--no-starter", is_flag=True, help="Do not fetch the starter models when there is no model at all.")
@takes_settings()
def command(settings: Settings, *, no_starter: bool) -> None:
    """Start the server and serve until Ctrl-C.

    Each option can also stand in the environment (DIGLOT_PORT and so on) or in config.toml in the home folder.
    When there is no model at all, the starter models are fetched first.
    """
    if settings.unguarded:
        raise Failure(_UNGUARDED.format(host=settings.host))
    with ExitStack() as stack:
        try:
            sockets = stack.enter_context(listening(settings.host, settings.port))
        except OSError as error:
            raise Failure(_taken(settings, error.strerror or str(error))) from error
        code = _serve(
            msgspec.structs.replace(settings, port=sockets[0].getsockname()[1]), sockets, starter=not no_starter
        )
    sys.exit(code)


def _serve(settings: Settings, sockets: list[socket.socket], *, starter: bool) -> int:
    secrets = (settings.key, settings.remote_key, settings.hub_token)
    set_up_log(settings.log, secrets=secrets, as_json=settings.log_format == "json")
    if starter:
        _begin(settings)
    from diglot import app  # noqa: PLC0415  the server itself, a third of a second
    from diglot.engines.scripted.script import InvalidScript  # noqa: PLC0415  comes with it
    from diglot.store.elsewhere import stores_elsewhere  # noqa: PLC0415  as above
    from diglot.store.local import LocalStore  # noqa: PLC0415  as above

    try:
        _, others = app.engines_of(settings, app.RandomIds())
    except InvalidScript as error:
        raise click.UsageError(str(error)) from error
    near = () if settings.remotes else others  # A banner waits for nobody.
    _greet(settings, (LocalStore(settings.model_folder), *stores_elsewhere(settings), *near))
    try:
        return app.serve(settings, sockets)
    except KeyboardInterrupt:  # That is how it is told to stop, and it has stopped in order.
        return 0


def _greet(settings: Settings, stores: Sequence[ModelStore]) -> None:
    """Show the banner. To look at a thousand models for the first time takes a while: then it comes later."""
    told: Future[str] = Future()

    def look() -> None:
        try:
            models = {model.ref: model for store in reversed(stores) for model in reversed(store.list())}
            told.set_result(banner(settings, tuple(reversed(models.values()))))
        except (OSError, Fault) as error:
            told.set_exception(error)

    threading.Thread(target=look, name="banner", daemon=True).start()
    wait([told], timeout=_SOON)
    if told.done():
        click.echo(told.result(), err=True)
    else:
        told.add_done_callback(_show)


def _show(told: Future[str]) -> None:
    error = told.exception()
    if error is None:
        click.echo(told.result(), err=True)
    else:
        log.warning("not all models can be looked at: %s", error)


def _taken(settings: Settings, reason: str) -> str:
    """Return why a port cannot be had, and what can be done."""
    where = f"{settings.host}:{settings.port}"
    told = {
        Answers.DIGLOT: f"Diglot already runs at {base_url(settings)}",
        Answers.OLLAMA: f"Ollama answers at {base_url(settings)}",
        Answers.OTHER: f"another program uses {where}",
        Answers.NOBODY: f"{where} cannot be listened on: {reason}",
    }[who_answers(settings)]
    return f"{told}. Take another port with: diglot serve --port N"


def _begin(settings: Settings) -> None:
    """Fetch the starter models where there is nothing else to answer with. That they cannot be had is no failure."""
    from diglot.store.elsewhere import stores_elsewhere  # noqa: PLC0415  after the help is shown
    from diglot.store.local import LocalStore  # noqa: PLC0415

    store = LocalStore(settings.model_folder)
    if settings.engine != "llamacpp" or settings.remotes or not store.is_empty:
        return
    if any(other.list() for other in stores_elsewhere(settings)):
        return
    click.echo("There is no model yet: fetching the starter models.", err=True)
    try:
        pull_starter(store)
    except Fault as fault:
        click.echo(f"They cannot be fetched now: {fault.message}. To try again: diglot pull {STARTER}", err=True)


def banner(settings: Settings, models: Sequence[Model]) -> str:
    """Return what a person wants to know once the server runs."""
    url = base_url(settings)
    names = [model.name for model in models]
    chats = [model.name for model in models if model.capabilities.completion]
    named = ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else "")
    return "\n".join(
        (
            f"Diglot {__version__} serves at {url}",
            f"  models    {named or 'none yet'}",
            f'  OpenAI    base_url="{url}/v1", api_key="{"the key" if settings.key else "any"}"',
            f"  Ollama    OLLAMA_HOST={url}",
            *(f"  remote    {plain(remote.rpartition('@')[2])}" for remote in settings.remotes),
            "  chat      diglot run " + (chats[0] if chats else "MODEL"),
        )
    )
