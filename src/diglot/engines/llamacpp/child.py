"""The child: a process that serves one model on a loopback port until its parent is gone.

Run as `python -m diglot.engines.llamacpp.child`. Reads one `Launch` line from standard input, starts llama.cpp,
writes one `Report` line to standard output, then waits for the end of its input and leaves. llama.cpp's own
log goes to standard error. It deliberately knows nothing of requests: those go to llama.cpp over HTTP.
Neighbours: `process` starts it, `program` is the other host it can have.

Invariant: it does not outlive its parent. The end of the pipe says so; on Linux the kernel does too, because
the library holds the interpreter while it loads, and nothing else could run then.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from diglot.engines.llamacpp import program
from diglot.engines.llamacpp.launch import Failed, Launch, Ready, Report

if TYPE_CHECKING:
    import xllamacpp

_AT_ONCE = 64


def parameters(launch: Launch) -> xllamacpp.CommonParams:
    """Translate a launch into llama.cpp's parameters."""
    import xllamacpp  # noqa: PLC0415  a hundred megabytes that the other host does not need

    params = xllamacpp.CommonParams()
    params.model.path = launch.model
    params.api_keys = [launch.key]
    params.n_ctx = launch.pool
    params.n_parallel = launch.slots
    params.kv_unified = True
    params.kv_unified_per_slot = launch.window
    params.cache_ram_mib = launch.saved
    params.n_batch = params.n_ubatch = launch.batch
    params.cpuparams.n_threads = launch.threads
    params.cpuparams_batch.n_threads = launch.batch_threads
    params.n_threads_http = max(_AT_ONCE, 2 * launch.slots)  # One for each open connection, waiting ones included.
    params.endpoint_slots = True
    params.ui = False
    params.offline = True
    params.embedding = launch.embedding
    if launch.pooling is not None:
        kind = xllamacpp.llama_pooling_type
        params.pooling_type = getattr(kind, f"LLAMA_POOLING_TYPE_{launch.pooling.upper()}")
    if launch.projector is not None:
        params.mmproj.path = launch.projector
    if launch.adapters:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(path, 1.0) for path in launch.adapters]
    if launch.gpu_layers is not None:
        params.n_gpu_layers = launch.gpu_layers
    if launch.main_gpu is not None:
        params.main_gpu = launch.main_gpu
    if launch.use_mmap is not None:
        mode = xllamacpp.llama_load_mode
        params.load_mode = mode.LLAMA_LOAD_MODE_MMAP if launch.use_mmap else mode.LLAMA_LOAD_MODE_NONE
    return params


def serve_library(launch: Launch) -> tuple[int, object]:
    """Start llama.cpp inside this process; return its port and what keeps it going."""
    import xllamacpp  # noqa: PLC0415

    server = xllamacpp.Server(parameters(launch))
    return urlsplit(server.listening_address).port or 0, server


@contextlib.contextmanager
def reporting() -> Iterator[Callable[[Report], None]]:
    """Give what tells the parent.

    From here on standard output is the log: a library that prints there would be taken for a report, and wait for ever
    once nobody reads on.
    """
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)

        def report(line: Report) -> None:
            channel.write(msgspec.json.encode(line) + b"\n")
            channel.flush()

        yield report


def main() -> None:
    """Serve until the end of standard input."""
    program.die_with_parent()
    launch = msgspec.json.decode(sys.stdin.buffer.readline(), type=Launch)
    start: Callable[[Launch], tuple[int, object]] = serve_library if launch.program is None else program.serve
    with reporting() as report:
        try:
            port, server = start(launch)
        except Exception as error:  # noqa: BLE001  the border of this process: whatever it is, the parent must know
            # llama.cpp writes its log in a thread of its own: what it had to say may be lost with the process.
            report(Failed(f"{launch.model}: {str(error) or type(error).__name__}"))
            os._exit(1)
        report(Ready(port))
    with contextlib.suppress(OSError):
        sys.stdin.buffer.read()
    if isinstance(server, program.Program):
        server.kill()
    os._exit(0)  # Freeing gigabytes in order takes time, and the kernel does it anyway.


if __name__ == "__main__":
    main()
