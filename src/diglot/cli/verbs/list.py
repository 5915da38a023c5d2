"""`diglot list`: the models that are downloaded, told by the server, or by the store where none runs."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from diglot.cli.failure import NoServer
from diglot.cli.flags import REACH, STORE, takes_settings
from diglot.cli.server import Server, url_option
from diglot.cli.wire import ListedReply, TagsReply
from diglot.cli.words import SHORT_ID, ago, plain, size_in_words, table
from diglot.settings import Settings


@click.command()
@click.argument("prefix", default="")
@url_option
@takes_settings(*REACH, *STORE)
def command(settings: Settings, *, prefix: str, url: str | None) -> None:
    """List the models that are downloaded, the newest first.

    With PREFIX only those whose name begins with it. Works without a server too.
    """
    now = datetime.now(UTC)
    rows = [
        (plain(each.name), each.digest[:SHORT_ID], size_in_words(each.size), ago(each.modified_at, now=now))
        for each in _models(settings, url)
        if each.name.lower().startswith(prefix.lower())
    ]
    click.echo(table(("NAME", "ID", "SIZE", "MODIFIED"), rows))


def _models(settings: Settings, url: str | None) -> list[ListedReply]:
    with Server.at(settings, url) as server:
        try:
            return server.get("/api/tags", TagsReply).models
        except NoServer:
            if url is not None:
                raise
    return _on_disk(settings)


def _on_disk(settings: Settings) -> list[ListedReply]:
    from diglot.store.local import LocalStore  # noqa: PLC0415  only where no server answers

    return [
        ListedReply(
            name=model.name,
            digest=model.digest,
            size=model.size,
            modified_at=datetime.fromtimestamp(model.modified_at / 1e9, UTC),
        )
        for model in LocalStore(settings.model_folder).list()
    ]
