"""Headers: what is sound is read, what lies is refused with a word and a place, at no cost in memory."""

import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from diglot.core.model import TensorInfo
from diglot.store import gguf as reader
from diglot.store.gguf import BrokenHeader, LongList, read_header
from tests.store.gguf_bytes import LLAMA, U8, Tensor, gguf, text

HUGE = (1 << 64) - 1


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def refusal(file: Path, data: bytes) -> BrokenHeader:
    file.write_bytes(data)
    with pytest.raises(BrokenHeader) as caught:
        read_header(file)
    assert 0 <= caught.value.offset <= len(data)
    return caught.value


@pytest.mark.parametrize("version", [2, 3])
def test_a_sound_header_is_read(file: Path, version: int) -> None:
    fields = {**LLAMA, "a.float": 0.5, "a.flag": True, "a.negative": -3, "a.list": [1, 2, 3], "a.words": ["x", "é"]}
    file.write_bytes(
        gguf(fields, [Tensor("a", (32, 2)), Tensor("b", (256,), 12), Tensor("c", (7, 3, 2), 1)], version=version)
    )
    header = read_header(file)
    assert header.version == version
    assert header.tensors == (
        TensorInfo("a", "F32", (32, 2)),
        TensorInfo("b", "Q4_K", (256,)),
        TensorInfo("c", "F16", (7, 3, 2)),
    )
    assert header.parameter_count == 64 + 256 + 42
    assert header.fields["a.float"] == 0.5
    assert header.fields["a.flag"] is True
    assert header.fields["a.negative"] == -3
    assert header.fields["a.list"] == (1, 2, 3)
    assert header.fields["a.words"] == ("x", "é")
    assert header.fields["general.architecture"] == "llama"


def test_long_lists_are_counted_unless_they_are_wanted(file: Path) -> None:
    file.write_bytes(gguf({**LLAMA, "a.numbers": list(range(1000)), "after": 7}))
    header = read_header(file)
    assert header.fields["tokenizer.ggml.tokens"] == LongList(300)
    assert header.fields["a.numbers"] == LongList(1000)
    assert header.fields["after"] == 7
    whole = read_header(file, longest=1000)
    assert whole.fields["tokenizer.ggml.tokens"] == tuple(LLAMA["tokenizer.ggml.tokens"])
    assert whole.fields["a.numbers"] == tuple(range(1000))


@pytest.mark.parametrize("length", [3, 1 << 18, (1 << 20) - 9, (1 << 20) + 5])
def test_lists_are_passed_over_whatever_their_texts_weigh(file: Path, length: int) -> None:
    """Texts shorter and longer than the window that the reader looks through."""
    words = ["w" * length, "", "v" * (length // 2)] * 3 + ["x"] * 300
    file.write_bytes(gguf({"words": words, "after": "found", "general.architecture": "llama"}))
    header = read_header(file)
    assert header.fields["words"] == LongList(309)
    assert header.fields["after"] == "found"


def test_another_alignment_is_honoured(file: Path) -> None:
    file.write_bytes(gguf({**LLAMA, "general.alignment": 256}, [Tensor("a"), Tensor("b")], alignment=256))
    assert len(read_header(file).tensors) == 2


@pytest.mark.parametrize(
    ("data", "reason", "offset"),
    [
        (b"", "empty", 0),
        (b"GG", "cut off", 0),
        (b"PK\x03\x04" + bytes(60), "no GGUF", 0),
        (gguf(version=1), "version 1 is not known", 4),
        (gguf(version=4), "version 4 is not known", 4),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big endian", 4),
        (gguf(tensor_count=HUGE), f"claims {HUGE} tensors", 8),
        (gguf(tensor_count=1 << 40), "tensors", 8),
        (gguf(tensor_count=100_000), "claims 100000 tensors", 8),
        (gguf(field_count=HUGE), f"claims {HUGE} fields", 16),
        (gguf(field_count=1 << 30), "fields", 16),
    ],
    ids=[
        "nothing",
        "two bytes",
        "a zip",
        "version 1",
        "version 4",
        "big endian",
        "2^64 tensors",
        "2^40 tensors",
        "more tensors than bytes",
        "2^64 fields",
        "2^30 fields",
    ],
)
def test_a_bad_preamble_is_refused_where_it_is_bad(file: Path, data: bytes, reason: str, offset: int) -> None:
    fault = refusal(file, data)
    assert reason in fault.reason
    assert fault.offset == offset
    assert str(offset) in str(fault)


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (text("k") + struct.pack("<I", 8) + struct.pack("<Q", HUGE), "claims 18446744073709551615 bytes of text"),
        (text("k") + struct.pack("<I", 8) + struct.pack("<Q", (1 << 64) - 8), "bytes of text"),
        (struct.pack("<Q", HUGE) + b"k", "the name of field 0 claims"),
        (text("") + struct.pack("<II", 4, 1), "has no name"),
        (text("k") + struct.pack("<II", 13, 0), "unknown type 13"),
        (text("k") + struct.pack("<II", HUGE & 0xFFFFFFFF, 0), "unknown type 4294967295"),
        (text("k") + struct.pack("<IIQ", 9, 4, HUGE), "more than the file holds"),
        (text("k") + struct.pack("<IIQ", 9, 8, 1 << 61), "more than the file holds"),
        (text("k") + struct.pack("<IIQ", 9, 9, 1), "a list of lists"),
        (text("k") + struct.pack("<IIQ", 9, 77, 1), "a list of the unknown type 77"),
        (text("k") + struct.pack("<IIQ", 9, 8, 300) + struct.pack("<Q", HUGE) * 301, "cut off"),
    ],
)
def test_a_field_that_lies_is_refused(file: Path, field: bytes, reason: str) -> None:
    fault = refusal(file, b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + field + bytes(64))
    assert reason in fault.reason


