"""`diglot list`: the models that are downloaded, told by the server, or by the store where none runs."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import msgspec

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
    from diglot.cli import unserved  # noqa: PLC0415  only where no server answers

    return msgspec.json.decode(unserved.tags(settings), type=TagsReply).models
