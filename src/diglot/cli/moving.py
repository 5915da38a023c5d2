"""Models on their way, as a person watches them: by the server where one runs, else in this process.

Both give the same lines, those of Ollama's protocol. Neighbours: `pull` and `push` use it, `progress` draws.

Invariant: whoever leaves in the middle leaves no half model, and the next one goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from diglot.cli.failure import Failure, NoServer
from diglot.cli.progress import Progress
from diglot.cli.server import Server
from diglot.core.events import Step
from diglot.core.model import ModelRef
from diglot.core.request import Pull, Push
from diglot.core.source import read_source
from diglot.settings import Settings

if TYPE_CHECKING:
    from diglot.store.supply import StoreSupply


class LineReply(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the answer. `completed` of `total` are bytes."""

    status: str = ""
    total: int = 0
    completed: int = 0
    error: str = ""


def move(settings: Settings, request: Pull | Push, *, url: str | None) -> None:
    """Get a model or bring one away, with a bar. Raises Failure, and what the store raises."""
    with Progress() as bar, Server.at(settings, url) as server:
        try:
            _by_server(server, request, bar)
        except NoServer:
            if url is not None:
                raise
            asyncio.run(_here(settings, request, bar))


def show_step(bar: Progress, *, away: bool = False) -> Callable[[Step], None]:
    """Return what draws the steps of a pull, or of a push, that goes on in this process."""
    from diglot.dialects.ollama.moving import PULL_WORDS, PUSH_WORDS, words_of  # noqa: PLC0415  after the help is shown

    words = words_of(PUSH_WORDS if away else PULL_WORDS)
    return lambda step: _show(bar, LineReply(status=words(step), total=step.total, completed=step.completed))


def _by_server(server: Server, request: Pull | Push, bar: Progress) -> None:
    path = "/api/pull" if isinstance(request, Pull) else "/api/push"
    done = False
    for line in server.stream(path, {"model": request.name, "insecure": request.insecure}, LineReply):
        if line.error:
            raise Failure(line.error)
        done = line.status == "success"
        _show(bar, line)
    if not done:
        raise Failure(f"the server at {server.url} stopped in the middle")


async def _here(settings: Settings, request: Pull | Push, bar: Progress) -> None:
    from diglot.app import SystemClock, reach_of  # noqa: PLC0415  only where no server answers
    from diglot.store.local import LocalStore  # noqa: PLC0415
    from diglot.store.supply import StoreSupply  # noqa: PLC0415

    supply = StoreSupply(LocalStore(settings.model_folder), reach_of(settings), clock=SystemClock())
    show = show_step(bar, away=isinstance(request, Push))
    async with aclosing(_steps(supply, request)) as steps:
        async for step in steps:
            show(step)


def _steps(supply: StoreSupply, request: Pull | Push) -> AsyncGenerator[Step]:
    if isinstance(request, Pull):
        return supply.pull(read_source(request.name), insecure=request.insecure)
    return supply.push(ModelRef.parse(request.name), insecure=request.insecure)


def _show(bar: Progress, line: LineReply) -> None:
    if line.total:
        bar.bytes(line.status, line.completed, line.total)
    else:
        bar.waiting(line.status)
