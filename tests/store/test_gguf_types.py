"""The tables of the format agree with the package of its authors."""

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType, LlamaFileType

from diglot.store.gguf_types import ARRAY, FILE_TYPES, SCALARS, STRING, TENSOR_TYPES

NEVER_STORED = {"Q8_1", "Q8_K"}  # The engine makes them for a moment while it multiplies.


def test_element_types_and_their_blocks() -> None:
    known = {kind: (kind.name, *GGML_QUANT_SIZES[kind]) for kind in GGMLQuantizationType}
    assert {k: v for k, v in known.items() if v[0] not in NEVER_STORED} == TENSOR_TYPES


def test_value_types() -> None:
    assert {*SCALARS, STRING, ARRAY} == {kind.value for kind in GGUFValueType}
    widths = {
        GGUFValueType.UINT8: 1,
        GGUFValueType.INT16: 2,
        GGUFValueType.FLOAT32: 4,
        GGUFValueType.BOOL: 1,
        GGUFValueType.UINT64: 8,
    }
    assert {kind: SCALARS[kind].size for kind in widths} == widths


def test_file_types() -> None:
    known = {kind.value: kind.name.removeprefix("MOSTLY_").removeprefix("ALL_") for kind in LlamaFileType}
    known.pop(LlamaFileType.GUESSED)
    assert known == FILE_TYPES
