"""The readers of bytes from elsewhere, each with its law, for whatever feeds them: hypothesis, or atheris.

A law takes any bytes and fails (with any exception) where the reader does not keep its promise: it gives a
value or the one refusal that it names, and what it promises of that value holds. Nothing here makes bytes but the
seeds: small files that are sound, from which a fuzzer goes on. Neighbours: `test_readers` and `follow` feed.

Invariant: a law keeps nothing from one call to the next.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from diglot.core.compaction.envelope import open_envelope, write_envelope
from diglot.core.errors import BrokenCompaction
from diglot.core.modelfile import InvalidModelfile, decode_modelfile, parameters_of, read_modelfile, write_modelfile
from diglot.core.turns import turns_of
from diglot.framing.lines import LineDecoder, LineTooLong
from diglot.framing.ndjson import NdjsonDecoder
from diglot.framing.sse import SseDecoder, encode
from diglot.store.anatomy import facts_of
from diglot.store.gguf import BrokenHeader, read_header
from diglot.store.manifest import Broken, read_config, read_manifest, read_messages, read_parameters
from tests.core.compaction.transcripts import PNG
from tests.store.gguf_bytes import BERT, LLAMA, U8, Tensor, gguf

_LIMIT: Final = 64
"""Bytes of a line, small enough to be met."""


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """A reader by name: its law, sound bytes to begin with, and words that mean something to it."""

    name: str
    law: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...] = ()


def within(place: int, first: int, last: int) -> None:
    """Fail where a refusal names a place that the bytes do not have."""
    assert first <= place <= last


def _cut(data: bytes) -> list[bytes]:
    """Cut bytes into pieces; where, the bytes say themselves."""
    pieces, at = [], 0
    while at < len(data):
        size = 1 + data[at] % 7
        pieces.append(data[at : at + size])
        at += size
    return pieces


def _fed(decoder: SseDecoder | NdjsonDecoder | LineDecoder, pieces: list[bytes]) -> list[object]:
    out: list[object] = []
    for piece in pieces:
        out += decoder.feed(piece)
    return out + list(decoder.close())


def _lines(data: bytes) -> None:
    """Any cutting gives the same lines, none of them with an end in it."""
    whole = _fed(LineDecoder(), [data])
    assert whole == _fed(LineDecoder(), _cut(data))
    longest = max((len(line) for line in whole if isinstance(line, bytes)), default=0)
    try:
        assert _fed(LineDecoder(_LIMIT), _cut(data)) == whole
        assert longest <= _LIMIT
    except LineTooLong:
        assert longest > _LIMIT


def sse(data: bytes) -> None:
    """Any cutting gives the same events, and they can be written and read again."""
    _lines(data)
    decoder = SseDecoder()
    whole = [*decoder.feed(data), *decoder.close()]
    assert whole == _fed(SseDecoder(), _cut(data))
    written = b"".join(encode(event.data, event.name) for event in whole)
    assert _fed(SseDecoder(), _cut(written)) == whole
    with suppress(LineTooLong):
        assert _fed(SseDecoder(_LIMIT), _cut(data)) == whole


def ndjson(data: bytes) -> None:
    """Any cutting gives the same values, none of them empty."""
    _lines(data)
    whole = _fed(NdjsonDecoder(), [data])
    assert whole == _fed(NdjsonDecoder(), _cut(data))
    assert all(whole)


def envelope(data: bytes) -> None:
    """What opens says the same to a model when it is written and opened again; the rest is refused."""
    try:
        opened = open_envelope(data.decode(errors="replace"))
    except BrokenCompaction:
        return
    again = open_envelope(write_envelope(opened))
    assert again.text == opened.text
    assert turns_of(again.retained) == turns_of(opened.retained)


def header(data: bytes) -> None:
    """A header that is read means something that can be kept; everything else is refused, at a place of the file."""
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        file.write(data)
        file.flush()
        try:
            read = read_header(Path(file.name))
        except BrokenHeader as error:
            within(error.offset, 0, len(data))
            return
    facts = facts_of(read)
    assert msgspec.json.decode(msgspec.json.encode(facts), type=type(facts)) == facts
    msgspec.json.encode(read.fields)


def modelfile(data: bytes) -> None:
    """What is read can be written and read again; the rest is refused, at a line of the file."""
    try:
        text = decode_modelfile(data)
    except InvalidModelfile as error:
        within(error.line, 1, data.count(b"\n") + 1)
        return
    try:
        commands = read_modelfile(text)
        parameters_of(commands)
    except InvalidModelfile as error:
        within(error.line, 1, text.count("\n") + 1)
        return
    again = read_modelfile(write_modelfile(commands))
    assert [(each.kind, each.key, _words(each.text)) for each in again] == [
        (each.kind, each.key, _words(each.text)) for each in commands
    ]


def _words(text: str) -> str:
    """Return a text but for the blanks that part quotation marks which have no form."""
    return text.replace(" ", "") if '"""' in text or '"" "' in text else text


