"""Launch: what parent and child say to each other, one JSON line each.

The parent writes one `Launch` to the child's standard input and keeps the pipe open; the child writes
`Report`s to its standard output. The key travels here because a command line and an environment can be
read by others. Neighbours: `child` on one side, `process` on the other.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Launch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything a child needs to serve one model.

    `window` is the most tokens one conversation may hold, `pool` what all slots share, both in tokens; `saved` is
    how many MiB of prompts that left the pool are kept for when they come back.
    `program` is a `llama-server` binary to run instead of the library. `use_mmap` None leaves it to llama.cpp.
    """

    model: str
    key: str
    window: int
    pool: int
    slots: int
    threads: int
    batch_threads: int
    batch: int
    saved: int = 0
    embedding: bool = False
    pooling: Literal["none", "mean", "cls", "last", "rank"] | None = None
    projector: str | None = None
    adapters: tuple[str, ...] = ()
    gpu_layers: int | None = None
    main_gpu: int | None = None
    use_mmap: bool | None = None
    program: str | None = None


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The server listens on `port` of the loopback interface."""

    port: int


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The server could not start; `error` is what the library said, which is little."""

    error: str


Report = Ready | Failed
