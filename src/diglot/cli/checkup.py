"""A check-up: everything `diglot doctor` looks at, and what it makes of it.

Invariant: what is wrong comes with what to do about it.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from diglot import __version__
from diglot.cli.failure import Failure
from diglot.cli.machine import ENGINE, Folder, Hardware, engine_version, folder, hardware
from diglot.cli.port import Answers, bind_error, who_answers
from diglot.cli.server import Server, is_loopback
from diglot.cli.wire import PsReply
from diglot.cli.words import size_in_words
from diglot.core.model import Model
from diglot.core.request import LoadOptions
from diglot.engines.scripted.script import InvalidScript, load_script
from diglot.settings import Settings
from diglot.store.elsewhere import stores_elsewhere
from diglot.store.local import LocalStore

SCARCE: Final = 1_000_000_000
"""Bytes on a disk below which there is no room for a model."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something to know. `wrong`: it keeps the server from working as it should; `remedy` is what to do."""

    wrong: bool
    what: str
    remedy: str


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """A model, and in bytes the memory that it takes when it is loaded, as `ps` tells it, and at `most`, with prompts that are kept."""

    name: str
    size: int
    window: int
    memory: int
    most: int


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A name on disk that cannot be used, and why."""

    name: str
    reason: str


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The limits in force. `memory` is in bytes, `keep_alive` in seconds, `window` in tokens (0: the model's own)."""

    memory: int
    window: int
    slots: int
    queue: int
    keep_alive: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    version: str
    python: str
    system: str
    hardware: Hardware
    engine: str
    engine_version: str
    models: tuple[Fit, ...]
    broken: tuple[Broken, ...]
    hidden: tuple[Broken, ...]
    raw_only: tuple[str, ...]
    limits: Bounds
    address: str
    answers: Answers
    loaded: tuple[str, ...]
    folders: tuple[Folder, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def well(self) -> bool:
        """Whether nothing is wrong."""
        return not any(finding.wrong for finding in self.findings)


def examine(settings: Settings) -> Report:
    """Look at everything and judge it."""
    from diglot.app import memory_of  # noqa: PLC0415  the server's own word on its limit

    listing = LocalStore(settings.model_folder).listing()
    others = [store.listing() for store in stores_elsewhere(settings)]
    models = {model.ref: model for each in reversed((listing, *others)) for model in reversed(each.models)}
    free = bind_error(settings.host, settings.port) is None
    answers = Answers.NOBODY if free else who_answers(settings)
    report = Report(
        version=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        hardware=hardware(),
        engine=str(settings.llama_server or (ENGINE if settings.engine == "llamacpp" else settings.engine)),
        engine_version=engine_version(),
        models=_fits(settings, models.values()),
        broken=tuple(Broken(name=str(each.ref), reason=each.reason) for each in listing.problems),
        hidden=tuple(Broken(name=str(it.ref), reason=it.reason) for each in others for it in each.problems),
        raw_only=tuple(model.name for model in models.values() if model.raw_only),
        limits=Bounds(
            memory=memory_of(settings),
            window=settings.window,
            slots=settings.slots,
            queue=settings.queue,
            keep_alive=settings.keep_alive,
        ),
        address=f"{settings.host}:{settings.port}",
        answers=answers,
        loaded=_loaded(settings) if answers is Answers.DIGLOT else (),
        folders=tuple(map(folder, dict.fromkeys((settings.home, settings.model_folder)))),
    )
    findings = (*_judged_port(settings, report, free=free), *_judged_engine(settings, report), *_judged_store(report))
    return msgspec.structs.replace(report, findings=findings)


def _fits(settings: Settings, models: Iterable[Model]) -> tuple[Fit, ...]:
    if settings.engine != "llamacpp":
        return ()
    from diglot.app import engine_limits_of  # noqa: PLC0415  as above
    from diglot.engines.llamacpp.sizing import sizes_of  # noqa: PLC0415  comes with it

    limits, options = engine_limits_of(settings), LoadOptions(window=settings.window or None)
    sized = ((model, sizes_of(model, model.defaults.load.over(options), limits)) for model in models)
    return tuple(
        Fit(name=model.name, size=model.size, window=sizes.window, memory=sizes.fresh, most=sizes.memory)
        for model, sizes in sized
    )


def _loaded(settings: Settings) -> tuple[str, ...]:
    with Server.at(settings, None) as server:
        try:
            return tuple(each.name for each in server.get("/api/ps", PsReply).models)
        except Failure:
            return ()


def _judged_port(settings: Settings, report: Report, *, free: bool) -> Iterator[Finding]:
    another = "take another port: diglot serve --port N, or DIGLOT_PORT"
    match report.answers:
        case Answers.OLLAMA | Answers.OTHER:
            yield Finding(wrong=True, what=f"{report.address} is taken by {report.answers}", remedy=another)
        case Answers.NOBODY if not free:
            yield Finding(
                wrong=True, what=f"{report.address} cannot be listened on, and nobody answers", remedy=another
            )
        case _:
            pass
    if not is_loopback(settings.host) and not settings.key:
        yield Finding(
            wrong=False,
            what=f"whoever reaches {report.address} can use the models",
            remedy="set a key (DIGLOT_KEY), or listen on 127.0.0.1 and put a proxy in front",
        )


def _judged_engine(settings: Settings, report: Report) -> Iterator[Finding]:
    program, script = settings.llama_server, settings.script
    if program is not None and not (program.is_file() and os.access(program, os.X_OK)):
        yield Finding(wrong=True, what=f"{program} is no program", remedy="set llama_server to a llama-server binary")
    elif settings.engine == "llamacpp" and program is None and report.hardware.error:
        yield Finding(
            wrong=True,
            what=f"the engine cannot be loaded: {report.hardware.error}",
            remedy=f"install {ENGINE} anew, or set llama_server to a llama-server binary of this machine",
        )
    if script is not None and settings.engine == "scripted":
        try:
            load_script(script)
        except (InvalidScript, OSError) as error:
            yield Finding(wrong=True, what=f"the script cannot be played: {error}", remedy="set script to another file")
    for model in report.models:
        if model.most > report.limits.memory:
            yield Finding(
                wrong=False,
                what=f"{model.name} wants {size_in_words(model.most)}, "
                f"the limit is {size_in_words(report.limits.memory)}",
                remedy="allow more with --memory, a smaller --window, or take a smaller model",
            )


def _judged_store(report: Report) -> Iterator[Finding]:
    for model in report.broken:
        yield Finding(
            wrong=True,
            what=f"{model.name} cannot be used: {model.reason}",
            remedy=f"diglot rm {model.name}, and get it anew",
        )
    for model in report.hidden:
        yield Finding(
            wrong=False,
            what=f"{model.name} of another program is not served: {model.reason}",
            remedy="nothing here changes it; get it anew with diglot pull to have it here",
        )
    for name in report.raw_only:
        yield Finding(
            wrong=False,
            what=f"{name} answers raw prompts only: its weights bring no chat template, what it has instead is Ollama's own",
            remedy="take weights that bring their template, such as those of hf.co",
        )
    if not report.models and not report.broken:
        yield Finding(wrong=False, what="there is no model yet", remedy="diglot pull starter")
    for each in report.folders:
        remedy = "set DIGLOT_HOME or DIGLOT_MODELS to another folder"
        if not each.writable:
            yield Finding(wrong=True, what=f"{each.path} cannot be written to", remedy=remedy)
        if each.free < SCARCE:
            what = f"the disk of {each.path} has {size_in_words(each.free)} left"
            yield Finding(wrong=True, what=what, remedy=f"make room, or {remedy}")
