"""`diglot doctor`: say what there is and what is wrong. Exit code 1 if something is.

Neighbour: `checkup` looks and judges, this writes it down.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from diglot.cli.flags import takes_settings
from diglot.cli.port import Answers
from diglot.cli.words import plain, size_in_words, span_in_words
from diglot.settings import Settings

if TYPE_CHECKING:
    from diglot.cli.checkup import Fit, Report


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
@takes_settings()
def command(settings: Settings, *, as_json: bool) -> None:
    """Look at machine, engine, models, limits, port and disk, and say what is wrong and what to do.

    Takes the options of `diglot serve`, to look at what it would do with them. Exit code 1 if something is wrong.
    """
    from diglot.cli.checkup import examine  # noqa: PLC0415  after the help is shown

    report = examine(settings)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report, enc_hook=str), indent=2))
    else:
        click.echo("\n".join(in_words(report)))
    sys.exit(0 if report.well else 1)


def in_words(report: Report) -> Iterator[str]:
    """Yield the report line by line."""
    yield f"Diglot {report.version}, Python {report.python}, {report.system}"
    for title, rows in (
        ("Machine", _machine(report)),
        ("Models", _models(report)),
        ("Limits", _limits(report)),
        ("Server", _server(report)),
    ):
        yield f"\n{title}"
        yield from (f"  {name:<20}{plain(value)}" for name, value in rows)
    yield ""
    if not report.findings:
        yield "Nothing is wrong."
    for finding in report.findings:
        yield f"{'WRONG' if finding.wrong else 'note '}  {plain(finding.what)}\n       {plain(finding.remedy)}"


def _machine(report: Report) -> Iterator[tuple[str, str]]:
    yield "engine", f"{report.engine} {report.engine_version}".strip()
    yield "cores", str(report.hardware.cores)
    for device in report.hardware.devices:
        free, total = size_in_words(device.memory_free), size_in_words(device.memory_total)
        yield "device", f"{device.name}: {device.description}, {free} of {total} free"


def _models(report: Report) -> Iterator[tuple[str, str]]:
    for model in report.models:
        yield (
            model.name,
            f"{size_in_words(model.size)}, window {model.window}, {size_in_words(model.memory)} when loaded{_more(model)}",
        )
    for broken in report.broken:
        yield broken.name, "cannot be used"
    for folder in report.folders:
        yield "in", f"{folder.path}, {size_in_words(folder.free)} free"


def _more(model: Fit) -> str:
    """Return what is told of the prompts that are kept, where that is any."""
    return f", {size_in_words(model.most)} at most" if model.most > model.memory else ""


def _limits(report: Report) -> Iterator[tuple[str, str]]:
    limits = report.limits
    yield "memory", f"{size_in_words(limits.memory)} for all loaded models"
    yield "window", f"{limits.window} tokens" if limits.window else "the model's own, as far as memory goes"
    yield "slots", f"{limits.slots} answers at a time of each model, {limits.queue} wait"
    yield "keep alive", "for ever" if limits.keep_alive < 0 else span_in_words(limits.keep_alive)


def _server(report: Report) -> Iterator[tuple[str, str]]:
    match report.answers:
        case Answers.DIGLOT:
            yield report.address, f"Diglot runs, loaded: {', '.join(report.loaded) or 'nothing'}"
            yield "metrics", f"http://{report.address}/metrics, for Prometheus"
        case Answers.NOBODY:
            yield report.address, "no server runs"
        case other:
            yield report.address, f"answered by {other}"
