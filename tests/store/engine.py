"""What the real engine makes of a converted file, beside what the reference made of the original."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import msgspec

from tests.store.encoders import GOLDEN


class Case(msgspec.Struct, frozen=True):
    """A text with its token numbers and its vectors, by the reference."""

    text: str
    ids: tuple[int, ...]
    mean: tuple[float, ...]
    cls: tuple[float, ...] = ()


def golden(name: str) -> tuple[Case, ...]:
    """Return the golden cases of a model."""
    return msgspec.json.decode((GOLDEN / f"{name}.golden.json").read_bytes(), type=tuple[Case, ...])


class Answer(msgspec.Struct, frozen=True):
    """What the engine says to a text."""

    ids: tuple[int, ...]
    vector: tuple[float, ...]


def embed(weights: Path, cases: tuple[Case, ...]) -> list[Answer]:
    """Return the token numbers and the vector of each text, by the engine in a process of its own."""
    child = Path(__file__).with_name("engine_child.py")
    texts = json.dumps([case.text for case in cases])
    done = subprocess.run(
        [sys.executable, child, weights], input=texts, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=list[Answer])


def cosine(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Return the cosine of the angle between two vectors."""
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    return product / math.hypot(*one) / math.hypot(*other)
