"""A process that is killed before any one of its file operations leaves a whole store, and a second try succeeds."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from diglot.core.model import ModelRef
from tests.store.arriving import WEIGHTS
from tests.store.doing import DONE, KILLED, Doer, Work, doer
from tests.store.gguf_bytes import LLAMA, gguf
from tests.store.registry import Registry, registry
from tests.store.wholeness import Identity, require_tidy, require_whole

SMALL = gguf({**LLAMA, "general.name": "Small"})
A, B = ModelRef("a"), ModelRef("b")
_MOST = 400


@pytest.fixture(scope="module")
def doing() -> Iterator[Doer]:
    with doer() as program:
        yield program


@pytest.fixture(scope="module")
def offered() -> Iterator[Registry]:
    with registry() as there:
        there.put("me/tiny:1", ("model", WEIGHTS), ("system", b"Pulled."))
        yield there


def identity(data: bytes, system: str = "") -> Identity:
    return hashlib.sha256(data).hexdigest(), system


@pytest.mark.timeout(240)
@pytest.mark.parametrize("do", ["add", "replace", "make", "copy", "copy over", "remove", "upload", "tidy", "pull"])
def test_killed_before_each_file_operation(tmp_path: Path, doing: Doer, offered: Registry, do: str) -> None:
    small, other = tmp_path / "small.gguf", tmp_path / "other.gguf"
    small.write_bytes(SMALL)
    other.write_bytes(gguf())
    work, after = {
        "add": (Work("add", "b", str(other)), {B: identity(gguf())}),
        "replace": (Work("add", "a", str(other)), {A: identity(gguf())}),
        "make": (Work("make", "b", "a"), {B: identity(SMALL, "Be brief.")}),
        "copy": (Work("copy", "b", "a"), {B: identity(SMALL)}),
        "copy over": (Work("copy", "a", "c"), {A: identity(WEIGHTS)}),
        "remove": (Work("remove", "a"), {}),
        "upload": (Work("upload", other="some text"), {}),
        "tidy": (Work("tidy"), {}),
        "pull": (
            Work("pull", f"{offered.host}/me/tiny:1"),
            {ModelRef.parse(f"{offered.host}/me/tiny:1"): identity(WEIGHTS, "Pulled.")},
        ),
    }[do]
    large = tmp_path / "large.gguf"
    large.write_bytes(WEIGHTS)
    first = tmp_path / "first"
    assert doing.do(first, [Work("add", "a", str(small))]) == [DONE]
    assert doing.do(first, [Work("add", "c", str(large))]) == [DONE]
    before = require_whole(first)
    wanted = {**before, **after}
    if do == "remove":
        del wanted[A]
    for crash in range(0, _MOST, 4 if do == "pull" else 1):  # Much of a pull is alike, and each try takes its time.
        root = tmp_path / "store"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(first, root)
        [outcome] = doing.do(root, [msgspec.structs.replace(work, crash=crash)])
        assert outcome in {DONE, KILLED}
        assert require_whole(root) in ([wanted] if outcome == DONE else [before, wanted])
        [again] = doing.do(root, [work])
        assert again == DONE or (do == "remove" and again == "ModelNotFound")
        assert require_whole(root) == wanted
        require_tidy(root)
        if outcome == DONE:
            assert crash > (0 if do == "tidy" else 3)
            return
    pytest.fail(f"it did more than {_MOST} file operations")
