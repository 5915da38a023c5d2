"""`diglot ps`: the models in memory, where they are computed, and for how long they stay."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from diglot.cli.flags import REACH, takes_settings
from diglot.cli.server import Server, url_option
from diglot.cli.wire import LoadedReply, PsReply
from diglot.cli.words import SHORT_ID, plain, size_in_words, table, until
from diglot.settings import Settings


@click.command()
@click.argument("prefix", default="")
@url_option
@takes_settings(*REACH)
def command(settings: Settings, *, prefix: str, url: str | None) -> None:
    """List the models that are loaded, with their memory, window and the time they stay.

    With PREFIX only those whose name begins with it.
    """
    with Server.at(settings, url) as server:
        models = server.get("/api/ps", PsReply).models
    now = datetime.now(UTC)
    rows = [_row(each, now) for each in models if each.name.lower().startswith(prefix.lower())]
    click.echo(table(("NAME", "ID", "SIZE", "PROCESSOR", "CONTEXT", "UNTIL"), rows))


def _row(each: LoadedReply, now: datetime) -> tuple[str, ...]:
    stays = until(each.expires_at, now=now) if each.loaded >= 1 else f"loading, {each.loaded:.0%}"
    window = str(each.context_length) if each.context_length else "-"
    return plain(each.name), each.digest[:SHORT_ID], size_in_words(each.size), processor(each), window, stays


def processor(each: LoadedReply) -> str:
    """Return how much of a model is computed where."""
    if not each.size_vram:
        return "100% CPU"
    share = min(each.size_vram / each.size, 1.0) if each.size else 1.0
    return "100% GPU" if share == 1 else f"{1 - share:.0%} CPU, {share:.0%} GPU"
