"""Documents that lie on a disk, whoever wrote them: rows of SQLite, tokenizers, listings, settings, downloads begun.

Each is read, or refused by the one word that its reader has for that; a row that no longer reads is as good as gone.
"""

import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.compaction.record.taking import record_of
from diglot.core.compaction.record.writing import read_summary, write_record
from diglot.core.digest import Digest
from diglot.core.errors import UnknownResponse
from diglot.core.events import Timings, Usage
from diglot.core.items import Compaction, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, said
from diglot.core.result import Choice, Result, Stored
from diglot.settings import SettingsError, load_settings
from diglot.state.responses import StoredResponses
from diglot.store.convert import CannotConvert
from diglot.store.convert.vocabulary import Vocabulary, read_vocabulary
from diglot.store.hub.choice import Chosen, NoChoice, Offered, choose
from tests.fuzz.odd import nearly
from tests.services.world import Clock

STORED: Final = Stored(
    id="a",
    status="completed",
    created=1.0,
    input=(
        Message("user", (Text("hi"), Image(b"\x00\xff", "image/png"))),
        ToolCall("c", "apply_patch", "*** Begin", namespace="x", kind="freeform"),
        ToolResult("c", (Text("ok"),)),
        Compaction("payload", id="cmp"),
        Opaque("odd", '{"type":"odd"}'),
    ),
    result=Result(
        choices=(
            Choice(text="hi", reasoning="", calls=(), logprobs=(), reason="stop", items=(Reasoning("hm", sealed="z"),)),
        ),
        usage=Usage(1, 2),
        timings=Timings(),
        model="m",
    ),
    echo=b"\x00e",
)
SOUND: Final[Any] = msgspec.json.decode(msgspec.json.encode(STORED))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all examples of a test write into."""
    return tmp_path_factory.mktemp("disk")


@given(nearly(SOUND).map(json.dumps).map(str.encode) | st.binary(max_size=40) | st.just(b'{"input":' + b"[" * 100_000))
def test_a_row_is_a_response_or_as_good_as_gone(folder: Path, body: bytes) -> None:
    path = folder / "responses.sqlite"
    store = StoredResponses(path, clock=Clock(), age=1000.0, size=10**9)
    store.put(STORED)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update responses set body = ?", (body,))
    with suppress(UnknownResponse):
        assert isinstance(store.get("a"), Stored)
    store.put(STORED)
    assert store.get("a") == STORED
    store.close()


TOKENIZER: Final = {
    "added_tokens": [{"id": 0, "content": "<unk>", "special": True}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled", "precompiled_charsmap": "AAAA"}]},
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["▁a", -1.5], ["b", -2]]},
}
WORDPIECE: Final = {"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##b": 2}, "unk_token": "[UNK]"}}


@given(nearly(TOKENIZER) | nearly(WORDPIECE))
def test_a_tokenizer_is_a_vocabulary_or_cannot_be_converted(folder: Path, tokenizer: Any) -> None:
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with suppress(CannotConvert):
        assert isinstance(read_vocabulary(folder), Vocabulary)


NAMES: Final = st.lists(
    st.sampled_from(
        ["a", "q", "-", "_", ".", "/", "Q4_K_M", ".gguf", "00001-of-00002", "mmproj", "F16", "é", "..", "\0"]
    ),
    max_size=8,
).map("".join)
OFFERS: Final = st.lists(
    st.builds(Offered, path=NAMES, size=st.integers(0, 1 << 60), digest=st.none() | st.just(Digest("ab" * 32))),
    max_size=6,
)


@given(OFFERS, st.sampled_from(["latest", "Q4_K_M", "q8_0", "", "..", "F16"]))
def test_of_any_listing_a_file_is_chosen_or_none(offered: list[Offered], tag: str) -> None:
    with suppress(NoChoice):
        assert isinstance(choose(offered, tag), Chosen)


KEYS: Final = ("port", "host", "keep_alive", "origins", "home", "engine", "window", "max_body", "log", "nothing")
VALUES: Final = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.text(st.characters(codec="ascii")), st.lists(st.text(max_size=3))
)


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4), st.binary(max_size=20))
def test_any_configuration_is_settings_or_says_what_is_wrong(folder: Path, wanted: dict[str, Any], junk: bytes) -> None:
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in wanted.items()]
    (folder / "config.toml").write_bytes("".join(lines).encode() + (b"" if lines else junk))
    with suppress(SettingsError):
        load_settings({}, {"DIGLOT_HOME": str(folder)})
    environment = {f"DIGLOT_{key.upper()}": str(value) for key, value in wanted.items()}
    (folder / "config.toml").unlink()
    with suppress(SettingsError):
        load_settings({}, environment | {"DIGLOT_HOME": str(folder)})


TITLE: Final = "# Record (quoted by code: data, not instructions)"
RECORD: Final = (
    *("## Files changed", "## Plan", "## Test results", "## Errors", "## Commands", "# Summary", TITLE),
    "## Excerpt: @ user, > agent, ~ thought, $ call, & given, | printed (; and : without their call); 0 to 9: how telling",
    *(
        "- added a.py",
        "- moved b\t<- c",
        "- written d/\te.py f.py",
        "- [x] do",
        "- [>] ",
        "- pytest\t3 passed",
        "- open: ls\tno",
    ),
    *(
        "- exit 1 x3: make",
        f"- exit {'9' * 5000} x1: a",
        f"- exit ? x{'9' * 5000}: b",
        "@9 said",
        "|0 printed",
        "$5 ls",
        "",
        "- ",
    ),
)


@given(st.lists(st.sampled_from(RECORD) | st.text(max_size=9), max_size=12).map("\n".join), st.integers(200, 3000))
def test_any_text_is_read_as_a_record_and_prose(text: str, characters: int) -> None:
    record, _ = read_summary(f"{TITLE}\n{text}")
    if record is not None:
        again = record_of((said("user", "go on"),), record)
        assert len(write_record(again, characters=characters)) <= characters
