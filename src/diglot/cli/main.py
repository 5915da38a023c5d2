"""The entry of `diglot`: finds the command, loads it, and turns whatever goes wrong into one sentence.

A command's module is imported when that command is called, so that `diglot --version` and `diglot --help`
load nothing else. Exit codes: 0 done, 1 it did not work, 2 it was called wrongly, 130 Ctrl-C.
Neighbours: `verbs`, one module a command.

Invariant: a traceback is seen only with `--debug`.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import click

from diglot import __version__
from diglot.cli.failure import Asked, debug_option
from diglot.core.errors import Fault

INTERRUPTED: Final = 130

VERBS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "serve": "Start the server.",
        "run": "Chat with a model, or ask it one thing.",
        "list": "List the models that are downloaded.",
        "show": "Show what is known of a model.",
        "ps": "List the models that are loaded.",
        "stop": "Unload models.",
        "pull": "Get models: from a registry, Hugging Face, a URL or a file.",
        "create": "Make a model of a Modelfile.",
        "push": "Bring a model to its registry.",
        "cp": "Give a model a further name.",
        "rm": "Remove models.",
        "launch": "Start a coding agent on a local model.",
        "compaction": "Look into compaction items.",
        "doctor": "Look at machine, engine, models and port, and say what is wrong.",
    }
)
HIDDEN: Final = ("settings-page",)


class Verbs(click.Group):
    """A group that knows its commands by name and one line each, and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which a person needs them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name."""
        if cmd_name not in VERBS and cmd_name not in HIDDEN:
            return None
        module = importlib.import_module(f"diglot.cli.verbs.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`diglot COMMAND --help` tells more. All state lives in one folder: `--home`, or DIGLOT_HOME.",
)
@click.version_option(__version__, prog_name="diglot", message="%(prog)s %(version)s")
@debug_option
def diglot() -> None:
    """A local model server that speaks Ollama's and OpenAI's protocols from one port.

    To begin: `diglot serve` in one terminal, `diglot run smollm2:135m` in another.
    """


def main() -> None:
    """Run the command line of this process and exit with its code."""
    asked = Asked()
    try:
        code = diglot.main(prog_name="diglot", obj=asked, standalone_mode=False)
    except click.ClickException as error:
        _explain(asked)
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except BrokenPipeError:  # Whoever reads the output has seen enough; do not fail again when it is flushed.
        _forget_output()
        code = 1
    except Exception as error:  # noqa: BLE001  the border: a person gets a sentence
        _explain(asked)
        click.echo(f"Error: {_sentence(error)}", err=True)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _explain(asked: Asked) -> None:
    if asked.debug:
        traceback.print_exc()


def _sentence(error: Exception) -> str:
    from diglot.core.model import InvalidName  # noqa: PLC0415  it brings msgspec, which a version does without

    match error:
        case Fault(message=message):
            return message
        case InvalidName():
            return str(error)
        case OSError(filename=str() as name, strerror=str() as reason):
            return f"{name}: {reason}"
        case OSError():
            return str(error)
        case _:
            return f"{type(error).__name__}: {error} (this is a bug; --debug shows where)"


def _forget_output() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(nowhere, sys.stdout.fileno())
