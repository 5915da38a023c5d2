"""`diglot create`: make a model of a Modelfile."""

from __future__ import annotations

from pathlib import Path

import click

from diglot.cli.failure import Failure
from diglot.cli.flags import REACH, STORE, takes_settings
from diglot.cli.making import Wanted, create
from diglot.cli.server import url_option
from diglot.core.modelfile import InvalidModelfile, decode_modelfile, read_modelfile
from diglot.settings import Settings


@click.command()
@click.argument("name", metavar="MODEL")
@click.option("-f", "--file", "file", type=click.Path(path_type=Path), default=Path("Modelfile"), show_default=True)
@click.option("-q", "--quantize", metavar="TYPE", default="", help="f32, f16 or q8_0, for safetensors; f16 by default.")
@url_option
@takes_settings(*REACH, *STORE)
def command(settings: Settings, *, name: str, file: Path, quantize: str, url: str | None) -> None:
    """Make a model of a Modelfile.

    FROM names a model, a GGUF file, or a folder with the safetensors of a BERT or XLM-RoBERTa encoder. Also
    understood: PARAMETER, SYSTEM, MESSAGE, ADAPTER, LICENSE, and TEMPLATE, which is kept for other servers.
    """
    try:
        commands = read_modelfile(decode_modelfile(file.read_bytes()))
        create(settings, Wanted(name, commands, file.absolute().parent, quantize), url=url)
    except InvalidModelfile as error:
        raise Failure(f"{file}: {error}") from error
    click.echo(f"{name} is here")
