"""A Modelfile made into a model: by the server where one runs, else in this process.

What stands in the file becomes the body of `POST /api/create`; files that it names are brought first, unless the
server has them. Neighbours: `core.modelfile` reads it, `server` brings files, `progress` draws.

Invariant: both ways follow the same recipe.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import msgspec

from diglot.cli.failure import Failure, NoServer
from diglot.cli.moving import LineReply
from diglot.cli.progress import Progress
from diglot.cli.server import Server
from diglot.core.errors import ModelNotFound
from diglot.core.modelfile import MARKS, Command, parameters_of
from diglot.core.request import CreateModel
from diglot.settings import Settings

_PIECE: Final = 1 << 20
_GGUF: Final = ".gguf"
_WANTED: Final = ("*.gguf", "*.safetensors", "**/*.json", "tokenizer.model", "sentencepiece.bpe.model", "vocab.txt")
"""What a folder may hold that makes a model, as globs."""

Bring = Callable[[Path], str]
"""Brings a file to where the model is made, and returns its digest."""


class Wanted(msgspec.Struct, frozen=True):
    """What is to be made: the commands of a Modelfile that lies in `folder`, under a name."""

    name: str
    commands: tuple[Command, ...]
    folder: Path
    quantize: str = ""

    def body(self, bring: Bring) -> dict[str, Any]:
        """Return the body of the request, once all files are brought. Raises Failure, InvalidModelfile."""
        body: dict[str, Any] = {"model": self.name, "parameters": parameters_of(self.commands), "license": []}
        sources = [command for command in self.commands if command.kind == "from"]
        paths = [path for command in sources if (path := self._path(command.text)).exists()]
        if len(sources) > max(1, len(paths)):
            raise Failure("FROM names one model, or files that are all there")
        if paths:
            body["files"] = {name: bring(file) for path in paths for name, file in _files(path)}
        elif sources[0].text.startswith((".", "/", "~")) or sources[0].text.endswith(_GGUF):
            raise Failure(f"line {sources[0].line}: there is no file {sources[0].text}")
        else:
            body["from"] = sources[0].text
        adapters = [self._path(command.text) for command in self.commands if command.kind == "adapter"]
        body["adapters"] = {path.name: bring(path) for path in adapters}
        for command in self.commands:
            if command.kind in ("system", "template", *MARKS):
                body[command.kind] = command.text
        body["license"] = [command.text for command in self.commands if command.kind == "license"]
        messages = [command for command in self.commands if command.kind == "message"]
        body["messages"] = [{"role": command.key, "content": command.text} for command in messages]
        if self.quantize:
            body["quantize"] = self.quantize
        return body

    def _path(self, text: str) -> Path:
        return self.folder / Path(text).expanduser()


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files that a path stands for, by their names within it. Raises Failure."""
    if path.is_file():
        yield path.name, path
        return
    found = sorted({each for pattern in _WANTED for each in path.glob(pattern) if each.is_file()})
    weights = [each for each in found if each.suffix in {_GGUF, ".safetensors"}]
    if not weights:
        raise Failure(f"{path} holds neither GGUF nor safetensors")
    if any(each.suffix == _GGUF for each in weights):
        found = [each for each in weights if each.suffix == _GGUF]
    for each in found:
        yield each.relative_to(path).as_posix(), each


def create(settings: Settings, wanted: Wanted, *, url: str | None) -> None:
    """Make the model, with a bar. Raises Failure, InvalidModelfile, and what the store raises."""
    with Progress() as bar, Server.at(settings, url) as server:
        try:
            _by_server(server, wanted, bar)
        except NoServer:
            if url is not None:
                raise
            _here(settings, wanted, bar)


def _by_server(server: Server, wanted: Wanted, bar: Progress) -> None:
    server.has("/")  # Before a file is read for nothing.

    def bring(path: Path) -> str:
        digest = _digest(path, bar)
        if not server.has(f"/api/blobs/{digest}"):
            told = f"sending {path.name}"
            server.upload(f"/api/blobs/{digest}", path, lambda done, total: bar.bytes(told, done, total))
        return digest

    done = False
    for line in server.stream("/api/create", wanted.body(bring), LineReply):
        if line.error:
            raise Failure(line.error)
        done = line.status == "success"
        _show(bar, line.status, (line.completed, line.total))
    if not done:
        raise Failure(f"the server at {server.url} stopped in the middle")


def _here(settings: Settings, wanted: Wanted, bar: Progress) -> None:
    from diglot.app import SystemClock, reach_of  # noqa: PLC0415  only where no server answers
    from diglot.dialects.ollama.create import CREATE  # noqa: PLC0415
    from diglot.dialects.operation import Wire  # noqa: PLC0415
    from diglot.services.catalog import Catalog, read_name  # noqa: PLC0415
    from diglot.store.elsewhere import stores_elsewhere  # noqa: PLC0415
    from diglot.store.local import LocalStore  # noqa: PLC0415
    from diglot.store.supply import StoreSupply  # noqa: PLC0415

    store = LocalStore(settings.model_folder)

    def bring(path: Path) -> str:
        return str(store.take(path, progress=lambda done, total: bar.bytes(f"copying {path.name}", done, total)))

    request = CREATE.parse(Wire(body=msgspec.json.encode(wanted.body(bring)))).request
    assert isinstance(request, CreateModel), "this is what the operation parses to"  # noqa: S101
    recipe = request.recipe

    async def follow() -> None:
        catalog = Catalog((store, *stores_elsewhere(settings)))
        base = await catalog.card(recipe.base, verbose=False) if recipe.base else None
        supply = StoreSupply(store, reach_of(settings), clock=SystemClock())
        async with aclosing(supply.make(read_name(request.name), recipe, base=base)) as steps:
            async for step in steps:
                _show(bar, step.stage, (step.completed, step.total))

    try:
        asyncio.run(follow())
    except ModelNotFound as fault:
        raise Failure(f"{fault.message}; get it first: diglot pull {recipe.base}") from None


def _digest(path: Path, bar: Progress) -> str:
    hashing, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        size = path.stat().st_size
        while piece := file.read(_PIECE):
            hashing.update(piece)
            done += len(piece)
            bar.bytes(f"reading {path.name}", done, size)
    return f"sha256:{hashing.hexdigest()}"


def _show(bar: Progress, status: str, counts: Sequence[int]) -> None:
    done, total = counts
    if total:
        bar.bytes(status, done, total)
    else:
        bar.waiting(status)
