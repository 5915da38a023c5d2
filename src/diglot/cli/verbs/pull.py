"""`diglot pull`: get models onto this machine: the starter models, or a GGUF file.

Neighbours: `store.starter` and `store.local` do the work; `serve` asks for the starter models by itself.

Invariant: a pull that is ended in the middle leaves no half model, and a second one does the rest.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from diglot.cli.failure import Failure
from diglot.cli.flags import STORE, takes_settings
from diglot.cli.progress import Progress
from diglot.core.model import InvalidName, ModelRef
from diglot.settings import Settings

if TYPE_CHECKING:
    from diglot.store.local import LocalStore

STARTER: Final = "starter"
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]+")


@click.command()
@click.argument("source")
@click.option("--name", metavar="NAME[:TAG]", help="The name that a file gets; made from the file's own by default.")
@takes_settings(*STORE)
def command(settings: Settings, *, source: str, name: str | None) -> None:
    """Get models.

    SOURCE is the word `starter`, for a small chat model and an embedding model to begin with, or the
    path of a GGUF file, such as ./model.gguf, which is copied.
    """
    from diglot.store.local import LocalStore  # noqa: PLC0415  after the help is shown

    store = LocalStore(settings.model_folder)
    if source == STARTER and name is None:
        pull_starter(store)
    elif source == STARTER:
        raise click.UsageError("the starter models have their names; --name is for files")
    elif Path(source).is_file():
        _pull_file(store, Path(source), name)
    else:
        raise _unknown(source)


def pull_starter(store: LocalStore) -> None:
    """Get the starter models that are not there yet. Raises what the store raises."""
    from diglot.store.starter import fetch_starter  # noqa: PLC0415

    with Progress() as bar:
        models = fetch_starter(store, bar.bytes)
    for model in models:
        click.echo(f"{model.name} is here")


def _pull_file(store: LocalStore, path: Path, name: str | None) -> None:
    try:
        ref = ModelRef.parse(name or _UNFIT.sub("-", path.stem).strip("-."))
    except InvalidName as error:
        raise click.UsageError(f"{error}; give one with --name") from error
    with Progress() as bar:
        model = store.add_file(path, ref, progress=lambda done, total: bar.bytes(f"copying {path.name}", done, total))
    click.echo(f"{model.name} is here")


def _unknown(source: str) -> click.ClickException:
    if source.endswith(".gguf") or source.startswith((".", "/", "~")):
        return Failure(f"there is no file {source}")
    return Failure(
        f"{source}: models are not fetched from registries yet. "
        f"What can be had is `diglot pull {STARTER}`, or a GGUF file: diglot pull ./file.gguf --name {source}"
    )
