"""`diglot compaction show`: whatever a person has at hand, it finds the items in it."""

import json
from pathlib import Path

import pytest

from diglot.cli.verbs.compaction import payloads_in
from diglot.core.compaction.envelope import Summary, write_envelope
from diglot.core.items import said
from diglot.services.envelopes import Envelopes
from diglot.state.seal import FileSeal
from tests.cli.conftest import Diglot

PLAIN = write_envelope(Summary("the port is 8123", (said("assistant", "I keep this"),)))
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": PLAIN}


def shown(diglot: Diglot, text: str, home: Path) -> str:
    outcome = diglot("compaction", "show", "-", "--home", str(home), stdin=text)
    assert outcome.code == 0, outcome.err
    return outcome.out


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        json.dumps(ITEM),
        json.dumps({"output": [{"type": "message"}, ITEM]}),
        json.dumps([{"role": "user"}, ITEM]),
        "\n".join(json.dumps(line) for line in ({"type": "session_meta"}, {"payload": ITEM}, {"n": 1})),
        "data: x\n" + json.dumps({"type": "response.output_item.done", "item": ITEM}),
    ],
    ids=["payload", "item", "answer", "input", "session", "stream"],
)
def test_it_prints_the_summary_and_what_was_kept(diglot: Diglot, text: str, tmp_path: Path) -> None:
    printed = shown(diglot, text, tmp_path)
    assert "the port is 8123" in printed
    assert "I keep this" in printed


def test_a_sealed_item_opens_with_the_key_of_the_home_folder(diglot: Diglot, tmp_path: Path) -> None:
    seal = FileSeal(tmp_path / "state/seal.key")
    item = Envelopes(seal, sealing=True).write(Summary("the port is 8123"))
    assert "8123" not in item.payload
    assert "the port is 8123" in shown(diglot, item.payload, tmp_path)


def test_several_items_are_told_apart(diglot: Diglot, tmp_path: Path) -> None:
    other = {**ITEM, "encrypted_content": write_envelope(Summary("another"))}
    printed = shown(diglot, json.dumps([ITEM, other]), tmp_path)
    assert "item 1 of 2" in printed
    assert printed.index("8123") < printed.index("another")


def test_the_same_item_twice_is_shown_once() -> None:
    assert payloads_in(json.dumps([ITEM, ITEM])) == [PLAIN]


@pytest.mark.parametrize("text", ["", "{}", "[1, 2]"])
def test_where_there_is_none_it_says_so(diglot: Diglot, text: str, tmp_path: Path) -> None:
    outcome = diglot("compaction", "show", "-", "--home", str(tmp_path), stdin=text)
    assert outcome.code == 1
    assert "no compaction item" in outcome.err


def test_a_foreign_item_is_refused_with_the_reason(diglot: Diglot, tmp_path: Path) -> None:
    foreign = json.dumps({"type": "compaction", "encrypted_content": "gAAAAAB"})
    outcome = diglot("compaction", "show", "-", "--home", str(tmp_path), stdin=foreign)
    assert outcome.code == 1
    assert "not written by this server" in outcome.err