def test_a_field_that_is_there_twice_is_refused(file: Path) -> None:
    one = text("k") + struct.pack("<II", 4, 1)
    assert "is there twice" in refusal(file, b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + one + one + bytes(32)).reason


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        ([Tensor("a", (1 << 62, 1 << 62))], "needs"),
        ([Tensor("a", (1 << 32, 1 << 32))], "needs"),
        ([Tensor("a", (HUGE, 2))], "a dimension of"),
        ([Tensor("a", (32, 0))], "a dimension of 0"),
        ([Tensor("a", ())], "has 0 dimensions"),
        ([Tensor("a", (1, 1, 1, 1, 1))], "has 5 dimensions"),
        ([Tensor("a", (33,), 2)], "cannot divide into blocks of 32"),
        ([Tensor("a", (32,), 4)], "unknown type 4"),
        ([Tensor("a", (32,), 999)], "unknown type 999"),
        ([Tensor("a", (32,), offset=1 << 40)], "begins at 1099511627776 of the data instead of 0"),
        ([Tensor("a"), Tensor("b", offset=0)], "begins at 0 of the data instead of 256"),
        ([Tensor("a"), Tensor("b", offset=HUGE)], "begins at"),
        ([Tensor("a"), Tensor("a")], "is there twice"),
        ([Tensor("n" * 64)], "the name of tensor 0 claims 64 bytes"),
        ([Tensor("a", (1 << 18, 2)), Tensor("b", (1 << 18, 2), offset=1 << 21)], "is cut off"),
    ],
)
def test_a_tensor_that_lies_is_refused(file: Path, tensors: list[Tensor], reason: str) -> None:
    assert reason in refusal(file, gguf(tensors=tensors) + bytes(1 << 20)).reason


@pytest.mark.parametrize("alignment", [0, 3, 48, 1 << 30, "32", -32])
def test_an_alignment_that_is_no_small_power_of_two_is_refused(file: Path, alignment: object) -> None:
    assert "power of two" in refusal(file, gguf({**LLAMA, "general.alignment": alignment})).reason


@given(st.integers(min_value=0, max_value=len(gguf()) - 1))
def test_a_file_cut_off_anywhere_is_refused(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    refusal(tmp_path_factory.getbasetemp() / "cut.gguf", gguf()[:length])


def test_a_header_that_would_fill_the_memory_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each list is within its limit, only all of them together are not."""
    monkeypatch.setattr(reader, "MAX_BUILT", 1 << 20)
    count = 2000
    one = struct.pack("<IIQ", 9, 10, 200) + bytes(1600)
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, count) + b"".join(text(f"{n:05}") + one for n in range(count)))
    tracemalloc.start()
    try:
        with pytest.raises(BrokenHeader, match="names and values"):
            read_header(file)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()


def test_a_header_that_would_take_hours_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of empty texts costs eight bytes each, and a file may be large."""
    monkeypatch.setattr(reader, "MAX_PASSED", 1000)
    assert "more than 1000 texts" in refusal(file, gguf({"a": [""] * 600, "b": [""] * 600})).reason


@given(st.binary(max_size=300).map(lambda tail: b"GGUF\x03\0\0\0" + tail) | st.binary(max_size=64))
@example(b"GGUF" + struct.pack("<IQQ", 3, 1 << 16, 0) + bytes(64))
def test_any_bytes_give_a_header_or_a_refusal(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any.gguf"
    file.write_bytes(data)
    with suppress(BrokenHeader):
        read_header(file)


@given(st.data())
def test_a_sound_file_with_bytes_changed_gives_a_header_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    changed = bytearray(
        gguf({**LLAMA, "charsmap": U8(bytes(20)), "list": ["a", "b"]}, [Tensor("a"), Tensor("b", (64,), 2)])
    )
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(changed) - 1))
        width = data.draw(st.sampled_from([1, 4, 8]))
        new = data.draw(st.integers(0, (1 << 8 * width) - 1) | st.sampled_from([0, 1, (1 << 8 * width) - 1]))
        changed[place : place + width] = new.to_bytes(width, "little")
    file = tmp_path_factory.getbasetemp() / "changed.gguf"
    file.write_bytes(changed)
    tracemalloc.start()
    try:
        with suppress(BrokenHeader):
            read_header(file)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1 << 23
