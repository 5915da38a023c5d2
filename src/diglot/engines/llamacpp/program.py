"""The other host: a `llama-server` binary, for a build that the library's wheel does not offer (CUDA, ROCm).

It must be about as new as the library, whose options these are.
Runs inside the child, which watches over it as over the library: the parent sees no difference.
The key is handed over in a file that only this user can read and that is gone once the server listens.

Invariant: the program does not outlive the child.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from diglot.engines.llamacpp.launch import Launch

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_POLL = 0.05


def die_with_parent() -> None:
    """Ask the kernel, where it can, to kill this process when the thread that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """A running `llama-server`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()


def arguments(launch: Launch, *, port: int, key_file: Path) -> list[str]:
    """Translate a launch into a command line, which holds no secret."""
    line: list[object] = [launch.program, "--model", launch.model, "--host", "127.0.0.1", "--port", port]
    line += ["--api-key-file", key_file, "--ctx-size", launch.pool, "--parallel", launch.slots, "--kv-unified"]
    line += ["--kv-unified-per-slot", launch.window]
    line += ["--cache-ram", launch.saved, "--batch-size", launch.batch, "--ubatch-size", launch.batch]
    line += ["--threads", launch.threads, "--threads-batch", launch.batch_threads, "--no-webui", "--slots", "--jinja"]
    if launch.embedding:
        line += ["--embeddings"]
    if launch.pooling is not None:
        line += ["--pooling", launch.pooling]
    if launch.projector is not None:
        line += ["--mmproj", launch.projector]
    for adapter in launch.adapters:
        line += ["--lora", adapter]
    if launch.gpu_layers is not None:
        line += ["--n-gpu-layers", launch.gpu_layers]
    if launch.main_gpu is not None:
        line += ["--main-gpu", launch.main_gpu]
    if launch.use_mmap is not None:
        line += ["--load-mode", "mmap" if launch.use_mmap else "none"]
    return [str(each) for each in line]


def serve(launch: Launch) -> tuple[int, Program]:
    """Start the program and wait until it is healthy; return its port and the running program."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="diglot-") as folder:  # Made with mode 0700.
        key_file = Path(folder) / "key"
        key_file.write_text(launch.key + "\n")
        process = subprocess.Popen(  # noqa: S603  the operator named this program
            arguments(launch, port=port, key_file=key_file),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            preexec_fn=die_with_parent,  # noqa: PLW1509  one thread, nothing that could deadlock
        )
        _wait(process, port)
    return port, Program(process)


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    parent = os.getppid()
    while process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(_POLL)
        if os.getppid() != parent:
            process.kill()
    raise RuntimeError(f"the program ended with status {process.returncode}")
