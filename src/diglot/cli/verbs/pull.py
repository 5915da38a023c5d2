"""`diglot pull`: get models onto this machine: from a registry, Hugging Face, a URL, or a GGUF file.

A running server is asked to do it, so that two never do the same; a file is always copied by this process.
Neighbours: `cli.moving` for everything that comes from elsewhere; `serve` asks for the starter models by itself.

Invariant: a pull that is ended in the middle leaves no half model, and a second one does the rest.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from diglot.cli.failure import Failure
from diglot.cli.flags import REACH, STORE, takes_settings
from diglot.cli.moving import move, show_step
from diglot.cli.progress import Progress
from diglot.cli.server import url_option
from diglot.core.model import InvalidName, ModelRef
from diglot.core.request import Pull
from diglot.core.source import STARTER, FromStarter, name_of_file, read_source
from diglot.settings import Settings

if TYPE_CHECKING:
    from diglot.store.local import LocalStore

FETCH = ("hub", "hub_token", "connections")


@click.command()
@click.argument("source")
@click.option("--name", metavar="NAME[:TAG]", help="The name that a file gets; made from the file's own by default.")
@click.option("--insecure", is_flag=True, help="Reach the registry by http.")
@url_option
@takes_settings(*REACH, *STORE, *FETCH)
def command(settings: Settings, *, source: str, name: str | None, insecure: bool, url: str | None) -> None:
    """Get models.

    SOURCE is a model of a registry such as llama3.2:1b, hf.co/OWNER/REPOSITORY[:QUANTISATION], the URL or the
    path of a GGUF file, such as ./model.gguf, or the word `starter`, for a small chat model and an embedding
    model to begin with.
    """
    if source != STARTER and Path(source).is_file():
        _pull_file(settings, Path(source), name)
        return
    if name is not None:
        raise click.UsageError("--name is for files; models from elsewhere have their names")
    if source.startswith((".", "/", "~")) or (source.endswith(".gguf") and "://" not in source):
        raise Failure(f"there is no file {source}")
    names = _names(source)
    move(settings, Pull(source, insecure=insecure), url=url)
    for each in names:
        click.echo(f"{each} is here")


def pull_starter(store: LocalStore) -> None:
    """Get the starter models that are not there yet, in this process. Raises what the store raises."""
    from diglot.store.starter import fetch_starter  # noqa: PLC0415

    with Progress() as bar:
        models = fetch_starter(store, show_step(bar))
    for model in models:
        click.echo(f"{model.name} is here")


def _names(source: str) -> list[str]:
    """Return what the models of a source are called. Raises InvalidName."""
    read = read_source(source)
    if isinstance(read, FromStarter):
        from diglot.store.starter import STARTERS  # noqa: PLC0415

        return [str(starter.ref) for starter in STARTERS]
    return [str(read.ref)]


def _pull_file(settings: Settings, path: Path, name: str | None) -> None:
    from diglot.store.local import LocalStore  # noqa: PLC0415  after the help is shown

    store = LocalStore(settings.model_folder)
    try:
        ref = ModelRef.parse(name) if name else name_of_file(path.name)
    except InvalidName as error:
        raise click.UsageError(f"{error}; give one with --name") from error
    with Progress() as bar:
        model = store.add_file(path, ref, progress=lambda done, total: bar.bytes(f"copying {path.name}", done, total))
    click.echo(f"{model.name} is here")
