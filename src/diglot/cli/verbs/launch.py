"""`diglot launch codex`: start a coding agent on a local model, with everything set for it.

Everything goes along as arguments and one environment variable, so no file of the user is read or changed. The
names that Codex needs are explained in docs/codex.md. Neighbour: the server's model catalogue, which Codex
reads by itself and which tells it the window that is really served.

Invariant: what the user writes after `--` comes last, and so wins.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from typing import Final

import click

from diglot.cli.failure import Failure
from diglot.cli.flags import REACH, takes_settings
from diglot.cli.names import is_same
from diglot.cli.server import Server, base_url, url_option
from diglot.cli.wire import TagsReply
from diglot.settings import Settings, environment

_VARIABLE: Final = "DIGLOT_AGENT_TOKEN"
_INSTALL: Final = "npm install --global @openai/codex"


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("agent", type=click.Choice(["codex"]))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS...]")
@click.option("--model", help="The model; the newest one that chats by default.")
@click.option("--show", is_flag=True, help="Print the command instead of running it.")
@url_option
@takes_settings(*REACH)
def command(
    settings: Settings, *, agent: str, arguments: tuple[str, ...], model: str | None, show: bool, url: str | None
) -> None:
    """Start Codex on a model of the running server, with compaction on the server's side.

    Arguments behind `--` go to Codex: `diglot launch codex -- exec "fix the tests"`.
    """
    with Server.at(settings, url) as server:
        listed = server.get("/api/tags", TagsReply).models
    able = [each.name for each in listed if "completion" in (each.capabilities or ())]
    if not able:
        raise Failure("the server has no model that chats: diglot pull starter")
    chosen = able[0] if model is None else _meant(model, able)
    line = [agent, *codex_arguments(url or base_url(settings), model=chosen), *arguments]
    token = settings.key or "local"
    if show:
        click.echo(shlex.join([f"{_VARIABLE}={token}", *line]))
        return
    program = shutil.which(agent)
    if program is None:
        raise Failure(f"{agent} is not on the PATH; get it with: {_INSTALL}")
    os.execve(program, line, {**environment(), _VARIABLE: token})  # noqa: S606  the user's own program, and no shell


def _meant(model: str, able: Sequence[str]) -> str:
    """Return the name under which the catalogue has a model. Codex finds its window by exactly that name."""
    for name in able:
        if name == model or is_same(name, model):
            return name
    raise Failure(f"the server has no model {model!r} that chats; it has {', '.join(able)}")


def codex_arguments(url: str, *, model: str) -> Sequence[str]:
    """Return the arguments that point Codex at a server.

    The provider is called `OpenAI` because Codex compacts on the server's side for that name alone, and has a
    token because without one it does not read the catalogue.
    """
    base = url.rstrip("/") + "/v1"
    values = {
        "model_provider": "diglot",
        "model_providers.diglot.name": "OpenAI",
        "model_providers.diglot.base_url": base,
        "model_providers.diglot.wire_api": "responses",
        "model_providers.diglot.env_key": _VARIABLE,
        "model_providers.diglot.model_catalog_url": f"{base}/models",
        "web_search": "disabled",
    }
    options = [part for name, value in values.items() for part in ("-c", f"{name}={_toml(value)}")]
    return [*options, "-m", model]


def _toml(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
