"""The seal: nobody else reads or changes a compaction item."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.compaction.envelope import Summary
from diglot.core.errors import BrokenCompaction
from diglot.core.items import Compaction
from diglot.services.envelopes import Envelopes
from diglot.state.seal import FileSeal


def test_what_was_sealed_opens_again_also_after_a_restart(tmp_path: Path) -> None:
    sealed = FileSeal(tmp_path / "state/seal.key").close("the port is 8123")
    assert "8123" not in sealed
    assert FileSeal(tmp_path / "state/seal.key").open(sealed) == "the port is 8123"


def test_only_the_owner_can_read_the_key(tmp_path: Path) -> None:
    FileSeal(tmp_path / "seal.key").close("x")
    assert stat.S_IMODE((tmp_path / "seal.key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["seal.key"]


@pytest.fixture(scope="module")
def seal(tmp_path_factory: pytest.TempPathFactory) -> FileSeal:
    return FileSeal(tmp_path_factory.mktemp("seal") / "seal.key")


@given(text=st.text(max_size=60), data=st.data())
def test_with_a_single_bit_changed_it_is_refused(seal: FileSeal, text: str, data: st.DataObject) -> None:
    sealed = seal.close(text)
    place = data.draw(st.integers(len("diglot1."), len(sealed) - 1))
    changed = (
        sealed[:place] + chr(ord(sealed[place]) ^ data.draw(st.sampled_from([1, 2, 4, 8, 16]))) + sealed[place + 1 :]
    )
    with pytest.raises(BrokenCompaction):
        seal.open(changed)


@pytest.mark.parametrize("text", ["diglot1.", "diglot1.AAAA", "diglot1.???", "diglot1.é", "diglot1." + "A" * 64])
def test_nonsense_is_refused(seal: FileSeal, text: str) -> None:
    assert seal.knows(text)
    with pytest.raises(BrokenCompaction):
        seal.open(text)


def test_another_servers_seal_is_refused(seal: FileSeal, tmp_path: Path) -> None:
    with pytest.raises(BrokenCompaction, match="another server"):
        seal.open(FileSeal(tmp_path / "other.key").close("x"))


@pytest.mark.parametrize("sealing", [True, False])
def test_both_forms_are_read_whatever_the_setting(seal: FileSeal, sealing: bool) -> None:  # noqa: FBT001
    written = Envelopes(seal, sealing=sealing).write(Summary("the port is 8123"))
    assert ("8123" in written.payload) is not sealing
    assert Envelopes(seal, sealing=not sealing).open(written) == Summary("the port is 8123")


def test_a_refusal_names_where_the_item_stood(seal: FileSeal) -> None:
    with pytest.raises(BrokenCompaction) as caught:
        Envelopes(seal).open(Compaction("diglot1.AAAA", origin="input[2].encrypted_content"))
    assert caught.value.field == "input[2].encrypted_content"