def manifest(data: bytes) -> None:
    """Each document of a model is read or broken, and so is every digest in it."""
    with suppress(Broken):
        read = read_manifest(data)
        assert read.size >= 0
        assert len(read.contents) <= len(read.layers) + 1
    with suppress(Broken):
        assert isinstance(read_config(data).marks, dict)
    with suppress(Broken):
        read_messages(data)
    with suppress(Broken):
        written, _, _ = read_parameters(data)
        msgspec.json.encode(written)


_DIGEST: Final = "sha256:" + "0123456789abcdef" * 4
_PAYLOAD: Final = {
    "type": "ollama_compaction",
    "version": 1,
    "summary": "s",
    "retained": [
        {"role": "user", "content": "look", "images": [base64.b64encode(PNG).decode()]},
        {
            "role": "assistant",
            "thinking": "hm",
            "tool_calls": [{"id": "c", "function": {"index": 0, "name": "f", "arguments": {"a": [1]}}}],
        },
        {"role": "tool", "content": "r", "tool_name": "f", "tool_call_id": "c"},
    ],
}
_MANIFEST: Final = {
    "schemaVersion": 2,
    "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
    "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": _DIGEST, "size": 9},
    "layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": _DIGEST, "size": 1 << 40, "from": "/x"}],
}
_CONFIG: Final = {"model_format": "gguf", "model_families": None, "rootfs": {"type": "layers", "diff_ids": [_DIGEST]}}
_OPTIONS: Final = {"temperature": 0.5, "num_ctx": "4096", "stop": ["a", "b"], "use_mmap": False, "seed": 1e3}
_MODELFILE: Final = (
    '# c\nFROM x\nPARAMETER stop "<|end|>"\nPARAMETER num_ctx 9\nSYSTEM """a\n"b"\n"""\nMESSAGE user hi\n'
)
_DEEP: Final = b"[" * 10_000


def _json(*values: object) -> tuple[bytes, ...]:
    return tuple(json.dumps(value).encode() for value in values)


READERS: Final[tuple[Reader, ...]] = (
    Reader(
        name="sse",
        law=sse,
        seeds=(
            b"event: a\ndata: 1\ndata: 2\n\ndata: [DONE]\n\n",
            b":\r\n\r\nid: 3\r\ndata\r\rdata: x",
            b"\xef\xbb\xbf",
        ),
        words=(b"data:", b"event:", b"\n\n", b"\r\n", b"\r"),
    ),
    Reader(name="ndjson", law=ndjson, seeds=(b'{"a":1}\n{"b":2}\r\n\n{"c":3}', b"x" * 80), words=(b"\r\n", b"\n")),
    Reader(
        name="envelope",
        law=envelope,
        seeds=(*_json(_PAYLOAD), b'{"retained":' + _DEEP),
        words=tuple(
            f'"{word}"'.encode() for word in (*_PAYLOAD, "role", "content", "images", "thinking", "tool_calls")
        ),
    ),
    Reader(
        name="header",
        law=header,
        seeds=(
            gguf(),
            gguf({"general.architecture": "llama", "a": U8(bytes(9)), "b": ["x", "y"], "c": -1, "d": 0.5}, version=2),
            gguf(BERT, [Tensor("a"), Tensor("b", (64,), 2)]),
            gguf({**BERT, "general.alignment": 8}, [Tensor("a", (7, 3), 1)], alignment=8),
        ),
        words=(b"GGUF", *(key.encode() for key in (*LLAMA, *BERT)), b"\xff" * 8, b"general.alignment"),
    ),
    Reader(
        name="modelfile",
        law=modelfile,
        seeds=(_MODELFILE.encode(), _MODELFILE.encode("utf-16"), b"\xef\xbb\xbffrom x", b"FROM x\nLICENSE "),
        words=(b"FROM ", b"PARAMETER ", b"SYSTEM ", b"MESSAGE ", b'"""', b"\n", b"stop", b"num_ctx", b"temperature"),
    ),
    Reader(
        name="manifest",
        law=manifest,
        seeds=(*_json(_MANIFEST, _CONFIG, _OPTIONS, [{"role": "user", "content": "x"}]), _DEEP, b'{"a":' + _DEEP),
        words=tuple(f'"{word}"'.encode() for word in (*_MANIFEST, *_CONFIG, *_OPTIONS, "digest", "size", _DIGEST)),
    ),
)
