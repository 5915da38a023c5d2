"""How a command fails: with one sentence. And `--debug`, which shows more.

Neighbours: every command raises these, `main` prints them. A usage error is click's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Failure(click.ClickException):
    """The command did not work; the message is for a person. Exit code 1."""


class NoServer(Failure):
    """Nobody answers at `url`."""

    def __init__(self, url: str, *, reason: str = "") -> None:
        why = f" ({reason})" if reason else ""
        super().__init__(f"no server answers at {url}{why}. Start one with: diglot serve")
        self.url = url


class Refused(Failure):
    """The server answered with an error, which is told in its own words."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class Asked:
    """What was asked for beside the command itself."""

    def __init__(self) -> None:
        self.debug = False


def debug_option(function: F) -> F:
    """Add `--debug`, before or after the name of the command."""
    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_set_debug,
        help="Show a traceback when something goes wrong.",
    )(function)


def _set_debug(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001  click's signature
    asked = context.find_object(Asked)
    if value and asked is not None:
        asked.debug = True
