"""`diglot settings-page`: write docs/settings.md. Hidden, since only those who change settings need it.

Invariant: the page says nothing that does not stand in `diglot.settings`.
"""

from __future__ import annotations

import click

from diglot.cli.flags import Flag, flags, shown_default
from diglot.settings import PREFIX

_HEAD = """\
# Settings

Each setting can stand on the command line of `diglot serve`, else in the environment, else in `config.toml` in the
home folder (under its name, such as `{example}`), else it has its default. Sizes are in bytes, times in
seconds. Several values are given by repeating the flag, by commas in the environment, and by a list in the file.

This page is written by `diglot settings-page`.

| name | flag | environment | default | what it is |
|---|---|---|---|---|
"""


@click.command(hidden=True)
def command() -> None:
    """Write the page of all settings."""
    click.echo(page(), nl=False)


def page() -> str:
    """Return the page, in Markdown."""
    return _HEAD.format(example="keep_alive = 600") + "".join(map(_row, flags()))


def _row(flag: Flag) -> str:
    default = shown_default(flag, "`{}`")
    cells = (f"`{flag.name}`", f"`{flag.option}`", f"`{PREFIX}{flag.name.upper()}`", default, flag.told)
    return f"| {' | '.join(cells)} |\n"
