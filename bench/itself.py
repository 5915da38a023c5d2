"""What Diglot costs by itself, without a model: streams, parsing, starting, memory, imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.report import Line, at_least, at_most
from bench.sides import Served, served, surroundings
from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.openai import DIALECT as OPENAI
from diglot.dialects.operation import Wire

_STREAMS = 64
_PIECES = 1000
_MB = 1e6


def itself(scale: float) -> Iterator[Line]:
    """Yield the lines. `scale` is 1 for a full run."""
    yield from _floods(scale)
    yield from _parsing(scale)
    yield from _starting(scale)


def _floods(scale: float) -> Iterator[Line]:
    cores = list(range(os.cpu_count() or 1))
    say = [f" word{number}" for number in range(_PIECES)]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps({"replies": [{"say": say}], "slots": _STREAMS, "window": 1 << 20}))
        flags = ("--engine", "scripted", "--script", str(script), "--slots", str(_STREAMS))
        with served(Path(folder), *flags, cores=cores[:1]) as server:
            for path in ("/v1/chat/completions", "/api/chat"):
                rates = _flood(server, path, cores[1:], rounds=max(3, round(9 * scale)))
                what = f"events a second, {_STREAMS} streams of {path}, server on one core"
                yield Line(what, rates, "{:.0f}", target=at_least(30_000))
            yield Line("server process, resident, after that", (server.resident / _MB,), "{:.0f}", "MB", at_most(80))


def _flood(server: Served, path: str, cores: list[int], *, rounds: int) -> tuple[float, ...]:
    """Return events a second for each round, after one that does not count."""
    body = {"model": "scripted", "messages": [{"role": "user", "content": "Go."}], "stream": True}
    command = [sys.executable, "-m", "bench.flood", str(server.port), path, str(_STREAMS), *map(str, cores)]
    lines = (json.dumps(body) + "\n") * (rounds + 1)
    told = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=600).stdout
    counts = [json.loads(line) for line in told.splitlines()]
    if any(count["events"] < _STREAMS * _PIECES for count in counts):
        raise RuntimeError(f"streams are missing: {counts}")
    return tuple(count["events"] / count["seconds"] for count in counts[1:])


def _parsing(scale: float) -> Iterator[Line]:
    for dialect, path in ((OPENAI, "/v1/chat/completions"), (OLLAMA, "/api/chat")):
        body = long_chat(1_000_000, arguments_as_text=dialect is OPENAI)
        parse = next(each.parse for each in dialect.operations if each.path == path)
        wire = Wire(body=body)
        rounds = max(5, round(25 * scale))
        ours = [_took(partial(parse, wire)) for _ in range(rounds)]
        plain = sorted(_took(partial(json.loads, body)) for _ in range(rounds))
        what = f"parse {len(body) / 1e6:.1f} MB for {path}"
        note = f"json.loads alone takes {plain[rounds // 2] * 1000:.1f} ms"
        yield Line(what, tuple(each * 1000 for each in ours), "{:.1f}", unit="ms", note=note)


def long_chat(size: int, *, arguments_as_text: bool) -> bytes:
    """Return the body of a chat of about so many bytes, as a coding agent would send it."""
    schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    function = {"name": "shell", "description": "Run a command.", "parameters": schema}
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding agent. " * 400}]
    body = {"model": "scripted", "messages": messages, "tools": [{"type": "function", "function": function}]}
    output = "".join(f'{number:5d}\tdef f{number}(x):  # it\'s "quoted" and \\ escaped\n' for number in range(60))
    length = turn = 0
    while length < size:
        turn += 1
        arguments: Any = {"command": f"sed -n {turn},{turn + 60}p src/module_{turn}.py"}
        call = {"name": "shell", "arguments": json.dumps(arguments) if arguments_as_text else arguments}
        messages += [
            {"role": "user", "content": f"Look at module {turn}, please."},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": f"c{turn}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{turn}", "content": output},
        ]
        length += len(json.dumps(messages[-3:]))
    return json.dumps(body).encode()


def _starting(scale: float) -> Iterator[Line]:
    rounds = max(3, round(7 * scale))
    ready: list[float] = []
    resident: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder, served(Path(folder), "--no-starter") as server:
            ready.append(server.ready)
            resident.append(server.resident / _MB)
    yield Line("start to healthy, without a model", tuple(ready), "{:.2f}", unit="s", target=at_most(1))
    yield Line("server process, resident, without a model", tuple(resident), "{:.0f}", unit="MB", target=at_most(80))
    env = surroundings()
    bare = [_took(lambda: subprocess.run([sys.executable, "-c", ""], check=True, env=env)) for _ in range(rounds)]
    command = [sys.executable, "-m", "diglot", "--version"]
    version = [
        _took(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)) for _ in range(rounds)
    ]
    note = f"Python alone takes {sorted(bare)[rounds // 2] * 1000:.0f} ms"
    yield Line("diglot --version", tuple(each * 1000 for each in version), "{:.0f}", unit="ms", note=note)


def _took(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
