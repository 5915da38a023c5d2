"""A `llama-server` binary as the host of a model, played by a small script that notes how it was started."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from diglot.core.errors import LoadFailed
from diglot.core.model import Model
from diglot.core.request import LoadOptions
from diglot.engines.llamacpp.launch import Launch
from diglot.engines.llamacpp.loader import LlamaLoader
from diglot.engines.llamacpp.program import arguments
from diglot.engines.llamacpp.sizing import Limits
from tests.engines.asking import CountingIds
from tests.engines.conftest import nothing

PROGRAM = f"""#!{sys.executable}
import http.server, json, os, pathlib, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
key = pathlib.Path(options["--api-key-file"])
note = {{"pid": os.getpid(), "argv": sys.argv[1:], "key": key.read_text(), "key_mode": key.parent.stat().st_mode & 0o777}}
pathlib.Path(__file__).with_suffix(".note").write_text(json.dumps(note))

class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *told):
        pass

http.server.HTTPServer(("127.0.0.1", int(options["--port"])), Health).serve_forever()
"""


def program(folder: Path, text: str = PROGRAM) -> Path:
    """Write an executable."""
    path = folder / "llama-server"
    path.write_text(text)
    path.chmod(0o755)
    return path


def note_of(path: Path) -> dict[str, object]:
    """What the program noted."""
    noted: dict[str, object] = json.loads(path.with_suffix(".note").read_text())
    return noted


def key_is_gone(running: psutil.Process) -> bool:
    """Whether the file that held the key is gone."""
    line = running.cmdline()
    return not Path(line[line.index("--api-key-file") + 1]).exists()


async def test_a_program_serves_and_ends_with_its_engine(chat_model: Model, tmp_path: Path) -> None:
    path = program(tmp_path)
    loader = LlamaLoader(ids=CountingIds(), limits=Limits(slots=2), program=str(path))
    engine = await loader.load(chat_model, LoadOptions(window=512, gpu_layers=7, use_mmap=False), nothing)
    note = note_of(path)
    running = psutil.Process(int(str(note["pid"])))
    assert engine.alive
    assert str(note["key"]).strip() not in " ".join(running.cmdline())
    assert len(str(note["key"]).strip()) > 20
    assert note["key_mode"] == 0o700
    assert key_is_gone(running)
    await engine.close()
    assert not running.is_running() or running.status() == psutil.STATUS_ZOMBIE


async def test_a_program_does_not_outlive_a_child_that_is_killed(chat_model: Model, tmp_path: Path) -> None:
    path = program(tmp_path)
    engine = await LlamaLoader(ids=CountingIds(), limits=Limits(), program=str(path)).load(
        chat_model, LoadOptions(window=512), nothing
    )
    running = psutil.Process(int(str(note_of(path)["pid"])))
    os.kill(engine.pid, signal.SIGKILL)
    assert psutil.wait_procs([running], timeout=20)[1] == []
    await engine.close()


@pytest.mark.parametrize("text", ["#!/bin/sh\necho no such device >&2\nexit 3\n", None])
async def test_a_program_that_does_not_run_fails_to_load(chat_model: Model, tmp_path: Path, text: str | None) -> None:
    path = program(tmp_path, text) if text else tmp_path / "nowhere"
    loader = LlamaLoader(ids=CountingIds(), limits=Limits(), program=str(path))
    with pytest.raises(LoadFailed) as caught:
        await loader.load(chat_model, LoadOptions(window=512), nothing)
    assert ("status 3" if text else "nowhere") in caught.value.detail


def test_every_choice_reaches_the_command_line() -> None:
    launch = Launch(
        model="m.gguf",
        key="secret",
        window=512,
        pool=1024,
        slots=2,
        threads=3,
        batch_threads=4,
        batch=128,
        saved=99,
        embedding=True,
        pooling="mean",
        projector="p.gguf",
        adapters=("a.gguf", "b.gguf"),
        gpu_layers=7,
        main_gpu=1,
        use_mmap=False,
        program="llama-server",
    )
    line = " ".join(arguments(launch, port=1, key_file=Path("key")))
    assert line == (
        "llama-server --model m.gguf --host 127.0.0.1 --port 1 --api-key-file key --ctx-size 1024 --parallel 2 "
        "--kv-unified --kv-unified-per-slot 512 --cache-ram 99 --batch-size 128 --ubatch-size 128 --threads 3 "
        "--threads-batch 4 --no-webui --slots --jinja --embeddings --pooling mean --mmproj p.gguf --lora a.gguf "
        "--lora b.gguf --n-gpu-layers 7 --main-gpu 1 --load-mode none"
    )
